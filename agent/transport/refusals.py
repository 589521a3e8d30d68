"""Words the errors of servers that refuse a request, and computes the delays between retries.

A request has three tries with jittered backoff and waits one minute in all.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from searchloop.agent.errors import NativeSearchRejected, ProviderError
from searchloop.agent.transport.exchange import FAULTS
from searchloop.agent.types import Request
from searchloop.analysis.redaction import redacted

_KEY_LIKE = re.compile(
    r"\b(?:sk|rk|pk|sess|key|gsk|[a-z]ai)-[\w*.\-]{6,}|\bAIza[\w\-]{6,}|\bAQ\.[\w\-]{6,}"
    r"|\bBearer\s+\S+|\bkey=[^\s&]+",
    re.IGNORECASE,
)
# What servers say of a request that is longer than the model's window, in any of the dialects.
TOO_LONG = re.compile(
    r"context[ _](?:length|size|window|limit)|maximum (?:context|prompt length)"
    r"|max(?:imum)?[ _](?:model|seq)[ _]len"
    r"|too many (?:input |prompt )?tokens|too_many_prompt_tokens|tokens`? must (?:be <=|have less)"
    r"|(?:prompt|input|messages|request|conversation) (?:(?:is|are|was) )?too (?:long|large)"
    r"|\binput length\b|token (?:count|limit)\b.{0,40}exceed"
    r"|number of (?:input )?tokens\b.{0,40}(?:exceed|greater|allowed)",
    re.IGNORECASE,
)
_TOOL = re.compile(r"tool|function|search|grounding|url.?context", re.IGNORECASE)
_FILES = re.compile(
    r"image|vision|multi.?modal|mmproj|input_file|\bpdf\b|\bfiles?\b|document|media.?type"
    r"|inlinedata|unknown variant|not.{0,12}string"
    r"|content.{0,20}(?:must|should|expected).{0,20}(?:string|text)",
    re.IGNORECASE | re.DOTALL,
)
_CHOSEN = re.compile(r"domain|country|invalid schema for function", re.IGNORECASE)
_HTML = re.compile(r"<(?:!doctype|html|head|body|title|h1)\b", re.IGNORECASE)
# "Please try again in 1.2s.", "Please retry after 12 seconds."
_WAIT = re.compile(
    r"(?:again|retry) (?:in|after) (\d{1,6}(?:\.\d{1,9})?) ?(m?s)(?:ec|\b)", re.IGNORECASE
)
_QUOTE = 240
_LIMITS = ("rate_limited", "usage_limit")
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
TRIES = 3
FIRST = 0.5
CAP = 8.0
TOTAL = 60.0


# After these another try may go well.
_RETRYABLE = frozenset({"rate_limited", "server_error", "tool_call_slip"})


class Refusal(NamedTuple):
    """An answer that is an error, `said` in the server's words."""

    server: str
    said: str = ""
    status: int | None = None

    def error(self, code: str, what: str = "", **words: str) -> ProviderError:
        """Makes the error of this code in the words of faults.toml; `what` replaces the message.

        The words of a server that refuses a key are left out: they may quote it.
        """
        message, remedy = FAULTS["refusals"][code]
        message = what or message.format(server=self.server, **words)
        said = "" if code == "unauthorized" else self.said
        remedy = words.get("remedy") or remedy.format(**words)
        again = code in _RETRYABLE
        error = ProviderError(code, message + said, remedy, status=self.status, retryable=again)
        if code == "rate_limited" and (wait := _WAIT.search(said)):
            error.retry_after = float(wait[1]) / (1000 if wait[2].lower() == "ms" else 1)
        return error


def quoted(message: object, key: str = "") -> str:
    """Quotes the server in short, without anything that looks like a key; "" for no words."""
    if not isinstance(message, str):
        return ""
    text = sentence(redacted(message, [key], "[key]"))
    return f" It says: {text}" if text else ""


def sentence(text: str) -> str:
    """Returns a server's words in short, with a full stop and nothing like a key; "" for HTML."""
    text = "" if _HTML.search(text) else " ".join(_KEY_LIKE.sub("[key]", text).split())
    if len(text) > _QUOTE:
        return f"{text[: _QUOTE - 1]}…"
    return f"{text}." if text and text[-1] not in ".!?…。！？" else text


def blamed(error: ProviderError, body: bytes, request: Request) -> ProviderError:
    """Returns the error for what a refused request brings and `body` may blame.

    That is files, or the provider's own search. Servers word this in their own ways; a
    wrong guess costs one try without it.
    """
    text = body.decode("utf-8", "replace")
    refused = error.code == "bad_request"
    asked = refused or (error.code not in _LIMITS and error.status not in (401, 402, 403))
    make, code, what = ProviderError, "", ""
    if asked and any(m.attachments for m in request.messages) and _FILES.search(text):
        code, what = "files_refused", "send the question without the files"
    elif refused and request.native_search and _TOOL.search(text) and not _CHOSEN.search(text):
        make, code, what = NativeSearchRejected, "native_search_rejected", "choose local search"
    remedy = f"Choose another model, or {what}."
    return make(code, error.message, remedy, status=error.status) if code else error


def with_wishes(error: ProviderError, headers: Mapping[str, str]) -> ProviderError:
    """Sets `retry_after` and `retryable` from the headers; `x-should-retry` is in common use."""
    told = parse_retry_after(headers)
    error.retry_after = error.retry_after if told is None else told
    wish = headers.get("x-should-retry")
    if wish in ("true", "false") and error.code != "quota":
        error.retryable = wish == "true"
    return error


def with_delay(error: ProviderError) -> ProviderError:
    """Says in the remedy how long to wait, if the server said it."""
    if error.retry_after and error.code in _LIMITS:
        other = error.remedy.partition(", or ")[2]
        remedy = f"Try again in {_span(error.retry_after)}"
        error.remedy = f"{remedy}, or {other}" if other else f"{remedy}."
    return error


def _span(seconds: float) -> str:
    size, unit = next((s, u) for s, u in _UNITS if seconds >= s or s == 1)
    count = math.ceil(seconds / size)
    return f"{count} {unit}{'s' * (count != 1)}"


@dataclass(slots=True)
class Delays:
    """The delays between the tries of one request. `uniform` returns numbers in [0, 1)."""

    uniform: Callable[[], float] = random.random
    _failed: int = 0
    _waited: float = 0.0

    def next(self, retry_after: float | None) -> float | None:
        """Returns the seconds before the next try, as the server wants them; None to give up."""
        wait = retry_after
        if wait is None:
            wait = self.uniform() * min(CAP, FIRST * 2**self._failed)
        self._failed += 1
        self._waited += wait
        return None if self._failed >= TRIES or self._waited > TOTAL else wait


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Reads `retry-after-ms`, then `retry-after`: the delay in seconds, None if there is none.

    `headers` have lower-case names; `now` is in epoch seconds.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        return seconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None
