"""Reads the answers of engines and services: JSON rows, plain text, dates, and refusals.

An answer without results is "nothing found" only if it says so by an empty list in the right place;
any other one is a failure. A status says little: 429 means "a second too early" or "your month is
used up", a 403 comes from the engine or from a wall in front of it, and some APIs answer 200 with
an error in the body. So headers and the engine's own words decide as well.

Spec: RFC 9110 15, 10.2.3 (Retry-After); RFC 6585 4
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from searchloop.analysis.dates import iso_date
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.plugin.challenge_pages import is_challenge, is_named, signs_in_words
from searchloop.search_backend.plugin.markup import MOST_ROWS
from searchloop.search_backend.text.clean import decode, one_line, plain, snippet_text
from searchloop.search_backend.types import EngineError, PageStatus, Problem, Query, SearchResult

LONGEST_RETRY = 31 * 24 * 3600.0
MOST_SAID = 160
_QUOTA = re.compile(
    r"credit|quota|balance|billing|payment|plan.?limit|usage.?limit|monthly|weekly", re.IGNORECASE
)
# What is over after seconds, whatever else it is called.
_RATE = re.compile(r"rate.?limit|too.?many.?requests|throttl|per.?(second|minute)", re.IGNORECASE)
_AUTH = re.compile(
    r"api.?key|unauthori[sz]ed|authenticat|credential|forbidden|sign.?in|permission"
    r"|(access|api|auth|bearer|invalid|missing|expired|bad).?token"
    r"|\btoken (is |was |has )?(not|invalid|missing|expired|revoked)",
    re.IGNORECASE,
)
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
MOST_SITES = 8
LONGEST_URL = 8_192

_REFUSING = frozenset({403, 429, 503})
_USE_ANOTHER = "Use another source; the site may open in a person's browser."


def judge(status: int, challenged: bool = False) -> tuple[PageStatus, Problem | None]:
    """Decides what is wrong with a page of this status; ("ok", None) if nothing."""
    if challenged or status in _REFUSING or status == 451:
        if status == 429:
            message = "The site limits how often it may be asked (HTTP 429)."
        elif challenged:
            message = "The site wants proof that a person is asking, not a program."
        else:
            message = f"The site refused to show the page to a program (HTTP {status})."
        return "blocked", Problem("blocked", message, _USE_ANOTHER)
    if status in (401, 407):
        what = f"The page needs a login (HTTP {status})."
        return "error", Problem("login_required", what, "Use a public source.")
    if status in (404, 410):
        what = f"There is no page at this address (HTTP {status})."
        return "error", Problem("not_found", what, "Search for the page; it may have moved.")
    if status >= 400:
        fault = "The site has a fault" if status >= 500 else "The site did not accept the request"
        what = f"{fault} (HTTP {status})."
        return "error", Problem(f"http_{status}", what, "Try again later, or use another source.")
    return "ok", None


def refusal(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> EngineError:
    """Returns the error for an answer whose status is not 2xx."""
    status = response.status
    if status in (401, 403, 503) and challenged(response, status):
        return proof_wanted(title, status)
    said = _said(response)
    used_up = status in quota or (
        status in (400, 403, 429) and _used_up(response, said, soon=status == 429)
    )
    silent = not said or (status == 429 and not used_up)
    told = f"HTTP {status}" if silent else f"HTTP {status}: {said}"
    return _error(402 if used_up else status, told, said, title, retry_after(response.headers))


def failure(value: Any, title: str, *, empty: bool) -> EngineError | None:
    """Returns the error that the body of a status 200 reports, or None.

    With `empty`, it has an empty list of results, so a mere message is no complaint.
    """
    if not isinstance(value, Mapping):
        return None
    status = _status(value)
    complaints = ("error", "errors") if empty else ("error", "errors", "detail", "message", "msg")
    failed = value.get("success") is False or value.get("status") == "error"
    if not status and not failed and not any(value.get(key) for key in complaints):
        return None
    said = _words(value)
    if not status:
        hints = ((429, _RATE), (402, _QUOTA), (401, _AUTH))
        status = next((code for code, words in hints if words.search(said)), 500)
    return _error(status, f"HTTP 200, but it says: {said or 'an error'}", said, title, None)


def _error(status: int, told: str, said: str, title: str, retry: float | None) -> EngineError:
    if status == 402:
        what = f"The quota of {title} is used up ({told})."
        remedy = f"Raise the limit in your account at {title}, or use another engine."
        return EngineError("quota", what, remedy, retry)
    if status == 429:
        wait = f"; it may be asked again in {retry:.0f} s" if retry else ""
        what = f"{title} limits the rate of requests ({told}){wait}."
        return EngineError("rate", what, "Wait, or use another engine.", retry)
    if status in (401, 403) or (status in (400, 422) and _AUTH.search(said)):
        what = f"{title} does not accept the key ({told})."
        return EngineError("auth", what, "Check the key of this engine.")
    if status in (408, 409, 425) or status >= 500:
        what = f"{title} has a fault ({told})."
        return EngineError("network", what, "Try again later, or use another engine.", retry)
    what = f"{title} did not accept the request ({told})."
    remedy = "Check the engine's address and settings, or change the query."
    return EngineError("config", what, remedy)


def challenged(response: HttpResponse, status: int = 200) -> bool:
    """True for a page that asks for proof of a person, or shows a wall's refusal."""
    body = response.body[:20_000]
    text = body.decode("utf-8", "replace")
    if "<" not in text[:500]:
        return False
    tag = re.search(r"<title[^<>]*+>([^<]*)", text, re.IGNORECASE)
    # The pages of a wall name its incident also where only the server behind it is down.
    words = "" if status >= 500 else plain(text)[:2_000]
    title = plain(tag[1]) if tag else ""
    # An engine answers in JSON, so words are enough to say what a page is.
    known = is_named(response.headers) or is_challenge(body, title, words)
    return known or signs_in_words(title, words[:600]) > 0


