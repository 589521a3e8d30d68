"""What the provider's errors mean, in our words, and who must act.

The same classification serves an HTTP status and an `error` inside a stream that began with status
200. How long to wait is said in the body, not in a header; a quota counted by the day does not come
back by waiting.

Spec: https://ai.google.dev/gemini-api/docs/troubleshooting
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.errors import NativeSearchRejected, ProviderError
from agent.retry import parse_retry_after

_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_MISSING"})
_BUSY = frozenset({"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"})
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{0,9})?)s")
_SEARCH_WORDS = re.compile(
    r"google_?\s?search|search grounding|search as (?:a )?tool|grounding is not|url_?\s?context"
    r"|built-in tools|server_?side_?tool|tool use with function calling",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"exceeds the maximum number of (?:input )?tokens|token count .{0,40}exceeds|context length",
    re.IGNORECASE,
)
_KEY_LIKE = re.compile(r"\bAIza[\w\-]{6,}|\bAQ\.[\w\-]{6,}|\bBearer\s+\S+|\bkey=[^\s&]+")
_QUOTE = 240


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: str, key: str
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400; `server` is how we call it."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    error = classify(error_of(value) or {}, status, server, key)
    if error.retry_after is None:
        error.retry_after = parse_retry_after(headers)
    return error


def error_of(value: Any) -> Mapping[str, Any] | None:
    """The error object in an answer, which may lie in a list of one; None when there is none."""
    if isinstance(value, list):
        return next((found for found in map(error_of, value) if found), None)
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, dict) and error else None


def classify(
    error: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """An error object ({code, message, status, details}) as one of ours."""
    if status is None:
        status = error["code"] if isinstance(error.get("code"), int) else None
    name, details = str(error.get("status") or ""), list(_details(error))
    said = _quote(error.get("message"), key)
    text = str(error.get("message") or "")
    if (
        status == 401
        or any(d.get("reason") in _KEY_REASONS for d in details)
        or "API key not valid" in text
    ):
        return ProviderError(
            "unauthorized",
            f"{server} does not accept the key.",
            "Check GEMINI_API_KEY: it must be complete and belong to this server.",
            status=status,
        )
    if status == 429 or name == "RESOURCE_EXHAUSTED":
        return _exhausted(details, text, status, server, said)
    if name in _BUSY or (status is not None and (status >= 500 or status in (408, 409, 499))):
        return ProviderError(
            "server_error",
            f"{server} could not answer right now.{said}",
            "Try again.",
            status=status,
            retryable=True,
            retry_after=_delay(details),
        )
    return _refused(error, name, status, server, said)


def _exhausted(
    details: list[Mapping[str, Any]], text: str, status: int | None, server: str, said: str
) -> ProviderError:
    """A limit by the minute is waited for; one by the day, or of nothing at all, is not."""
    violations = [v for d in details for v in d.get("violations") or () if isinstance(v, dict)]
    words = " ".join(str(v.get("quotaId") or v.get("quotaMetric") or "") for v in violations)
    words += " ".join(str(d.get("reason") or "") for d in details)
    never = any(str(v.get("quotaValue")) == "0" for v in violations) or "limit: 0" in text
    if "PerDay" in words or "per_day" in words.lower() or never or "credits are depleted" in text:
        return ProviderError(
            "quota",
            f"The quota of this key at {server} is used up.{said}",
            "Wait for the next day, enable billing, or choose another model.",
            status=status,
        )
    return ProviderError(
        "rate_limited",
        f"{server} asks for fewer requests.{said}",
        "Wait a little and try again.",
        status=status,
        retryable=True,
        retry_after=_delay(details),
    )


def _refused(
    error: Mapping[str, Any], name: str, status: int | None, server: str, said: str
) -> ProviderError:
    """Errors that the same request would meet again."""
    text = str(error.get("message") or "")
    if status == 403 or name in ("PERMISSION_DENIED", "FAILED_PRECONDITION"):
        code, what = "forbidden", f"{server} does not allow this with this key.{said}"
        remedy = "Check the key's project, its billing and where the service is offered."
    elif status == 404 or name == "NOT_FOUND":
        if not error:
            code, what = "bad_url", f"{server} does not offer the Gemini API at this address."
            remedy = "Check GEMINI_BASE_URL; it usually ends in /v1beta."
        else:
            code, what = "model_not_found", f"{server} has no such model for this key.{said}"
            remedy = "Run `searchloop models` to see which there are."
    elif _SEARCH_WORDS.search(text):
        return NativeSearchRejected(
            "native_search_rejected",
            f"The model does not search by itself here.{said}",
            "Choose local search, or another model.",
            status=status,
        )
    elif _TOO_LONG.search(text):
        code, what = "context_length", f"The conversation is too long for the model.{said}"
        remedy = "Start a new session, or choose a model with a larger context."
    else:
        code, what = "bad_request", f"{server} refused the request.{said}"
        remedy = "Change the model or the options of the request."
    return ProviderError(code, what, remedy, status=status)


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    yield from (d for d in found if isinstance(d, dict)) if isinstance(found, list) else ()


def _delay(details: list[Mapping[str, Any]]) -> float | None:
    """Seconds to wait, given as `47.434392449s`."""
    for detail in details:
        match = _DELAY.fullmatch(str(detail.get("retryDelay") or ""))
        if match:
            return float(match[1])
    return None


def _quote(message: object, key: str) -> str:
    """The provider's own words, short and without anything that looks like a key."""
    if not isinstance(message, str) or not message.strip():
        return ""
    text = message.replace(key, "[key]") if len(key) >= 8 else message
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    return f" It says: {text[: _QUOTE - 1]}…" if len(text) > _QUOTE else f" It says: {text}"
