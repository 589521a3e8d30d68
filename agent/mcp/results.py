"""What an MCP tool answered, as text for a model.

Text stays text. Pictures, sounds and other bytes are told of, with kind and size. A link to a
resource is an address that somebody wrote, not one that was found: it is shown, and `open_page`
does not take it for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent.mcp.text import clean, line
from agent.types import ToolResult

if TYPE_CHECKING:
    from mcp.types import CallToolResult

MOST = 1_000_000  # characters of one result
_PARTS = 1000


def result_of(call_id: str, name: str, answer: CallToolResult, **details: Any) -> ToolResult:
    """The result of a call, with `details` and what it held beside text."""
    texts, media = [], []
    parts = list(answer.content[:_PARTS])
    for part in parts:
        text, other = _part(part)
        texts.append(text)
        media += [other] if other else []
    if len(answer.content) > _PARTS:
        texts.append(f"[{len(answer.content) - _PARTS} more parts were left out]")
    texts += _structured(answer, texts)
    content = clean("\n\n".join(text for text in texts if text), MOST)
    return ToolResult(
        call_id,
        name,
        content or "(The tool answered with nothing.)",
        is_error=bool(answer.is_error),
        details={"kind": "mcp", **details, **({"media": media} if media else {})},
    )


def _part(part: Any) -> tuple[str, dict[str, Any] | None]:
    """One content block (MCP specification, "Tool Result") as text, and its bytes as a note."""
    if part.type == "text":
        return part.text, None
    if part.type in ("image", "audio"):
        return _media(part.type, part.mime_type, part.data)
    if part.type == "resource_link":
        about = " ".join(_facts(part.title, part.description, part.mime_type))
        return f"Resource {line(part.name, 200)}: {line(str(part.uri), 2000)} {about}".strip(), None
    resource = part.resource
    where = line(str(resource.uri), 2000)
    text = getattr(resource, "text", None)
    if text is not None:
        return f"Resource {where}:\n{text}", None
    said, media = _media("resource", resource.mime_type or "bytes", resource.blob)
    return f"Resource {where}: {said}", media


def _facts(*words: str | None) -> Iterator[str]:
    for word in words:
        if word:
            yield f"({line(word, 400)})"


def _media(kind: str, mime: str, data: str) -> tuple[str, dict[str, Any]]:
    size = len(data) * 3 // 4
    mime = line(mime, 80)
    return (
        f"[{kind}: {mime}, {size} bytes; the model is not shown it]",
        {"kind": kind, "mime": mime, "bytes": size},
    )


def _structured(answer: CallToolResult, texts: list[str]) -> list[str]:
    """Structured content, unless a text says the same, as the specification asks servers to do."""
    value = answer.structured_content
    if value is None:
        return []
    for text in texts:
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = text
        wrapped = isinstance(value, dict) and list(value.values()) in ([said], [text])
        if said == value or wrapped:
            return []
    return [json.dumps(value, ensure_ascii=False)]