def proof_wanted(title: str, status: int) -> EngineError:
    """Returns the error for a page that asks for proof of a person."""
    what = f"{title} wants proof that a person is asking (HTTP {status} with a challenge)."
    return EngineError("blocked", what, "Wait, or use another engine.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds to wait, from Retry-After or x-ratelimit-reset; None without them."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,300}(\.[0-9]{1,300})?", value):
        return min(float(value), LONGEST_RETRY)
    if value:
        with suppress(ValueError, TypeError, OverflowError):
            then = parsedate_to_datetime(value)
            left = (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - time.time()
            return min(max(left, 0.0), LONGEST_RETRY)
    waits = [reset for remaining, reset in _windows(headers) if remaining <= 0]
    return min(max(waits), LONGEST_RETRY) if waits else None


def _windows(headers: Mapping[str, str]) -> list[tuple[float, float]]:
    """Returns (remaining requests, seconds to the reset) of each rate limit window."""
    try:
        remaining = [float(n) for n in headers.get("x-ratelimit-remaining", "").split(",")]
        resets = [float(n) for n in headers.get("x-ratelimit-reset", "").split(",")]
    except ValueError:
        return []
    # A number this large is a point in Unix time, not seconds to wait.
    now = time.time()
    resets = [reset - now if reset > 1e9 else reset for reset in resets]
    pairs = zip(remaining, resets, strict=False)
    return [(left, max(reset, 0.0)) for left, reset in pairs if math.isfinite(left + reset)]


def _used_up(response: HttpResponse, said: str, *, soon: bool) -> bool:
    windows = _windows(response.headers)
    long_one_is_empty = any(left <= 0 and reset > 24 * 3600 for left, reset in windows)
    minute = soon and re.search(r"per.?(second|minute)", said, re.IGNORECASE)
    return long_one_is_empty or (not minute and _QUOTA.search(said) is not None)


def _status(value: Mapping[str, Any]) -> int:
    """Returns the error status in a body, also from codes such as 40203; 0 if there is none."""
    error = value.get("error")
    inner = error if isinstance(error, Mapping) else {}
    named = [value.get(key) for key in ("code", "status", "statusCode")]
    for number in (*named, inner.get("code"), inner.get("status")):
        text = str(number)
        if re.fullmatch(r"[45][0-9]{2}([0-9]{2})?", text):
            return int(text[:3])
    return 0


def _said(response: HttpResponse) -> str:
    """Returns the engine's own words for a refusal."""
    try:
        return _words(json.loads(response.body))
    except (ValueError, RecursionError):
        text = response.body[:2_000].decode("utf-8", "replace")
        return "" if "<" in text else one_line(text, MOST_SAID)


def _words(value: Any) -> str:
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, dict):
            break
        keys = ("message", "detail", "error", "errors", "readableMessage", "code", "msg")
        value = next((value[key] for key in keys if value.get(key)), "")
    return one_line(plain(value), MOST_SAID)


