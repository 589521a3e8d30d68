"""An MCP tool as one of ours: called over its connection, held to the definition that was shown.

What an MCP tool answered, as text for a model.

Text stays text. Pictures, sounds and other bytes are told of, with kind and size. A link to a
resource is an address that somebody wrote, not one that was found: it is shown, and `open_page`
does not take it for that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import ToolError
from searchloop.agent.mcp.connection import Connection
from searchloop.agent.mcp.definitions import Definition
from searchloop.agent.mcp.server import clean, line
from searchloop.agent.tools import Tool, ToolContext
from searchloop.agent.types import ToolResult, ToolSpec

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


_NOTICES, _APART = 50, 0.5  # progress that is passed on: how often, and seconds between two


def tool_of(
    connection: Connection, definition: Definition, spec: ToolSpec, suspended: str | None
) -> Tool:
    """The tool. Its result is other people's text; it is private where its server is."""
    server, switch = connection.server, connection.server.switch(definition.name)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        own = connection.server  # its switches may be others by now
        if own.switch(definition.name) != switch or own.private != server.private:
            what = f"The user has changed the switches of {spec.name} since it was offered."
            raise ToolError("mcp_changed", what, "Go on without it.")
        await connection.ready(server.startup_seconds)
        now = connection.listing.get(definition.name)
        if connection.state == "ready" and (now is None or now.hash != definition.hash):
            what = "is no longer there" if now is None else "has changed since it was offered"
            raise ToolError("mcp_changed", f"{spec.name} {what}.", "Go on without it.")
        progress = _Progress(context, server.name)
        try:
            answer = await connection.call(definition.name, arguments, progress)
        finally:
            progress.over = True
        details = {"server": server.name, "tool": definition.name}
        return result_of(context.call_id, spec.name, answer, **details)

    return Tool(
        spec,
        run,
        seconds=server.seconds,
        server=server.name,
        origin="mcp",
        private=server.private,
        untrusted=True,
        suspended=suspended,
    )


class _Progress:
    """Progress of a call, as notices: not too many, none after the end."""

    def __init__(self, context: ToolContext, server: str) -> None:
        self._context = context
        self._server = server
        self._last = 0.0
        self._left = _NOTICES
        self.over = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if self.over or not self._left or now - self._last < _APART:
            return
        self._last, self._left = now, self._left - 1
        far = f"{progress:g}{f' of {total:g}' if total else ''}"
        said = f": {line(message, 200)}" if message else ""
        await self._context.emit.event(
            "notice",
            {
                "code": "mcp_progress",
                "message": f"{self._server} {far}{said}",
                "call_id": self._context.call_id,
            },
        )
