"""Applies the rules of a query to results, removes duplicate pages, and cleans what is shown."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from searchloop.analysis.addresses import url_key
from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules, plain_url
from searchloop.search_backend.fetch.ip_addresses import Network
from searchloop.search_backend.text.clean import invisible, one_line
from searchloop.search_backend.types import Filtered, Query, SearchResult

LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
_DAYS = {"d": 1, "w": 7, "m": 31, "y": 366}


@dataclass(frozen=True, slots=True)
class Checked:
    """The results that pass, and the numbers of those outside the domains, too old, or with an
    unusable address."""

    results: tuple[SearchResult, ...] = ()
    outside: int = 0
    stale: int = 0
    unusable: int = 0


def keep(
    found: Sequence[SearchResult],
    query: Query,
    respected: Container[str] = ("time_range",),
    today: date | None = None,
    allow: Sequence[Network] = (),
) -> Checked:
    """Removes results outside the rules of `query`; the engine has `respected` some already.

    An address with two readings, of this machine or of a private network outside `allow` is
    unusable; a non-ASCII host is shown by its A-labels. A result without a date is never too old.
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
    return Checked(tuple(fresh), outside, stale, len(found) - len(readable))


def distinct(found: Sequence[SearchResult], most: int) -> tuple[SearchResult, ...]:
    """Returns at most `most` results, cleaned, each page once."""
    pages: dict[str, SearchResult] = {}
    for result in found:
        pages.setdefault(url_key(result.url), result)
        if len(pages) == most:
            break
    return tuple(_cleaned(result) for result in pages.values())


def filtered(query: Query, outside: int, stale: int) -> Filtered | None:
    """Names the rules that removed results; None if none did."""
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    told = [f"{name}={','.join(r)}" for name, r in rules if r] if outside else []
    told += [f"time_range={query.time_range}"] if stale else []
    return Filtered("; ".join(told), outside + stale) if told else None


def _cleaned(result: SearchResult) -> SearchResult:
    return SearchResult(
        one_line(result.title, LONGEST_TITLE) or result.url,
        result.url,
        one_line(result.snippet, LONGEST_SNIPPET),
        result.source,
        result.published,
        result.invisible + invisible(result.title) + invisible(result.snippet),
    )
