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

from agent.errors import ProviderError
from agent.providers.openai_chat.address import ChatServer
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


def from_answer(
    status: int, headers: Mapping[str, str], body: bytes, server: ChatServer
) -> ProviderError:
    """The error of an HTTP answer with `status` >= 400."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    return with_wishes(classify(find_error(value, failed=True) or {}, status, server), headers)


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


def classify(details: Mapping[str, Any], status: int | None, server: ChatServer) -> ProviderError:
    """An error object as one of ours. In a stream its code stands for the status."""
    code = details.get("code")
    if status is None:
        status = _status(code) or _status(details.get("status"))
    codes = {str(code), str(details.get("type"))}
    text = _words(details)
    refusal = Refusal(server.name, quoted(text, server.key), status)
    if status == 402 or codes & _MONEY:
        return refusal.no_credit()
    if status == 401 or "invalid_api_key" in codes:
        what = "the key" if server.key else "requests without key"
        return refusal.unauthorized("OPENAI_CHAT_API_KEY", what)
    if status == 429 or codes & _RATE:
        return refusal.too_many()
    lasting = _lasting(details, codes, text, refusal)
    if lasting is not None:
        return lasting
    if codes & _OVERLOAD or status is None or status >= 500 or status in (408, 409):
        return refusal.failed()
    return refusal.bad_request()


def _lasting(
    details: Mapping[str, Any], codes: set[str], text: str, refusal: Refusal
) -> ProviderError | None:
    """Errors that the same request would meet again. Some servers call them their own fault."""
    param, low = str(details.get("param") or ""), text.lower()
    if "stream_options" in low or param.startswith("stream_options"):
        what = f"{refusal.server} does not count tokens in a stream."
        return refusal.error("usage_refused", what, "Use a newer server.")
    if "web_search_options" in low + param or "web search options" in low:
        return refusal.no_search()
    if "context_length_exceeded" in codes or _CONTEXT.search(" ".join((text, *codes))):
        return refusal.too_long()
    if _TOOLS.search(text):
        remedy = "Switch search off, pick another model, or enable tool calls in the server."
        return refusal.error("no_tools", "The model cannot call tools there.", remedy)
    if "model_not_found" in codes or param == "model" or _MODEL.search(text):
        return refusal.no_model("")
    if refusal.status == 403:
        return refusal.forbidden("Use a key that has access, or another model.")
    if refusal.status in (404, 405):
        remedy = "Check OPENAI_CHAT_BASE_URL; it usually ends in /v1."
        return refusal.wrong_address("Chat Completions", remedy)
    return None


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
