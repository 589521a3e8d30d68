"""Puts the results of several engines into one order, each page once, and says why.

The order of each engine that answered is kept. A page that two engines have found counts for both.
For a question about news, what is new comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from searchloop.analysis.addresses import url_key
from searchloop.search_backend.search.merge import cleaned
from searchloop.search_backend.search.router import wants_news, works
from searchloop.search_backend.search.schedule import Outcome
from searchloop.search_backend.types import Query, SearchResult

_FLATNESS = 10.0  # a score is 1 / (_FLATNESS + place): larger, and places matter less
# Days since a page was published, and by how much its score grows if news are wanted.
_NEW = ((3, 2.0), (8, 1.7), (32, 1.4), (366, 1.0))
_OLD, _UNDATED = 0.5, 0.9


@dataclass(slots=True)
class Ranked:
    """A result, its score, and the reasons for it."""

    result: SearchResult
    score: float
    reasons: tuple[str, ...]


def work_key(url: str) -> str:
    """Returns one key for all addresses at which a work is published; see `url_key`."""
    key = url_key(url)
    for name, pattern in works().items():
        if found := pattern.search(key):
            return f"{name}:{'/'.join(filter(None, found.groups())).lower()}"
    return key


def rank(outcomes: Sequence[Outcome], query: Query, today: date | None = None) -> list[Ranked]:
    """Returns at most `query.max_results` results of these engines, best first, cleaned."""
    pages: dict[str, Ranked] = {}
    for outcome in outcomes:
        seen: set[str] = set()
        for found in outcome.results:
            if (key := work_key(found.url)) not in seen:
                seen.add(key)
                _add(pages, key, found, outcome.attempt.engine, len(seen))
    ranked = list(pages.values())
    if wants_news(query.text) or query.time_range in ("d", "w"):
        for page in ranked:
            _weigh_by_date(page, today or datetime.now(UTC).date())
    ranked.sort(key=lambda page: -page.score)
    kept = ranked[: query.max_results]
    return [Ranked(cleaned(page.result), page.score, page.reasons) for page in kept]


def _add(pages: dict[str, Ranked], key: str, found: SearchResult, engine: str, at: int) -> None:
    score, reasons = 1 / (_FLATNESS + at), (f"place {at} of {engine}",)
    known = pages.get(key)
    if known is None:
        pages[key] = Ranked(found, score, reasons)
        return
    known.score += score
    known.reasons += reasons
    if known.result.published is None and found.published:
        known.result = replace(known.result, published=found.published)


def _weigh_by_date(page: Ranked, today: date) -> None:
    published = page.result.published
    if published is None:
        page.score *= _UNDATED
        return
    days = (today - date.fromisoformat(published)).days
    factor = next((factor for most, factor in _NEW if days <= most), _OLD)
    page.score *= factor
    if factor != 1.0:
        page.reasons += (f"of {published}, and the question asks for news",)