def checked(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> Any:
    """Returns the JSON of a good answer. Raises EngineError; `quota` statuses mean "used up".

    `response` is what the engine sent, `title` its name in messages.
    """
    status = response.status
    if not 200 <= status < 300:
        raise refusal(response, title, quota)
    with suppress(ValueError, RecursionError):
        try:
            return json.loads(response.body)
        except UnicodeDecodeError:  # not UTF-8, against the rule
            declared = _CHARSET.search(response.headers.get("content-type", ""))
            return json.loads(decode(response.body, declared and declared[1]))
    raise unreadable(response, title)


def unreadable(response: HttpResponse, title: str) -> EngineError:
    """Returns the error for a good status with a body in another format than the engine's."""
    if response.status == 202 or challenged(response):
        return proof_wanted(title, response.status)
    if b"<" in response.body[:500]:
        what = f"{title} answered with a page instead of results."
        return EngineError("parse", what, "Check the engine's address.")
    what = f"{title}'s answer cannot be read."
    return EngineError("parse", what, "Try again, or use another engine.")


def rows(value: Any, *path: str, title: str, sign: str = "") -> list[Mapping[str, Any]]:
    """Returns the first objects of the list at `path`. Raises EngineError if there is no list.

    An answer with the key `sign` may leave out an empty list.

    `title` is the engine's name in messages.
    """
    found = value
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else ()  # a tuple is in no JSON
        if found is None:
            break
    if isinstance(value, Mapping) and not (found and isinstance(found, list)):
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
    """Returns the results. Raises EngineError if there are rows and none has a web address."""
    listed = list(made)
    results = [one for one in listed if one is not None]
    if listed and not results:
        raise misshapen(title)
    return results


def misshapen(title: str) -> EngineError:
    """Returns the error for JSON of another shape than the engine documents.

    `title` is the engine's name.
    """
    what = f"{title}'s answer has not the expected shape."
    remedy = "Check the engine's address; if it is right, this engine has changed."
    return EngineError("parse", what, remedy)


def result(
    source: str, url: object, title: object, snippet: object, date: object = None
) -> SearchResult | None:
    """Returns a result with plain text; None if it has no web address.

    `source` is the engine's name, `title`, `snippet` and `date` are as it sent them.
    """
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        return None
    url = url.strip()
    if not url.startswith(("http://", "https://")):
        scheme, _, rest = url.partition("://")
        if scheme.lower() not in ("http", "https"):
            return None
        url = f"{scheme.lower()}://{rest}"
    title = snippet_text(title) or url
    return SearchResult(title, url, snippet_text(snippet), source, iso_date(date))


def results(
    found: Iterable[Mapping[str, Any]], source: str, title: str, *places: str
) -> list[SearchResult]:
    """Makes results of rows whose url, title, snippet and date stand at `places`.

    A place is a key, or keys with dots; of several with blanks between them the first with a value
    counts. Raises EngineError when there are rows and none has a web address.
    """
    ways = [place.split() for place in places]
    made = (
        result(source, *(next((v for way in each if (v := at(row, way))), None) for each in ways))
        for row in found
    )
    return usable(made, title)


def at(value: Any, path: str) -> Any:
    """Returns what is at a path of keys and list positions; None where it ends early."""
    for key in filter(None, path.split(".")):
        if isinstance(value, dict):
            value = value.get(key)
        else:
            is_there = isinstance(value, list) and key.isdecimal() and int(key) < len(value)
            value = value[int(key)] if is_there else None
    return value


def with_sites(query: Query) -> str:
    """Returns the query text with site: terms, for engines without an option for domains."""
    text = query.text
    if sites := query.allowed_domains[:MOST_SITES]:
        terms = " OR ".join(f"site:{site}" for site in sites)
        text += f" ({terms})" if len(sites) > 1 else f" {terms}"
    for site in query.blocked_domains[:MOST_SITES]:
        text += f" -site:{site}"
    return text


def first_day(query: Query) -> str | None:
    """Returns the first day of the time range as YYYY-MM-DD; None without a range."""
    days = {"d": 1, "w": 7, "m": 31, "y": 366}.get(query.time_range or "")
    return (datetime.now(UTC) - timedelta(days)).date().isoformat() if days else None


def base(keys: Mapping[str, str], name: str, default: str) -> str:
    """Returns the base URL in `keys` without a final slash. Raises EngineError(config).

    `name` is a setting, `default` what holds without one.
    """
    url = (keys.get(name) or default).strip().rstrip("/")
    if not url.startswith(("http://", "https://")) or not url.isascii() or " " in url:
        what = f"{name} is not a web address: {url[:100]!r}."
        remedy = "Write it with http:// or https://, e.g. http://localhost:8080."
        raise EngineError("config", what, remedy)
    return url
