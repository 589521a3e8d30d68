"""Classifies the errors of servers by status, codes and words.

The shape is `{"error": {message, type, param, code}}`; servers also send a bare string, `detail`, a
flat object, numbers as codes, an object or a list of faults where the words should be, and any of
these inside a list or a stream that began with status 200.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._responses.errors import CREDIT_CODES, OVERLOAD_CODES, RATE_CODES
from searchloop.agent.providers.openai_chat.models import taught_by
from searchloop.agent.transport.refusals import TOO_LONG, Refusal

_MODEL = re.compile(
    r"model\b.{0,120}\b(?:not found|does not exist|not exist|is not (?:a )?valid)"
    r"|(?:unknown|invalid|no such) model|no endpoints found for|is not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_OPAQUE = re.compile(
    r"thought[\s_-]*signature|encrypted[ _]content|reasoning_(?:content|details)"
    r"|(?:invalid|corrupted) [`'\"]?signature"
    r"|\breasoning\b[`'\"]{0,2}:? (?:is )?(?:unsupported|not (?:supported|allowed|permitted))",
    re.IGNORECASE,
)
# Words of a model's call that its own server could not read: another try may go well.
_SLIP = re.compile(
    r"tool_use_failed|failed to (?:call a function|parse (?:tool|function|input))", re.IGNORECASE
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
    if failed and isinstance(value, list) and value and isinstance(value[0], dict):
        return find_error(value[0], failed=True)
    if not isinstance(value, dict):
        return {"message": _said(value)} if failed and value else None
    inner = value.get("error")
    if isinstance(inner, dict):
        return {**inner, "message": _words(inner)}
    if inner:
        return {**value, "message": _said(inner)}
    if value.get("object") == "error" or (failed and _said(value)):
        return {**value, "message": _words(value)}
    return None


_WORDS = ("message", "detail", "details", "errors", "msg", "reason", "title")


def _said(value: Any) -> str:
    """Returns the words in a fault, which may be a list of faults with the place of each."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_said, value[:3])))
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    words = next(filter(None, (_said(value.get(name)) for name in _WORDS)), "")
    place = value.get("loc")
    return f"{'.'.join(map(str, place))}: {words}" if isinstance(place, list) and words else words


def classify(details: Mapping[str, Any], refusal: Refusal, sent: str) -> ProviderError:
    """Returns our error for an error object. In a stream its code replaces the status.

    `sent` names what the server may not accept: the key, or requests without one.
    """
    code = details.get("code")
    status = refusal.status or _status(code) or _status(details.get("status"))
    codes, text = {str(code), str(details.get("type"))}, details.get("message") or ""
    refusal = refusal._replace(status=status)
    if status == 402 or codes & CREDIT_CODES:
        return refusal.no_credit()
    if status == 401 or "invalid_api_key" in codes:
        return refusal.unauthorized("OPENAI_CHAT_API_KEY", sent)
    if status == 429 or codes & RATE_CODES:
        return refusal.too_many()
    lasting = _lasting(details, codes, text, refusal)
    if lasting is not None:
        return lasting
    if _SLIP.search(" ".join((text, *codes))):
        what = "The model wrote a tool call that its server could not read."
        again = "Ask again; if it happens often, pick a model that is better at calling tools."
        return refusal.error("tool_call_slip", what, again, retryable=True)
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
    if taught_by(text):
        return refusal.bad_request()  # and the next request is in that dialect
    if _OPAQUE.search(" ".join((text, *codes))):
        return refusal.no_history()
    if "context_length_exceeded" in codes or TOO_LONG.search(" ".join((text, *codes))):
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
    """Returns the message; a router quotes the server behind it in `metadata`.

    llama.cpp names its window beside the message.
    """
    window = details.get("n_ctx")
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    more = (raw if isinstance(raw, str) else "", f"(n_ctx {window})" if window else "")
    return " ".join(filter(None, (_said(details), *more)))
