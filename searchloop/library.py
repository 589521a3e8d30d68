"""Puts the agent and the search backend together, for programs that use searchloop as a library."""

from __future__ import annotations

from collections.abc import Iterable

from searchloop.agent.library import BareAgent
from searchloop.agent.log import EventLog
from searchloop.agent.providers import Provider
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import Wsgi
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
