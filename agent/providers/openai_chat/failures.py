"""What servers say when something is wrong, in our words, and who must act.

The shape is `{"error": {message, type, param, code}}`; servers also send a bare string, `detail`, a
flat object, numbers as codes, and any of these inside a stream that began with status 200. So the
status, the codes and the words are all looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.errors import NativeSearchRejected, ProviderError
from agent.providers.openai_chat.address import Server
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
_RATE = frozenset({"rate_limit_exceeded", "slow_down", "rate_limit_error", "too_many_requests"})
_OVERLOAD = frozenset(
    {"server_error", "server_is_overloaded", "service_unavailable_error", "overloaded_error"}
)
_CONTEXT = re.compile(
    r"context (?:length|size|window)|maximum context|exceed_context_size|too many tokens"
    r"|prompt is too long|input is too long|max_model_len",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model\b.{0,120}\b(?:not found|does not exist|not exist|is not (?:a )?valid)"
    r"|(?:unknown|invalid|no such) model|no endpoints found for|is not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_TOOLS = re.compile(
    r"(?:does not|doesn't|not) support (?:tool|function)|support tool use"
    r"|tool choice requires|tools param requires|tool-call-parser",
    re.IGNORECASE,
)
_KEY_LIKE = re.compile(
    r"\b(?:sk|rk|pk|sess|key|gsk|xai)-[\w*.\-]{6,}|\bBearer\s+\S+", re.IGNORECASE
)
_QUOTE = 240


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: Server
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    error = classify(find_error(value, failed=True) or {}, status, server)
    error.retry_after = parse_retry_after(headers)
    wish = headers.get("x-should-retry")
    if wish in ("true", "false") and error.code != "quota":
        error.retryable = wish == "true"
    return error


def find_error(value: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """The error object of a body or of a piece of a stream; None when it holds none.

    `failed`: it is known to be an error, so that its other shapes count too.
    """
    if not isinstance(value, dict):
        return {"message": value} if failed and isinstance(value, str) else None
    inner = value.get("error")
    if isinstance(inner, dict):
        return inner
    if inner:
        return {**value, "message": inner if isinstance(inner, str) else json.dumps(inner)}
    if value.get("object") == "error" or (failed and "message" in value):
        return value
    if failed and value.get("detail"):
        detail = value["detail"]
        return {"message": detail if isinstance(detail, str) else json.dumps(detail)}
    return None


def classify(details: Mapping[str, Any], status: int | None, server: Server) -> ProviderError:
    """An error object as one of ours. In a stream its code stands for the status."""
    code = details.get("code")
    if status is None:
        status = _status(code) or _status(details.get("status"))
    codes = {str(code), str(details.get("type"))}
    text = _words(details)
    said = _quote(text, server.key)
    if status == 402 or codes & _MONEY:
        return ProviderError(
            "quota",
            f"{server.name} says that the account has no credit left.{said}",
            "Add credit or raise the spending limit in the provider's billing settings.",
            status=status,
        )
    if status == 401 or "invalid_api_key" in codes:
        return ProviderError(
            "unauthorized",
            f"{server.name} does not accept {'the key' if server.key else 'requests without key'}.",
            "Check OPENAI_CHAT_API_KEY: it must be complete and belong to this server.",
            status=status,
        )
    if status == 429 or codes & _RATE:
        return ProviderError(
            "rate_limited",
            f"{server.name} asks for fewer requests.{said}",
            "Wait a little and try again.",
            status=status,
            retryable=True,
        )
    refused = _refused(details, codes, status, server, text, said)
    if refused is not None:
        return refused
    if codes & _OVERLOAD or status is None or status >= 500 or status in (408, 409):
        return ProviderError(
            "server_error",
            f"{server.name} could not answer right now.{said}",
            "Try again.",
            status=status,
            retryable=True,
        )
    return ProviderError(
        "bad_request",
        f"{server.name} refused the request.{said}",
        "Change the model or the options of the request.",
        status=status,
    )


def _refused(
    details: Mapping[str, Any],
    codes: set[str],
    status: int | None,
    server: Server,
    text: str,
    said: str,
) -> ProviderError | None:
    """Errors that the same request would meet again. Some servers call them their own fault."""
    param, low = str(details.get("param") or ""), text.lower()
    if "stream_options" in low or param.startswith("stream_options"):
        code, what = "usage_refused", f"{server.name} does not count tokens in a stream.{said}"
        remedy = "Use a newer server."
    elif "web_search_options" in low + param or "web search options" in low:
        return NativeSearchRejected(
            "native_search_rejected",
            f"The model does not search by itself.{said}",
            "Choose local search, or another model.",
            status=status,
        )
    elif "context_length_exceeded" in codes or _CONTEXT.search(" ".join((text, *codes))):
        code, what = "context_length", f"The conversation is too long for the model.{said}"
        remedy = "Start a new session, or choose a model with a larger context."
    elif _TOOLS.search(text):
        code, what = "no_tools", f"The model cannot call tools there.{said}"
        remedy = "Switch search off, pick another model, or enable tool calls in the server."
    elif "model_not_found" in codes or param == "model" or _MODEL.search(text):
        code, what = "model_not_found", f"{server.name} has no such model.{said}"
        remedy = "Run `searchloop models` to see which there are."
    elif status == 403:
        code, what = "forbidden", f"{server.name} does not allow this with this key.{said}"
        remedy = "Use a key that has access, or another model."
    elif status in (404, 405):
        code, what = "bad_url", f"{server.name} has no Chat Completions at this address.{said}"
        remedy = "Check OPENAI_CHAT_BASE_URL; it usually ends in /v1."
    else:
        return None
    return ProviderError(code, what, remedy, status=status)


def _status(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:6])
    return code if type(code) is int and 400 <= code <= 599 else None


def _words(details: Mapping[str, Any]) -> str:
    """What it says; a router quotes the server behind it in `metadata`."""
    message = details.get("message")
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return " ".join(part for part in (message, raw) if isinstance(part, str) and part.strip())


def _quote(text: str, key: str) -> str:
    """The server's own words, short and without anything that looks like a key."""
    text = text.replace(key, "[key]") if len(key) >= 8 else text
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    if not text:
        return ""
    return f" It says: {text[: _QUOTE - 1]}…" if len(text) > _QUOTE else f" It says: {text}"
