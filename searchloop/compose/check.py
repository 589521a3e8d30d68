"""Compares a claim with a text, a file or a page, without a model. Files need no network."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import Backend, backend_for, error_words
from searchloop.agent.tools.open_page import whole_page
from searchloop.agent.transport.transport import Transport
from searchloop.agent.verdicts.check import Verdict, check
from searchloop.agent.verdicts.page import Page
from searchloop.compose import file_text, search_app

_CHOOSE = "Give exactly one of text, file and url."


class Source(NamedTuple):
    """What a claim is compared with; `notes` say what changes its meaning, as its age."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()


def said(claim: str) -> str:
    """Returns the claim. Raises ConfigError where it says nothing."""
    if not claim.strip():
        raise ConfigError("empty_claim", "The claim is empty.", "Write what is said.")
    return claim


def check_text(claim: str, source: Source) -> Verdict:
    """Compares a claim with a text. Raises ConfigError where either cannot be read."""
    page = Page(source.text)
    if not (page.text.strip() and page.readable):
        what = "no text" if page.readable else "no readable text"
        raise ConfigError("no_source", f"The source holds {what}.", "Give another source.")
    return replace(check(said(claim), page), notes=source.notes)


async def read_page(url: str, backend: Backend) -> Source:
    """Returns a page, as far as it is compared.

    Raises ConfigError where it cannot be read, ToolError without a search backend.
    """
    page = await whole_page(url, backend)
    if page["status"] != "ok":
        why = error_words(page.get("error")) or page["status"]
        raise ConfigError("no_source", f"{url} could not be read: {why}")
    return Source(page["content"], page["title"], page["notes"])


async def check_source(
    claim: str,
    settings: Settings,
    *,
    text: str | None = None,
    file: Path | None = None,
    url: str | None = None,
) -> Verdict:
    """Checks a claim against exactly one of `text`, `file` and `url`.

    Raises ConfigError that names what is missing or cannot be read.
    """
    if [text, file, url].count(None) != 2:
        raise ConfigError("no_source", "There must be one source.", _CHOOSE)
    said(claim)
    if url is not None:
        async with aclosing(Transport(offline=settings.offline)) as transport:
            backend = backend_for(settings, transport, search_app(settings))
            return check_text(claim, await read_page(url, backend))
    return check_text(claim, Source(file_text(file) if file else text or ""))
