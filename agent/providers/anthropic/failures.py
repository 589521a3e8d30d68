"""What the provider's errors mean, in our words, and who must act.

The same classification serves an HTTP status and an `error` event, because an overload may also
show inside a stream that began with status 200.

Spec: https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.errors import NativeSearchRejected, ProviderError
from agent.providers.anthropic.history import Replay
from agent.retry import parse_retry_after

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
_KEY_LIKE = re.compile(r"\b(?:sk|rk|pk|sess|key)-[\w*.\-]{6,}|\bBearer\s+\S+", re.IGNORECASE)
_QUOTE = 240
_REPLAYS: dict[str, Replay] = {"thinking_refused": "unsigned", "history_refused": "neutral"}


def replay_after(error: ProviderError) -> Replay | None:
    """How a history that was refused may be sent instead; None for any other error."""
    return _REPLAYS.get(error.code)


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: str, key: str
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400; `server` is how we call it."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    details = details_of(value)
    error = classify(details, status, server, key)
    error.retry_after = parse_retry_after(headers)
    if status == 429 and error.retry_after is None:
        # A rate limit names its time, a spending cap does not.
        return _spent(server, _quote(details.get("message"), key), status)
    wish = headers.get("x-should-retry")
    if wish in ("true", "false") and error.code != "quota":
        error.retryable = wish == "true"
    return error


def details_of(value: object) -> Mapping[str, Any]:
    """The inner error object of a body or an event; empty when there is none."""
    details = value.get("error") if isinstance(value, Mapping) else None
    if isinstance(details, str):
        return {"message": details}
    return details if isinstance(details, Mapping) else {}


def classify(
    details: Mapping[str, Any], status: int | None, server: str, key: str = ""
) -> ProviderError:
    """An error object ({type, message, details}) as one of ours."""
    kind = str(details.get("type") or "")
    means = _STATUS.get(kind) or status or 500
    text = str(details.get("message") or "").lower()
    said = _quote(details.get("message"), key)
    if means == 402 or any(words in text for words in _MONEY):
        return _spent(server, said, status)
    if means == 401:
        return ProviderError(
            "unauthorized",
            f"{server} does not accept the key.",
            "Check ANTHROPIC_API_KEY: it must be complete and belong to this server.",
            status=status,
        )
    if means == 429:
        return ProviderError(
            "rate_limited",
            f"{server} asks for fewer requests.{said}",
            "Wait a little and try again.",
            status=status,
            retryable=True,
        )
    if means >= 500 or means in (408, 409):
        busy = "is overloaded" if means == 529 else "could not answer"
        return ProviderError(
            "overloaded" if means == 529 else "server_error",
            f"{server} {busy} right now.{said}",
            "Try again.",
            status=status,
            retryable=True,
        )
    return _refused(means, text, status, server, said)


def _refused(means: int, text: str, status: int | None, server: str, said: str) -> ProviderError:
    """Errors that the same request would meet again."""
    if means == 403:
        code, what = "forbidden", f"{server} does not allow this with this key.{said}"
        remedy = "Use a key of a workspace that has access, or another model."
    elif means == 404 and "model" in text:
        code, what = "model_not_found", f"{server} has no such model for this key.{said}"
        remedy = "Run `searchloop models` to see which there are."
    elif means == 404:
        code, what = "bad_url", f"{server} does not offer the Messages API at this address.{said}"
        remedy = "Check ANTHROPIC_BASE_URL."
    elif means == 413 or any(words in text for words in _LONG):
        code, what = "context_length", f"The conversation is too long for the model.{said}"
        remedy = "Start a new session, or choose a model with a larger context."
    elif any(words in text for words in _THINKING) or _SIGNATURE.search(text):
        code, what = "thinking_refused", f"{server} refused thinking of an earlier answer.{said}"
        remedy = "Start a new session."
    elif any(words in text for words in _BLOCKS):
        code, what = "history_refused", f"{server} refused the conversation so far.{said}"
        remedy = "Start a new session."
    elif any(words in text for words in _SEARCH) and not any(w in text for w in _SEARCH_OPTION):
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


def _spent(server: str, said: str, status: int | None) -> ProviderError:
    return ProviderError(
        "quota",
        f"{server} says that the account has no credit left, or reached its limit.{said}",
        "Add credit or raise the spending limit in the provider's billing settings.",
        status=status,
    )


def _quote(message: object, key: str) -> str:
    """The provider's own words, short and without anything that looks like a key."""
    if not isinstance(message, str) or not message.strip():
        return ""
    text = message.replace(key, "[key]") if len(key) >= 8 else message
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    return f" It says: {text[: _QUOTE - 1]}…" if len(text) > _QUOTE else f" It says: {text}"
