"""Results made fit to show: rules applied, each page once, lists of several engines as one.

Lists are joined by reciprocal rank fusion: a page counts 1 / (60 + rank) for each list it is in, so
agreement weighs more than one engine's favourite. Equal scores keep the order of the chain, so the
same lists give the same order every time.

Spec: Cormack, Clarke, Buettcher: Reciprocal Rank Fusion (SIGIR 2009)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from search_backend.canonical import canonical_key
from search_backend.clean import one_line
from search_backend.domains import ANYWHERE, Rules, plain_url
from search_backend.types import Filtered, Query, SearchResult

LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
RANK_CONSTANT = 60


def keep(found: Sequence[SearchResult], query: Query) -> tuple[tuple[SearchResult, ...], int]:
    """Results that pass the rules of `query`, and how many did not.

    An address that can be read in two ways is no result at all; one with a host in other letters
    than ASCII is shown by its A-labels.
    """
    readable = [
        result if shown == result.url else replace(result, url=shown)
        for result in found
        if (shown := plain_url(result.url)) is not None
    ]
    rules = Rules(query.allowed_domains, query.blocked_domains)
    if rules == ANYWHERE:
        return tuple(readable), 0
    passing = tuple(result for result in readable if rules.passes_url(result.url))
    return passing, len(readable) - len(passing)


def fuse(lists: Sequence[Sequence[SearchResult]], most: int) -> tuple[SearchResult, ...]:
    """One list out of several, best first: each page once, text cleaned, at most `most`."""
    best: dict[str, SearchResult] = {}
    scores: dict[str, float] = {}
    for found in lists:
        # A page far down its list cannot be among the first few of all.
        for rank, (key, result) in enumerate(_distinct(found, most * 2), 1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
            known = best.get(key)
            best[key] = result if known is None else _joined(known, result)
    order = sorted(best, key=lambda key: -scores[key]) if len(lists) > 1 else list(best)
    return tuple(_cleaned(best[key]) for key in order[:most])


def filtered(query: Query, dropped: int) -> Filtered | None:
    """What the domain rules took away, if they did."""
    if not dropped:
        return None
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    return Filtered("; ".join(f"{name}={','.join(r)}" for name, r in rules if r), dropped)


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
        one_line(result.title, LONGEST_TITLE),
        result.url,
        one_line(result.snippet, LONGEST_SNIPPET),
        result.source,
        result.published,
    )
