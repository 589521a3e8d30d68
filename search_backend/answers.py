"""What engines that answer in JSON have in common: refusals told apart, text and dates made plain.

A status alone says little: the same 429 means "a second too early" here and "your month is used
up" there. So the headers and the words of the answer are read as well.

Spec: RFC 9110 15, 10.2.3 (Retry-After); RFC 6585 4
"""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from search_backend.challenge import judge
from search_backend.clean import one_line
from search_backend.errors import EngineError
from search_backend.http_values import HttpResponse
from search_backend.types import Query, SearchResult

MOST_SITES = 8
LONGEST_RETRY = 31 * 24 * 3600.0
_QUOTA = re.compile(
    r"credit|quota|billing|payment|plan.?limit|usage.?limit|monthly|weekly", re.IGNORECASE
)
_AUTH = re.compile(
    r"api.?key|token|unauthori[sz]ed|authenticat|credential|forbidden|sign.?in", re.IGNORECASE
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_AGO = re.compile(r"(\d{1,3}|an?|one) (minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0}
_FORMATS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%m/%d/%Y", "%Y/%m/%d")


def checked(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> Any:
    """The JSON of a good answer. Raises EngineError; `quota`: statuses that mean "used up"."""
    status = response.status
    if not 200 <= status < 300:
        raise refusal(response, title, quota)
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        pass
    text = response.body[:20_000].decode("utf-8", "replace")
    if "<" in text[:500] or status == 202:
        title_tag = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        name = html.unescape(title_tag[1]) if title_tag else ""
        if status == 202 or judge(200, name, plain(text)[:2_000])[0] == "blocked":
            raise EngineError(
                "blocked",
                f"{title} wants proof that a person is asking (HTTP {status} with a challenge).",
                "Wait, or use another engine.",
            )
        raise EngineError(
            "parse",
            f"{title} answered with a page instead of JSON.",
            "Check the engine's address.",
        )
    raise EngineError(
        "parse", f"{title}'s answer is not valid JSON.", "Try again, or use another engine."
    )


def refusal(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> EngineError:
    """The error that an answer with a status other than 2xx stands for."""
    status, said = response.status, _said(response)
    told = f"HTTP {status}" + (f": {said}" if said else "")
    retry = retry_after(response.headers)
    if status in quota or (status in (400, 403, 429) and _used_up(response, said)):
        return EngineError(
            "quota",
            f"The quota of {title} is used up ({told}).",
            f"Raise the limit in your account at {title}, or use another engine.",
            retry,
        )
    if status == 429:
        wait = f"; it may be asked again in {retry:.0f} s" if retry else ""
        return EngineError(
            "rate",
            f"{title} limits the rate of requests (HTTP 429){wait}.",
            "Wait, or use another engine.",
            retry,
        )
    if status in (401, 403) or (status in (400, 422) and _AUTH.search(said)):
        return EngineError(
            "auth", f"{title} does not accept the key ({told}).", "Check the key of this engine."
        )
    if status in (408, 409, 425) or status >= 500:
        return EngineError(
            "network",
            f"{title} has a fault ({told}).",
            "Try again later, or use another engine.",
            retry,
        )
    if 300 <= status < 400:
        return EngineError(
            "config",
            f"{title} redirects to another address (HTTP {status}), which is not followed.",
            "Set the engine's address to the final one.",
        )
    return EngineError(
        "config",
        f"{title} did not accept the request ({told}).",
        "Check the engine's address and settings, or change the query.",
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until the server wants to be asked again, by Retry-After or x-ratelimit-reset."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return min(float(value), LONGEST_RETRY)
    if value:
        with suppress(ValueError, TypeError, OverflowError):
            left = parsedate_to_datetime(value).timestamp() - time.time()
            return min(max(left, 0.0), LONGEST_RETRY)
    waits = [reset for remaining, reset in _windows(headers) if remaining <= 0]
    return min(max(waits), LONGEST_RETRY) if waits else None


def _windows(headers: Mapping[str, str]) -> list[tuple[float, float]]:
    """(remaining, seconds to the reset) of each window that the server counts in."""
    try:
        remaining = [float(n) for n in headers.get("x-ratelimit-remaining", "").split(",")]
        resets = [float(n) for n in headers.get("x-ratelimit-reset", "").split(",")]
    except ValueError:
        return []
    # A reset beyond a century from now is a point in time, not a number of seconds.
    now = time.time()
    resets = [reset - now if reset > 3e9 / 3 else reset for reset in resets]
    return list(zip(remaining, resets, strict=False))


def _used_up(response: HttpResponse, said: str) -> bool:
    windows = _windows(response.headers)
    long_one_is_empty = any(left <= 0 and reset > 24 * 3600 for left, reset in windows)
    return long_one_is_empty or _QUOTA.search(said) is not None


def _said(response: HttpResponse) -> str:
    """The engine's own words for a refusal, wherever it put them."""
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError):
        text = response.body[:2_000].decode("utf-8", "replace")
        return "" if "<" in text else one_line(text, 160)
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, dict):
            break
        keys = ("message", "detail", "error", "readableMessage", "code", "msg")
        value = next((value[key] for key in keys if value.get(key)), "")
    return plain(value)[:160] if isinstance(value, str) else ""


def rows(value: Any, *path: str, title: str) -> list[Mapping[str, Any]]:
    """The list of objects at `path`. A missing or null list is empty, another thing an error."""
    for key in path:
        if not isinstance(value, Mapping):
            raise misshapen(title)
        value = value.get(key)
        if value is None:
            return []
    if not isinstance(value, list):
        raise misshapen(title)
    return [row for row in value if isinstance(row, Mapping)]


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
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    return SearchResult(plain(title) or url, url.strip(), plain(snippet), source, iso_date(date))


def plain(value: object) -> str:
    """Text without markup and entities, of what may be anything."""
    if not isinstance(value, str):
        return ""
    text = value
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    return text.strip()


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
