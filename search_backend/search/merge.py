"""Applies the rules of a query to results, puts them into one order, and cleans what is shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from searchloop.analysis.addresses import AMP_VIEWER, url_key
from searchloop.search_backend.engines import Engine
from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules, plain_url
from searchloop.search_backend.fetch.ip_addresses import Network
from searchloop.search_backend.library.roots import SCHEME
from searchloop.search_backend.plugin.markup import MOST_ROWS, MOST_TEXT
from searchloop.search_backend.text.clean import cleaned as cleaned_text
from searchloop.search_backend.text.clean import one_line
from searchloop.search_backend.types import EngineError, Filtered, Query, SearchResult

# Addresses with the address of another page inside: in their path (archives, readers) or as a
# parameter (redirects).
_INSIDE = re.compile(
    r"https?://[^?#]*?/(https?:/{1,2}[^/].*)"
    r"|https?://[^#]*[?&](?:q|u|url|uddg|to|target|dest)=(https?(?::|%3a)(?:/|%2f){2}[^&#]+)",
    re.IGNORECASE | re.DOTALL,
)
_TRANSLATED = re.compile(r"https?://([^/?#]+)\.translate\.goog(?=[/?#:]|$)", re.IGNORECASE)


def _shown(url: str) -> str:
    """Returns the address of the page that is seen at `url`: a copy, a viewer, a redirect."""
    if found := _TRANSLATED.match(url):
        return "https://" + found[1].replace("--", "\0").replace("-", ".").replace("\0", "-")
    if found := _INSIDE.match(url):
        return unquote(found[1] or found[2]).replace(":/", "://", 1).replace(":///", "://", 1)
    if "amp" in url and (viewed := AMP_VIEWER.fullmatch(url.partition("://")[2])):
        return f"https://{viewed[1] or viewed[2]}"
    return url


_FLATNESS = 10.0  # a score is 1 / (_FLATNESS + place): larger, and places matter less
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


def listed(engine: Engine, found: object) -> list[SearchResult]:
    """Returns the results that an engine gave. Raises EngineError for what is no list of them."""
    results: list[Any] = found[:MOST_ROWS] if isinstance(found, list) else [None]
    if not all(map(_is_result, results)):
        what = f"{engine.title} gave something that is no list of results."
        remedy = "Return SearchResult objects whose title, url, snippet and source are texts."
        raise EngineError("config", what, remedy)
    for each in results if engine.open is None else ():
        if not each.url.startswith(("http://", "https://", SCHEME)):
            what = f"{engine.title} gave {each.url[:100]}, an address that nothing opens."
            remedy = "Give its Engine a scheme, and an open that returns the text of one."
            raise EngineError("config", what, remedy)
    return results


def _is_result(value: object) -> bool:
    if not isinstance(value, SearchResult) or not isinstance(value.invisible, int):
        return False
    texts = (value.title, value.url, value.snippet, value.source, value.published or "")
    return all(isinstance(text, str) for text in texts)


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
    now = today or datetime.now(UTC).date()
    readable = [
        replace(result, url=shown, published=day)
        if (shown, day) != (result.url, result.published)
        else result
        for result, day in ((one, _day(one.published, now)) for one in found)
        if (shown := plain_url(result.url, allow)) is not None
    ]
    rules = Rules(query.allowed_domains, query.blocked_domains)
    inside = readable
    if rules != ANYWHERE:
        blocked = Rules((), query.blocked_domains)
        inside = [
            r for r in readable if rules.passes_url(r.url) and blocked.passes_url(_shown(r.url))
        ]
    fresh = inside
    if query.time_range and "time_range" not in respected:
        # A day more, for places where it is still yesterday.
        days = timedelta(days=_DAYS[query.time_range] + 1)
        oldest = (now - days).isoformat()
        fresh = [result for result in inside if (result.published or oldest) >= oldest]
    outside, stale = len(readable) - len(inside), len(inside) - len(fresh)
    return Checked(tuple(fresh), outside, stale, len(found) - len(readable))


def _day(published: str | None, today: date) -> str | None:
    """Returns the date, None for what is none or lies behind the tomorrow of the first places."""
    try:
        day = date.fromisoformat(published or "")
    except ValueError:
        return None
    return day.isoformat() if day <= today + timedelta(days=1) else None


def filtered(query: Query, outside: int, stale: int) -> Filtered | None:
    """Names the rules that removed results; None if none did."""
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    told = [f"{name}={','.join(r)}" for name, r in rules if r] if outside else []
    told += [f"time_range={query.time_range}"] if stale else []
    return Filtered("; ".join(told), outside + stale, lifted=False) if told else None


def ranked(lists: Iterable[Sequence[SearchResult]], most: int) -> tuple[SearchResult, ...]:
    """Returns at most so many results of several engines, each page once, cleaned.

    The order of each engine is kept. A page that two engines have found counts for both.
    """
    pages, scores = dict[str, SearchResult](), defaultdict[str, float](float)
    for found in lists:
        own = {url_key(one.url): one for one in reversed(found)}  # the first at an address stays
        for place, key in enumerate(dict.fromkeys(url_key(one.url) for one in found)):
            known = pages.setdefault(key, own[key])
            pages[key] = replace(known, published=known.published or own[key].published)
            scores[key] += 1 / (_FLATNESS + place)
    best = sorted(scores, key=lambda key: -scores[key])
    return tuple(cleaned(pages[key]) for key in best[:most])


def cleaned(result: SearchResult) -> SearchResult:
    """Returns `result` without what nobody should see, on one line each."""
    title, snippet = result.title[:MOST_TEXT], result.snippet[:MOST_TEXT]
    return SearchResult(
        one_line(title, LONGEST_TITLE) or result.url,
        result.url,
        one_line(snippet, LONGEST_SNIPPET),
        result.source,
        result.published,
        result.invisible + cleaned_text(title)[1] + cleaned_text(snippet)[1],
    )
