"""Results made fit to show: rules applied, each page once, lists of several engines as one.

Lists are joined by reciprocal rank fusion: a page counts 1 / (60 + rank) for each list it is in, so
agreement weighs more than one engine's favourite. Equal scores keep the order of the chain, so the
same lists give the same order every time.

Spec: Cormack, Clarke, Buettcher: Reciprocal Rank Fusion (SIGIR 2009)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from search_backend.addresses import Block
from search_backend.canonical import canonical_key
from search_backend.clean import invisible, one_line
from search_backend.domains import ANYWHERE, Rules, plain_url
from search_backend.types import Filtered, Query, SearchResult

LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
RANK_CONSTANT = 60
_DAYS = {"d": 1, "w": 7, "m": 31, "y": 366}


@dataclass(frozen=True, slots=True)
class Kept:
    """Results that pass, how many were outside the domains, how many too old, and how many had an
    address that nobody should follow."""

    results: tuple[SearchResult, ...] = ()
    outside: int = 0
    stale: int = 0
    unusable: int = 0


def keep(
    found: Sequence[SearchResult],
    query: Query,
    respected: Container[str] = ("time_range",),
    today: date | None = None,
    allow: Sequence[Block] = (),
) -> Kept:
    """What passes the rules of `query`, of which the engine has already `respected` some.

    An address that can be read in two ways is no result at all, nor is one of this machine or a
    private network outside `allow`; one with a host in other letters than ASCII is shown by its
    A-labels. A result without a date is never too old.
    """
    readable = [
        result if shown == result.url else replace(result, url=shown)
        for result in found
        if (shown := plain_url(result.url, allow)) is not None
    ]
    rules = Rules(query.allowed_domains, query.blocked_domains)
    inside = readable
    if rules != ANYWHERE:
        inside = [result for result in readable if rules.passes_url(result.url)]
    fresh = inside
    if query.time_range and "time_range" not in respected:
        # A day more, for places where it is still yesterday.
        days = timedelta(days=_DAYS[query.time_range] + 1)
        oldest = ((today or datetime.now(UTC).date()) - days).isoformat()
        fresh = [result for result in inside if (result.published or oldest) >= oldest]
    outside, stale = len(readable) - len(inside), len(inside) - len(fresh)
    return Kept(tuple(fresh), outside, stale, len(found) - len(readable))


def fuse(lists: Sequence[Sequence[SearchResult]], most: int) -> tuple[SearchResult, ...]:
    """One list out of several, best first: each page once, text cleaned, at most `most`."""
    best: dict[str, SearchResult] = {}
    scores: dict[str, float] = {}
    # A page far down its list cannot be among the first few of all.
    deep = most * 2 if len(lists) > 1 else most
    for found in lists:
        for rank, (key, result) in enumerate(_distinct(found, deep), 1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
            known = best.get(key)
            best[key] = result if known is None else _joined(known, result)
    order = sorted(best, key=lambda key: -scores[key]) if len(lists) > 1 else list(best)
    return tuple(_cleaned(best[key]) for key in order[:most])


def filtered(query: Query, outside: int, stale: int) -> Filtered | None:
    """What the rules took away here, if they did."""
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    told = [f"{name}={','.join(r)}" for name, r in rules if r] if outside else []
    told += [f"time_range={query.time_range}"] if stale else []
    return Filtered("; ".join(told), outside + stale) if told else None


def _distinct(found: Sequence[SearchResult], most: int) -> Iterable[tuple[str, SearchResult]]:
    pages: dict[str, SearchResult] = {}
    for result in found:
        pages.setdefault(canonical_key(result.url), result)
        if len(pages) == most:
            break
    return pages.items()


def _joined(first: SearchResult, second: SearchResult) -> SearchResult:
    """The one that came first, with what it lacks and the second has."""
    snippet, published = first.snippet or second.snippet, first.published or second.published
    if (snippet, published) == (first.snippet, first.published):
        return first
    return SearchResult(first.title, first.url, snippet, first.source, published)


def _cleaned(result: SearchResult) -> SearchResult:
    return SearchResult(
        one_line(result.title, LONGEST_TITLE) or result.url,
        result.url,
        one_line(result.snippet, LONGEST_SNIPPET),
        result.source,
        result.published,
        result.invisible + invisible(result.title) + invisible(result.snippet),
    )
