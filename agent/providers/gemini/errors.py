"""Classifies Gemini's errors, of an HTTP status or inside a stream that began with status 200.

The body, not a header, names the delay before a retry. Waiting does not bring back a daily quota.

Spec: https://ai.google.dev/gemini-api/docs/troubleshooting
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.refusals import Refusal, quoted, with_wishes
from searchloop.agent.transport.sse import document_of

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


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: str, key: str
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400; `server` is the name in messages."""
    error = error_of(document_of(body)) or {}
    return with_wishes(classify(error, status, server, key), headers)


def error_of(value: Any) -> Mapping[str, Any] | None:
    """The error object of an answer, also inside a list; None if there is none."""
    if isinstance(value, list):
        return next((found for found in map(error_of, value) if found), None)
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, dict) and error else None


def classify(
    error: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """The ProviderError for an error object: {code, message, status, details}."""
    if status is None:
        status = error["code"] if isinstance(error.get("code"), int) else None
    name, details = str(error.get("status") or ""), list(_details(error))
    refusal = Refusal(server, quoted(error.get("message"), key), status)
    text = str(error.get("message") or "")
    bad_key = any(d.get("reason") in _KEY_REASONS for d in details) or "API key not valid" in text
    if status == 401 or bad_key:
        return refusal.unauthorized("GEMINI_API_KEY")
    if status == 429 or name == "RESOURCE_EXHAUSTED":
        return _exhausted(details, text, refusal)
    if name in _BUSY or (status is not None and (status >= 500 or status in (408, 409, 499))):
        return refusal.failed(_delay(details))
    return _lasting(error, name, status, refusal)


def _exhausted(details: list[Mapping[str, Any]], text: str, refusal: Refusal) -> ProviderError:
    """A limit per minute can be retried; one per day, or a limit of zero, cannot."""
    violations = [v for d in details for v in d.get("violations") or () if isinstance(v, dict)]
    words = " ".join(str(v.get("quotaId") or v.get("quotaMetric") or "") for v in violations)
    words += " ".join(str(d.get("reason") or "") for d in details)
    never = any(str(v.get("quotaValue")) == "0" for v in violations) or "limit: 0" in text
    if "PerDay" in words or "per_day" in words.lower() or never or "credits are depleted" in text:
        what = f"The quota of this key at {refusal.server} is used up."
        remedy = "Wait for the next day, enable billing, or choose another model."
        return refusal.error("quota", what, remedy)
    return refusal.too_many(_delay(details))


def _lasting(
    error: Mapping[str, Any], name: str, status: int | None, refusal: Refusal
) -> ProviderError:
    """Errors that a retry would meet again."""
    text = str(error.get("message") or "")
    if status == 403 or name in ("PERMISSION_DENIED", "FAILED_PRECONDITION"):
        remedy = "Check the key's project, its billing and where the service is offered."
        return refusal.forbidden(remedy)
    if status == 404 or name == "NOT_FOUND":
        remedy = "Check GEMINI_BASE_URL; it usually ends in /v1beta."
        return refusal.no_model() if error else refusal.wrong_address("the Gemini API", remedy)
    if _SEARCH_WORDS.search(text):
        return refusal.no_search(" here")
    return refusal.too_long() if _TOO_LONG.search(text) else refusal.bad_request()


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
