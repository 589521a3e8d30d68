"""Reads the errors of servers, and tells those that no other API has.

The shape is `{"error": {message, type, param, code}}`; servers also send a bare string, `detail`, a
flat object, numbers as codes, an object or a list of faults where the words should be, and any of
these inside a list or a stream that began with status 200.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.openai_chat.models import taught_by
from searchloop.agent.transport.refusals import Refusal

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


def special(details: Mapping[str, Any], refusal: Refusal) -> ProviderError | None:
    """Returns our error for a refusal that only servers of this API have; None for another."""
    param, text = str(details.get("param") or ""), details.get("message") or ""
    if "stream_options" in f"{param} {text}":
        return refusal.error("usage_refused")
    if taught_by(text):
        return refusal.error("bad_request")  # and the next request is in that dialect
    if _TOOLS.search(text):
        return refusal.error("no_tools")
    slip = _SLIP.search(f"{text} {details.get('code')} {details.get('type')}")
    return refusal.error("tool_call_slip") if slip else None


def _words(details: Mapping[str, Any]) -> str:
    """Returns the message; a router quotes the server behind it in `metadata`.

    llama.cpp names its window beside the message.
    """
    window = details.get("n_ctx")
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    more = (raw if isinstance(raw, str) else "", f"(n_ctx {window})" if window else "")
    return " ".join(filter(None, (_said(details), *more)))
