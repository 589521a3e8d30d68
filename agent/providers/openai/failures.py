"""What the provider's errors mean, in our words, and who must act.

The same classification serves an HTTP status, an `error` event and a failed response, because a
rate limit or an empty account may also show inside a stream that began with status 200.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.errors import NativeSearchRejected, ProviderError
from agent.retry import parse_retry_after

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
_KEY_LIKE = re.compile(
    r"\b(?:sk|rk|pk|sess|key|gsk|xai)-[\w*.\-]{6,}|\bBearer\s+\S+", re.IGNORECASE
)
_QUOTE = 240


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
    error.retry_after = parse_retry_after(headers)
    wish = headers.get("x-should-retry")
    if wish in ("true", "false") and error.code != "quota":
        error.retryable = wish == "true"
    return error


def classify(
    details: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """An error object ({message, type, param, code}) as one of ours."""
    codes = {str(details.get("code")), str(details.get("type"))}
    said = _quote(details.get("message"), key)
    if codes & _MONEY:
        return ProviderError(
            "quota",
            f"{server} says that the account has no credit left.{said}",
            "Add credit or raise the spending limit in the provider's billing settings.",
            status=status,
        )
    if status == 401 or "invalid_api_key" in codes:
        return ProviderError(
            "unauthorized",
            f"{server} does not accept the key.",
            "Check OPENAI_API_KEY: it must be complete and belong to this server.",
            status=status,
        )
    if status == 429 or codes & _RATE:
        return ProviderError(
            "rate_limited",
            f"{server} asks for fewer requests.{said}",
            "Wait a little and try again.",
            status=status,
            retryable=True,
        )
    if codes & _OVERLOAD or (status is not None and (status >= 500 or status in (408, 409))):
        return ProviderError(
            "server_error",
            f"{server} could not answer right now.{said}",
            "Try again.",
            status=status,
            retryable=True,
        )
    return _refused(details, codes, status, server, said)


def _refused(
    details: Mapping[str, Any], codes: set[str], status: int | None, server: str, said: str
) -> ProviderError:
    """Errors that the same request would meet again."""
    param, text = str(details.get("param") or ""), str(details.get("message") or "").lower()
    if status == 403:
        code, what = "forbidden", f"{server} does not allow this with this key.{said}"
        remedy = "Use a key of a project that has access, or another model."
    elif "context_length_exceeded" in codes or "context window" in text:
        code, what = "context_length", f"The conversation is too long for the model.{said}"
        remedy = "Start a new session, or choose a model with a larger context."
    elif "model_not_found" in codes or (status == 404 and param == "model"):
        code, what = "model_not_found", f"{server} has no such model for this key.{said}"
        remedy = "Run `searchloop models` to see which there are."
    elif status == 404 and not details:
        code, what = "bad_url", f"{server} does not offer the Responses API at this address."
        remedy = "Check OPENAI_BASE_URL; it usually ends in /v1."
    elif "web_search" in text or "hosted tool" in text or "web search" in text:
        return NativeSearchRejected(
            "native_search_rejected",
            f"The model does not search by itself.{said}",
            "Choose local search, or another model.",
            status=status,
        )
    else:
        code, what = "bad_request", f"{server} refused the request.{said}"
        remedy = "Change the model or the options of the request."
    return ProviderError(code, what, remedy, status=status)


def _quote(message: object, key: str) -> str:
    """The provider's own words, short and without anything that looks like a key."""
    if not isinstance(message, str) or not message.strip():
        return ""
    text = message.replace(key, "[key]") if len(key) >= 8 else message
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    return f" It says: {text[: _QUOTE - 1]}…" if len(text) > _QUOTE else f" It says: {text}"
