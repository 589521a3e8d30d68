"""Classifies Gemini's errors, of an HTTP status or inside a stream that began with status 200.

The body, not a header, names the delay before a retry. Waiting does not bring back a daily quota.

Spec: https://ai.google.dev/gemini-api/docs/troubleshooting
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.refusals import TOO_LONG, Refusal

_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_MISSING"})
_BUSY = frozenset({"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"})
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{0,9})?)s")  # 47.434392449s
_SEARCH_WORDS = re.compile(
    r"google_?\s?search|search grounding|search as (?:a )?tool|grounding is not|url_?\s?context"
    r"|built-in tools|server_?side_?tool|tool use with function calling",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(r"thought[\s_-]*signature|continuation[\s_-]*token", re.IGNORECASE)
_TURNS = re.compile(r"function (?:call|response) (?:turn|part)", re.IGNORECASE)


def classify(details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
    """Returns our error for an error object {code, message, status, details}."""
    if refusal.status is None and isinstance(details.get("code"), int):
        refusal = replace(refusal, status=details["code"])
    status, name = refusal.status or 0, str(details.get("status") or "")
    text, causes = str(details.get("message") or ""), list(_details(details))
    bad_key = any(d.get("reason") in _KEY_REASONS for d in causes) or "API key not valid" in text
    if status == 401 or bad_key:
        return refusal.unauthorized("GEMINI_API_KEY")
    if status == 429 or name == "RESOURCE_EXHAUSTED":
        return _exhausted(causes, text, refusal)
    if name in _BUSY or status >= 500 or status in (408, 409, 499):
        return refusal.failed(_delay(causes))
    if status == 403 or name in ("PERMISSION_DENIED", "FAILED_PRECONDITION"):
        remedy = "Check the key's project, its billing and where the service is offered."
        return refusal.forbidden(remedy)
    if status == 404 or name == "NOT_FOUND":
        remedy = "Check GEMINI_BASE_URL; it usually ends in /v1beta."
        return refusal.no_model() if details else refusal.wrong_address("the Gemini API", remedy)
    if _SIGNATURE.search(text):  # a missing one gets the documented placeholder
        return refusal.no_history() if "missing" in text.lower() else refusal.no_thinking()
    if _TURNS.search(text):
        return refusal.no_history()
    if _SEARCH_WORDS.search(text):
        return refusal.no_search(" here")
    return refusal.too_long() if TOO_LONG.search(text) else refusal.bad_request()


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


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    yield from (d for d in found if isinstance(d, dict)) if isinstance(found, list) else ()


def _delay(details: list[Mapping[str, Any]]) -> float | None:
    """Returns the seconds to wait."""
    delays = (_DELAY.fullmatch(str(detail.get("retryDelay") or "")) for detail in details)
    return next((float(delay[1]) for delay in delays if delay), None)
