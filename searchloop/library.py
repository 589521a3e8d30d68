"""Puts the agent and the search backend together, for programs that use searchloop as a library."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from searchloop.agent.library import BareAgent
from searchloop.agent.log import EventLog
from searchloop.agent.providers import Provider
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import Wsgi
from searchloop.agent.verdicts.check import Verdict
from searchloop.web.check import check_source
from searchloop.web.compose import search_app


class Agent(BareAgent):
    """Asks models on a background loop; safe to use from several threads.

    It searches with the search backend in this process, or the one at SEARCH_BACKEND_URL.
    `settings` are by default those of the environment, `search_backend` is another WSGI
    application with the same contract, `log` another place for the sessions. `tools` and
    `providers` come beside those of searchloop; `bring` are sources of tools by session, such as a
    workspace or MCP servers.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        search_backend: Wsgi | None = None,
        tools: Iterable[Tool] = (),
        log: EventLog | None = None,
        providers: Iterable[Provider] = (),
        bring: Iterable[ToolSource] = (),
    ) -> None:
        settings = settings or Settings.load()
        super().__init__(
            settings,
            search_backend=search_backend or search_app(settings),
            tools=tools,
            log=log,
            providers=providers,
            bring=bring,
        )


def check(
    claim: str,
    *,
    text: str | None = None,
    file: str | Path | None = None,
    url: str | None = None,
    settings: Settings | None = None,
) -> Verdict:
    """Says whether a source bears out a claim: one of `text`, `file` and `url`.

    No model is asked, and only `url` needs a network. Raises ConfigError that names a source that
    cannot be read.

        check("It opened in 1932.", text="The bridge was opened in 1931.").verdict
    """
    settings = settings or Settings.load()
    path = None if file is None else Path(file)
    with ThreadPoolExecutor(1) as pool:  # the caller may have a loop of its own
        work = check_source(claim, settings, text=text, file=path, url=url)
        return pool.submit(asyncio.run, work).result()
