"""Why an engine gave no results: refusals told apart by status, headers and the engine's own words.

A status alone says little: the same 429 means "a second too early" here and "your month is used
up" there, a 403 comes from the engine or from a guard in front of it, and some say 200 and put the
failure into the body.

Spec: RFC 9110 15, 10.2.3 (Retry-After); RFC 6585 4
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from search_backend.challenge import judge
from search_backend.clean import one_line, plain
from search_backend.errors import EngineError
from search_backend.http_values import HttpResponse

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


def refusal(response: HttpResponse, title: str, quota: Iterable[int] = (402,)) -> EngineError:
    """The error that an answer with a status other than 2xx stands for."""
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
    """The error that an answer of status 200 tells of; None when it tells of none. `empty`: it has
    a list of results, with nothing in it, so a mere message need not be a complaint."""
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
            f"{title} limits the rate of requests ({told}){wait}.",
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


def challenged(response: HttpResponse, status: int = 200) -> bool:
    """Whether it is a page that wants proof of a person, or tells of a guard's refusal."""
    text = response.body[:20_000].decode("utf-8", "replace")
    if "<" not in text[:500]:
        return False
    tag = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
    # The pages of a guard name its incident also where only the server behind it is down.
    words = "" if status >= 500 else plain(text)[:2_000]
    return judge(200, plain(tag[1]) if tag else "", words)[0] == "blocked"


def proof_wanted(title: str, status: int) -> EngineError:
    """The error for such a page."""
    return EngineError(
        "blocked",
        f"{title} wants proof that a person is asking (HTTP {status} with a challenge).",
        "Wait, or use another engine.",
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until the server wants to be asked again, by Retry-After or x-ratelimit-reset."""
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
    """(remaining, seconds to the reset) of each window that the server counts in."""
    try:
        remaining = [float(n) for n in headers.get("x-ratelimit-remaining", "").split(",")]
        resets = [float(n) for n in headers.get("x-ratelimit-reset", "").split(",")]
    except ValueError:
        return []
    # More than thirty years of seconds are a point in time.
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
    """The status that a body gives itself, also as 40203 for 402; 0 for none of a failure."""
    error = value.get("error")
    inner = error if isinstance(error, Mapping) else {}
    named = [value.get(key) for key in ("code", "status", "statusCode")]
    for number in (*named, inner.get("code"), inner.get("status")):
        text = str(number)
        if re.fullmatch(r"[45][0-9]{2}([0-9]{2})?", text):
            return int(text[:3])
    return 0


def _said(response: HttpResponse) -> str:
    """The engine's own words for a refusal, wherever it put them."""
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
