"""Links of searched answers that lead through the provider's own redirect.

Such a link hides the page behind it and stops working after some weeks. Where it leads is the first
redirect's target. Which links are of this kind, and what an answer looks like once their targets
are known, is decided here; asking for a target is not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from agent.cited import numbered
from agent.providers.gemini.grounding import merged
from agent.types import Citation, Mark, Message, Source

_HOST = "vertexaisearch.cloud.google.com"
_PATH = "/grounding-api-redirect/"
_LONGEST = 4096
_MARK = "via Google"


def is_redirect(url: str) -> bool:
    """Whether `url` is a redirect of the provider."""
    return url.startswith(f"https://{_HOST}{_PATH}")


def is_redirect_of(url: str, base: str) -> bool:
    """Whether `url` is a redirect on the server at `base`, which stands in for the provider."""
    try:
        link, server = urlsplit(url), urlsplit(base)
    except ValueError:
        return False
    same = (link.scheme, link.netloc) == (server.scheme, server.netloc)
    return same and link.path.startswith(_PATH)


def target(location: str | None) -> str | None:
    """The page a redirect names, or None when that is no address of a page."""
    if not location or len(location) > _LONGEST:
        return None
    try:
        parts = urlsplit(location)
    except ValueError:
        return None
    whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    return location if whole and not is_redirect(location) else None


def links_of(message: Message) -> tuple[str, ...]:
    """Every address in the message's citations and sources, once."""
    urls = [source.url for source in message.sources]
    return tuple(dict.fromkeys([*urls, *(citation.url for citation in message.citations)]))


def resolved(message: Message, targets: Mapping[str, str], *, mark: bool = True) -> Message:
    """The message with real addresses where they are known, and marked titles where not.

    Two links to one page become one citation. The link as it came is kept in the details.
    """
    links = links_of(message)
    marked = frozenset(url for url in links if mark and is_redirect(url) and url not in targets)
    if not marked and not any(url in targets for url in links):
        return message
    found: list[tuple[Mark, str, str]] = []
    for citation in message.citations:
        page = _real(citation, targets, marked)
        found += [(mark, page.url, page.title) for mark in citation.marks or (Mark(),)]
    citations = numbered(found)
    consulted: Iterable[Source] = (
        replace(
            _real(source, targets, marked),
            state="found" if source.state == "cited" else source.state,
        )
        for source in message.sources
    )
    details = dict(message.details)
    used = {targets[url]: url for url in links if url in targets}
    if used:
        details["redirects"] = used
    return replace(
        message, citations=citations, sources=merged(consulted, citations), details=details
    )


def _real(page: Source | Citation, targets: Mapping[str, str], marked: Container[str]) -> Source:
    url, title = targets.get(page.url, page.url), page.title
    if url in marked:
        title = f"{title} ({_MARK})" if title else _MARK
    return Source(url, title, page.state if isinstance(page, Source) else "found")
