"""Classifies the provider's errors: HTTP answers and `error` events.

An overload may also show inside a stream that began with status 200.

Spec: https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.anthropic.request import Replay
from searchloop.agent.transport.refusals import Refusal, quoted, with_wishes
from searchloop.agent.transport.sse import document_of

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
_LONG = ("prompt is too long", "exceed context limit", "context window", "input is too long")
_THINKING = ("bound to a different conversation", "blocks in the latest assistant message")
_SIGNATURE = re.compile(
    r"invalid [`'\"]?(?:signature|data)[`'\"]? in [`'\"]?(?:redacted_)?thinking"
)
_BLOCKS = (
    *("without a corresponding", "encrypted_content", "encrypted_index"),
    *("`tool_use` ids were found without", "unexpected `tool_use_id`"),
)
_SEARCH = ("web_search", "web search", "web_fetch", "web fetch", "allowed_callers")
_SEARCH_OPTION = ("domain", "country", "user_location", "max_uses")
_SPENT = "has no credit left, or reached its limit"
_REPLAYS: dict[str, Replay] = {"thinking_refused": "unsigned", "history_refused": "neutral"}


def replay_after(error: ProviderError) -> Replay | None:
    """Returns how to replay a history that was refused; None for any other error."""
    return _REPLAYS.get(error.code)


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: str, key: str
) -> ProviderError:
    """Returns the error for an HTTP answer with `status` >= 400 from `server`."""
    details = details_of(document_of(body))
    error = with_wishes(classify(details, status, server, key), headers)
    if status == 429 and error.retry_after is None:
        # A rate limit names its time, a spending cap does not.
        return Refusal(server, quoted(details.get("message"), key), status).no_credit(_SPENT)
    return error


def details_of(value: object) -> Mapping[str, Any]:
    """Returns the inner error object of a body or an event, empty if there is none."""
    details = value.get("error") if isinstance(value, Mapping) else None
    if isinstance(details, str):
        return {"message": details}
    return details if isinstance(details, Mapping) else {}


def classify(
    details: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """Returns our error for an error object {type, message, details}."""
    kind = str(details.get("type") or "")
    means = _STATUS.get(kind) or status or 500
    text = str(details.get("message") or "").lower()
    refusal = Refusal(server, quoted(details.get("message"), key), status)
    if means == 402 or any(words in text for words in _MONEY):
        return refusal.no_credit(_SPENT)
    if means == 401:
        return refusal.unauthorized("ANTHROPIC_API_KEY")
    if means == 429:
        return refusal.too_many()
    if means == 529:
        what = f"{server} is overloaded right now."
        return refusal.error("overloaded", what, "Try again.", retryable=True)
    if means >= 500 or means in (408, 409):
        return refusal.failed()
    return _lasting(means, text, refusal)


def _lasting(means: int, text: str, refusal: Refusal) -> ProviderError:
    """Classifies errors that the same request would meet again."""
    if means == 403:
        return refusal.forbidden("Use a key of a workspace that has access, or another model.")
    if means == 404 and "model" in text:
        return refusal.no_model()
    if means == 404:
        return refusal.wrong_address("the Messages API", "Check ANTHROPIC_BASE_URL.")
    if means == 413 or any(words in text for words in _LONG):
        return refusal.too_long()
    if any(words in text for words in _THINKING) or _SIGNATURE.search(text):
        what = f"{refusal.server} refused thinking of an earlier answer."
        return refusal.error("thinking_refused", what, "Start a new session.")
    if any(words in text for words in _BLOCKS):
        what = f"{refusal.server} refused the conversation so far."
        return refusal.error("history_refused", what, "Start a new session.")
    if any(words in text for words in _SEARCH) and not any(w in text for w in _SEARCH_OPTION):
        return refusal.no_search()
    return refusal.bad_request()
