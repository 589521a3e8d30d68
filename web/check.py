"""Compares a claim with a text, a file or a page, without a model. Files need no network."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import Backend, backend_for, error_words
from searchloop.agent.transport.transport import Transport
from searchloop.agent.verdicts.check import Verdict, check
from searchloop.agent.verdicts.page import LONGEST, Page
from searchloop.web.compose import file_text, search_app

_SLICE = 40_000  # characters of one request
_CHOOSE = "Give exactly one of text, file and url."


def check_text(claim: str, text: str, title: str = "") -> Verdict:
    """Compares a claim with a text. Raises ConfigError where either is empty."""
    if not claim.strip():
        raise ConfigError("empty_claim", "The claim is empty.", "Write what is said.")
    if not text.strip():
        raise ConfigError("no_source", "The source holds no text.", "Give another source.")
    return check(claim, Page(text, title))


async def read_page(url: str, backend: Backend) -> tuple[str, str]:
    """Returns the text of a page, as far as it is compared, and its title.

    Raises ConfigError where it cannot be read, ToolError without a search backend.
    """
    parts: list[str] = []
    title, offset, length = "", 0, 0
    while length < LONGEST:
        page = await backend.ask(
            "/api/open-page", {"url": url, "offset": offset, "max_length": _SLICE}
        )
        if page["status"] != "ok":
            why = error_words(page.get("error")) or page["status"]
            raise ConfigError("no_source", f"{url} could not be read: {why}")
        title = title or page["title"]
        parts.append(page["content"])
        length += len(parts[-1])
        if page["next_offset"] is None or page["next_offset"] <= offset:
            break
        offset = page["next_offset"]
    return "".join(parts), title


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
    title = ""
    if url is not None and claim.strip():
        async with aclosing(Transport(offline=settings.offline)) as transport:
            backend = backend_for(settings, transport, search_app(settings))
            text, title = await read_page(url, backend)
    elif file is not None:
        text = file_text(file)
    return check_text(claim, text or "", title)
