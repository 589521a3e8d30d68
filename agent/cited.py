"""Citations of one answer: numbered by first appearance, and the sources that they make.

A codec finds out which address is cited where; how that becomes `Message.citations` and
`Message.sources` is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.spans import without_tracking
from agent.types import Citation, Mark, Source, SourceState


def sources(consulted: Iterable[Source], citations: Iterable[Citation]) -> tuple[Source, ...]:
    """Everything that was consulted, in order; the same page once, under the address cited."""
    rank: dict[SourceState, int] = {"found": 0, "opened": 1, "cited": 2}
    cited = (Source(c.url, c.title, "cited", c.n) for c in citations)
    merged: dict[str, Source] = {}
    for source in (*consulted, *cited):
        page = without_tracking(source.url)
        known = merged.get(page)
        if known is None or (known.n is not None and source.n is not None):
            merged[page if known is None else f"{page} {source.n}"] = source
            continue
        state = max(known.state, source.state, key=lambda s: rank[s])
        url = source.url if source.n else known.url
        title, published = known.title or source.title, known.published or source.published
        merged[page] = Source(url, title, state, source.n or known.n, published)
    return tuple(merged.values())


def numbered(found: Iterable[tuple[Mark, str, str]]) -> tuple[Citation, ...]:
    """Citations from (mark, url, title), numbered in the order of reading.

    Pages that are cited at no place come last; of one that is, only its places count.
    """
    marks: dict[str, dict[Mark, None]] = {}
    titles: dict[str, str] = {}
    for mark, url, title in sorted(found, key=lambda f: (f[0].span is None, f[0].span or ())):
        known = marks.setdefault(url, {})
        if mark.span or (mark.quote and not known):
            known[mark] = None
        titles[url] = titles.get(url) or title
    return tuple(
        Citation(n, url, titles[url], tuple(known))
        for n, (url, known) in enumerate(marks.items(), 1)
    )
