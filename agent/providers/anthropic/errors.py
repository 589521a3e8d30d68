"""Classifies the provider's errors: HTTP answers and `error` events.

An overload may also show inside a stream that began with status 200.

Spec: https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.refusals import TOO_LONG, Refusal

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_MONEY = ("credit balance is too low", "spend limit", "spending limit", "usage limits")
_THINKING = ("bound to a different conversation", "blocks in the latest assistant message")
_SIGNATURE = re.compile(
    r"invalid [`'\"]?(?:signature|data)[`'\"]? in [`'\"]?(?:redacted_)?thinking"
    r"|content\.\d+\.(?:(?:redacted_)?thinking\.)?(?:signature|data)\b|signature verification"
    r"|expected [`'\"]?thinking|thinking[`'\"]? blocks?\b.{0,60}(?:different|expired|decrypt)"
)
_BLOCKS = (
    *("without a corresponding", "without a preceding", "encrypted_content", "encrypted_index"),
    *("`tool_use` ids were found without", "unexpected `tool_use_id`"),
)
_SEARCH = ("web_search", "web search", "web_fetch", "web fetch", "allowed_callers")
_SEARCH_OPTION = ("domain", "country", "user_location", "max_uses")
SPENT = "has no credit left, or reached its limit"


def classify(details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
    """Returns our error for an error object {type, message, details}."""
    means = _STATUS.get(str(details.get("type") or "")) or refusal.status or 500
    text = str(details.get("message") or "").lower()

    def says(words: Iterable[str]) -> bool:
        return any(word in text for word in words)

    if means == 402 or says(_MONEY):
        return refusal.no_credit(SPENT)
    if means == 401:
        return refusal.unauthorized("ANTHROPIC_API_KEY")
    if means == 429:
        return refusal.too_many()
    if means == 529:
        what = f"{refusal.server} is overloaded right now."
        return refusal.error("overloaded", what, "Try again.", retryable=True)
    if means >= 500 or means in (408, 409):
        return refusal.failed()
    if means == 403:
        return refusal.forbidden("Use a key of a workspace that has access, or another model.")
    if means == 404 and "model" in text:
        return refusal.no_model()
    if means == 404:
        return refusal.wrong_address("the Messages API", "Check ANTHROPIC_BASE_URL.")
    if means == 413 or TOO_LONG.search(text):
        return refusal.too_long()
    if says(_THINKING) or _SIGNATURE.search(text):
        return refusal.no_thinking()
    if says(_BLOCKS):
        return refusal.no_history()
    if says(_SEARCH) and not says(_SEARCH_OPTION):
        return refusal.no_search()
    return refusal.bad_request()
