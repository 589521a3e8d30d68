"""Classifies the errors of servers by status, codes and words.

The shape is `{"error": {message, type, param, code}}`; servers also send a bare string, `detail`, a
flat object, numbers as codes, and any of these inside a stream that began with status 200.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._common import CREDIT_CODES, OVERLOAD_CODES, RATE_CODES
from searchloop.agent.transport.refusals import Refusal

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
_OPAQUE = re.compile(
    r"thought[\s_-]*signature|encrypted[ _]content|reasoning_(?:content|details)"
    r"|(?:invalid|corrupted) [`'\"]?signature",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"(?:does not|doesn't|not) support (?:tool|function)|support tool use"
    r"|tool choice requires|tools param requires|tool-call-parser",
    re.IGNORECASE,
)


def find_error(value: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """Returns the error object in a body or in a piece of a stream; None if there is none.

    `failed` says that the answer is an error, so that its other shapes count too.
    """
    if not isinstance(value, dict):
        return {"message": value} if failed and isinstance(value, str) else None
    inner = value.get("error")
    if isinstance(inner, dict):
        return {**inner, "message": _words(inner)}
    if inner:
        return {**value, "message": _as_text(inner)}
    if value.get("object") == "error" or (failed and "message" in value):
        return {**value, "message": _words(value)}
    return {"message": _as_text(value["detail"])} if failed and value.get("detail") else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def classify(details: Mapping[str, Any], refusal: Refusal, sent: str) -> ProviderError:
    """Returns our error for an error object. In a stream its code replaces the status.

    `sent` names what the server may not accept: the key, or requests without one.
    """
    code = details.get("code")
    status = refusal.status or _status(code) or _status(details.get("status"))
    codes, text = {str(code), str(details.get("type"))}, details.get("message") or ""
    refusal = replace(refusal, status=status)
    if status == 402 or codes & CREDIT_CODES:
        return refusal.no_credit()
    if status == 401 or "invalid_api_key" in codes:
        return refusal.unauthorized("OPENAI_CHAT_API_KEY", sent)
    if status == 429 or codes & RATE_CODES:
        return refusal.too_many()
    lasting = _lasting(details, codes, text, refusal)
    if lasting is not None:
        return lasting
    if codes & OVERLOAD_CODES or status is None or status >= 500 or status in (408, 409):
        return refusal.failed()
    return refusal.bad_request()


def _lasting(
    details: Mapping[str, Any], codes: set[str], text: str, refusal: Refusal
) -> ProviderError | None:
    """Classifies errors that the same request would meet again, whatever their status."""
    param, low = str(details.get("param") or ""), text.lower()
    if "stream_options" in low or param.startswith("stream_options"):
        what = f"{refusal.server} does not count tokens in a stream."
        return refusal.error("usage_refused", what, "Use a newer server.")
    if "web_search_options" in low + param or "web search options" in low:
        return refusal.no_search()
    if _OPAQUE.search(" ".join((text, *codes))):
        return refusal.no_history()
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
    """Returns the message; a router quotes the server behind it in `metadata`."""
    message = details.get("message")
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return " ".join(part for part in (message, raw) if isinstance(part, str) and part.strip())
