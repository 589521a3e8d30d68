"""Replaces the redirect links of searched answers by the addresses of the pages.

A redirect link hides its page and stops working after some weeks. `Links` asks the provider's
redirect host for the target, and never the pages themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from searchloop.agent.errors import AgentError
from searchloop.agent.search.citations import numbered, sources
from searchloop.agent.transport.exchange import Redirected, origin_of
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Mark, Message, Source

_GOOGLE = "https://vertexaisearch.cloud.google.com"
_PATH = "/grounding-api-redirect/"
_LONGEST = 4096  # characters of a target
_SECONDS = 2.0
_MOST = 32  # links of one answer that are asked


def is_redirect(url: str, base: str = _GOOGLE) -> bool:
    """Returns True for a redirect link on the server at `base`."""
    origin = origin_of(url)
    same = origin is not None and origin == origin_of(base)
    return same and urlsplit(url).path.startswith(_PATH)


def target(location: str | None) -> str | None:
    """Returns the page that a redirect names, None for anything but a page's address."""
    if not location or len(location) > _LONGEST or is_redirect(location):
        return None
    return location if origin_of(location) else None


def links_of(message: Message) -> tuple[str, ...]:
    """Returns the addresses of the message's sources and citations, each once."""
    urls = [source.url for source in message.sources]
    return tuple(dict.fromkeys([*urls, *(citation.url for citation in message.citations)]))


def resolved(message: Message, targets: Mapping[str, str]) -> Message:
    """Puts in the known targets; two links to one page become one citation."""
    if not any(url in targets for url in links_of(message)):
        return message
    found: list[tuple[Mark, str, str]] = []
    for citation in message.citations:
        url = targets.get(citation.url, citation.url)
        found += [(mark, url, citation.title) for mark in citation.marks or (Mark(),)]
    citations = numbered(found)
    consulted = [
        Source(targets.get(url, url), title, "found" if state == "cited" else state)
        for url, title, state, *_ in message.sources
    ]
    return replace(message, citations=citations, sources=sources(consulted, citations))


class Links:
    """Finds the targets of redirect links; `base` replaces Google's server."""

    def __init__(self, transport: Transport, base: str | None) -> None:
        self._transport = transport
        self._base = base

    async def resolve(self, message: Message) -> Message:
        """Puts in the pages behind the links, as far as they are found in time."""
        # Another server gets only its own links: no other host learns of them.
        links = [url for url in links_of(message) if is_redirect(url, self._base or _GOOGLE)]
        targets: dict[str, str] = {}
        with suppress(TimeoutError):  # links without a target by then stay
            async with asyncio.timeout(_SECONDS), asyncio.TaskGroup() as group:
                for url in links[:_MOST]:
                    group.create_task(self._follow(url, targets))
        return resolved(message, targets)

    async def _follow(self, url: str, targets: dict[str, str]) -> None:
        try:
            await self._transport.fetch(url, timeout=_SECONDS)
        except Redirected as found:
            if page := target(found.location):
                targets[url] = page
        except AgentError:
            pass
