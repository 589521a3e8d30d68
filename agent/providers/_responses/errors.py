"""Classifies the provider's errors: HTTP answers, `error` events and failed responses.

A rate limit or an empty account may also show inside a stream that began with status 200.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.refusals import TOO_LONG, Refusal

# Error codes of OpenAI and of the servers that follow it.
CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    | {"credit_balance_exhausted", "organization_spend_limit_exceeded"}
    | {"project_spend_limit_exceeded", "organization_usage_limit_exceeded"}
)
RATE_CODES = frozenset(
    {"rate_limit_exceeded", "slow_down", "rate_limit_error", "too_many_requests"}
)
OVERLOAD_CODES = frozenset(
    {"server_error", "server_is_overloaded", "service_unavailable_error", "overloaded_error"}
    | {"vector_store_timeout"}
)
# Items that the server cannot decrypt, find or match. What someone wrote into them is not meant.
_HISTORY = re.compile(
    r"encrypted[ _]content|without its required|item (?:with id )?\S{1,80} not found"
    r"|items are not persisted|duplicate item|no tool (?:output|call) found|an id that begins with"
    r"|(?:decrypt|verify|parse).{0,40}\breasoning|\breasoning (?:item|content)\b.{0,60}"
    r"(?:decrypt|expired|signature|mismatch|corrupt|not found)"
    r"|\binput\[\d+\](?!\.(?:content|output|arguments|name))"
)


def classify(key: str, address: str, details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
    """Returns our error for an error object {message, type, param, code}.

    `key` and `address` name the settings of the vendor.
    """
    codes, status = {str(details.get("code")), str(details.get("type"))}, refusal.status or 0
    param, text = str(details.get("param") or ""), str(details.get("message") or "").lower()
    if codes & CREDIT_CODES:
        return refusal.no_credit()
    if status == 401 or "invalid_api_key" in codes:
        return refusal.unauthorized(key)
    if status == 429 or codes & RATE_CODES:
        return refusal.too_many()
    if codes & OVERLOAD_CODES or status >= 500 or status in (408, 409):
        return refusal.failed()
    if status == 403:
        return refusal.forbidden("Use a key of a project that has access, or another model.")
    if _HISTORY.search(f"{param} {text} {' '.join(codes)}"):
        return refusal.no_history()
    if "context_length_exceeded" in codes or TOO_LONG.search(text):
        return refusal.too_long()
    if "model_not_found" in codes or (status == 404 and param == "model"):
        return refusal.no_model()
    if status == 404 and not details:
        remedy = f"Check {address}; it usually ends in /v1."
        return refusal.wrong_address("the Responses API", remedy)
    if "web_search" in text or "hosted tool" in text or "web search" in text:
        return refusal.no_search()
    return refusal.bad_request()
