"""What the provider's errors mean, in our words, and who must act.

The same classification serves an HTTP status, an `error` event and a failed response, because a
rate limit or an empty account may also show inside a stream that began with status 200.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.errors import ProviderError
from agent.refusals import Refusal, quoted, with_wishes

_MONEY = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    }
)
_RATE = frozenset({"rate_limit_exceeded", "slow_down", "rate_limit_error"})
_OVERLOAD = frozenset(
    {"server_error", "server_is_overloaded", "service_unavailable_error", "vector_store_timeout"}
)


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: str, key: str
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400; `server` is how we call it."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    details = value.get("error") if isinstance(value, dict) else None
    if isinstance(details, str):
        details = {"message": details}
    error = classify(details if isinstance(details, dict) else {}, status, server, key)
    return with_wishes(error, headers)


def classify(
    details: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """An error object ({message, type, param, code}) as one of ours."""
    codes = {str(details.get("code")), str(details.get("type"))}
    refusal = Refusal(server, quoted(details.get("message"), key), status)
    if codes & _MONEY:
        return refusal.no_credit()
    if status == 401 or "invalid_api_key" in codes:
        return refusal.unauthorized("OPENAI_API_KEY")
    if status == 429 or codes & _RATE:
        return refusal.too_many()
    if codes & _OVERLOAD or (status is not None and (status >= 500 or status in (408, 409))):
        return refusal.failed()
    return _lasting(details, codes, status, refusal)


def _lasting(
    details: Mapping[str, Any], codes: set[str], status: int | None, refusal: Refusal
) -> ProviderError:
    """Errors that the same request would meet again."""
    param, text = str(details.get("param") or ""), str(details.get("message") or "").lower()
    if status == 403:
        return refusal.forbidden("Use a key of a project that has access, or another model.")
    if "context_length_exceeded" in codes or "context window" in text:
        return refusal.too_long()
    if "model_not_found" in codes or (status == 404 and param == "model"):
        return refusal.no_model()
    if status == 404 and not details:
        remedy = "Check OPENAI_BASE_URL; it usually ends in /v1."
        return refusal.wrong_address("the Responses API", remedy)
    if "web_search" in text or "hosted tool" in text or "web search" in text:
        return refusal.no_search()
    return refusal.bad_request()
