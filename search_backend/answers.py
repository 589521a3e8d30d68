"""What engines that answer in JSON have in common: lists found, text and dates made plain.

An answer without anything to show is "nothing found" only where it says so: an empty list, in the
place where the list belongs. Whatever else has no results has failed (see `refusals`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from search_backend.clean import plain
from search_backend.errors import EngineError
from search_backend.http_values import HttpResponse
from search_backend.refusals import challenged, failure, proof_wanted, refusal
from search_backend.types import Query, SearchResult

MOST_SITES = 8
MOST_ROWS = 100  # of an answer; no engine is asked for more than a quarter of that
LONGEST_URL = 8_192
_AGO = re.compile(r"(\d{1,3}|an?|one) (minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0}
_FORMATS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%m/%d/%Y", "%Y/%m/%d")


def checked(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> Any:
    """The JSON of a good answer. Raises EngineError; `quota`: statuses that mean "used up"."""
    status = response.status
    if not 200 <= status < 300:
        raise refusal(response, title, quota)
    with suppress(ValueError, RecursionError):
        return json.loads(response.body)
    if status == 202 or challenged(response):
        raise proof_wanted(title, status)
    if b"<" in response.body[:500]:
        raise EngineError(
            "parse",
            f"{title} answered with a page instead of JSON.",
            "Check the engine's address.",
        )
    raise EngineError(
        "parse", f"{title}'s answer is not valid JSON.", "Try again, or use another engine."
    )


def rows(value: Any, *path: str, title: str, sign: str = "") -> list[Mapping[str, Any]]:
    """The first objects of the list at `path`. Raises EngineError for an answer that has none
    there; one that leaves out an empty list is known by having the key `sign`."""
    found = value
    for key in path:
        if not isinstance(found, Mapping):
            raise misshapen(title)
        found = found.get(key)
        if found is None:
            break
    if not found and isinstance(value, Mapping):
        if told := failure(value, title, empty=found == [] or sign in value):
            raise told
        if found is None and sign in value:
            return []
    if not isinstance(found, list):
        raise misshapen(title)
    objects = [row for row in found[:MOST_ROWS] if isinstance(row, Mapping)]
    if found and not objects:
        raise misshapen(title)
    return objects


def usable(made: Iterable[SearchResult | None], title: str) -> list[SearchResult]:
    """The results. Raises EngineError when there are rows, and none has a web address."""
    listed = list(made)
    results = [one for one in listed if one is not None]
    if listed and not results:
        raise misshapen(title)
    return results


def misshapen(title: str) -> EngineError:
    """The answer is JSON, but not what this engine promises."""
    return EngineError(
        "parse",
        f"{title}'s answer has not the expected shape.",
        "Check the engine's address; if it is right, this engine has changed.",
    )


def result(
    source: str, url: object, title: object, snippet: object, date: object = None
) -> SearchResult | None:
    """A result with plain text, or None when it has no web address."""
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        return None
    url = url.strip()
    if not url.startswith(("http://", "https://")):
        scheme, _, rest = url.partition("://")
        if scheme.lower() not in ("http", "https"):
            return None
        url = f"{scheme.lower()}://{rest}"
    return SearchResult(plain(title) or url, url, plain(snippet), source, iso_date(date))


def iso_date(value: object, now: datetime | None = None) -> str | None:
    """YYYY-MM-DD of the ways in which engines write dates, also "3 days ago"; None if unknown."""
    if not isinstance(value, str) or not 4 <= len(value) <= 60:
        return None
    text = value.strip()
    if re.match(r"\d{4}-\d\d-\d\d", text):
        with suppress(ValueError):
            return datetime.fromisoformat(text[:10]).date().isoformat()
        return None
    if ago := _AGO.fullmatch(text):
        count = float(ago[1]) if ago[1].isdigit() else 1.0
        then = (now or datetime.now(UTC)) - timedelta(days=count * _DAYS[ago[2].lower()])
        return then.date().isoformat()
    for form in _FORMATS:
        with suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    with suppress(ValueError, TypeError, IndexError):
        return parsedate_to_datetime(text).date().isoformat()
    return None


def with_sites(query: Query) -> str:
    """The query text with site: terms, for engines that know domains only inside the query."""
    text = query.text
    if sites := query.allowed_domains[:MOST_SITES]:
        terms = " OR ".join(f"site:{site}" for site in sites)
        text += f" ({terms})" if len(sites) > 1 else f" {terms}"
    for site in query.blocked_domains[:MOST_SITES]:
        text += f" -site:{site}"
    return text


def base(keys: Mapping[str, str], name: str, default: str) -> str:
    """A base URL as set, without the slash at its end."""
    url = (keys.get(name) or default).strip().rstrip("/")
    if not url.startswith(("http://", "https://")) or not url.isascii() or " " in url:
        raise EngineError(
            "config",
            f"{name} is not a web address: {url[:100]!r}.",
            "Write it with http:// or https://, e.g. http://localhost:8080.",
        )
    return url
