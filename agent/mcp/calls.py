"""Makes tools of ours from MCP tools, and text for a model from their results.

A tool runs only while its definition is the one that was offered. Pictures, sounds and other bytes
are described by kind and size. A link to a resource is shown, but it was not found by a search, so
`open_page` does not open it for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    """Makes the result of a call; `details` also list its parts that are no text."""
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
    """Returns a content block as text, and the description of its bytes, if it has any."""
    if part.type == "text":
        return part.text, None
    if part.type in ("image", "audio"):
        return _media(part.type, part.mime_type, part.data)
    if part.type == "resource_link":
        facts = (part.title, part.description, part.mime_type)
        about = " ".join(f"({line(fact, 400)})" for fact in facts if fact)
        return f"Resource {line(part.name, 200)}: {line(str(part.uri), 2000)} {about}".strip(), None
    resource = part.resource
    where = line(str(resource.uri), 2000)
    text = getattr(resource, "text", None)
    if text is not None:
        return f"Resource {where}:\n{text}", None
    said, media = _media("resource", resource.mime_type or "bytes", resource.blob)
    return f"Resource {where}: {said}", media


def _media(kind: str, mime: str, data: str) -> tuple[str, dict[str, Any]]:
    size, mime = len(data) * 3 // 4, line(mime, 80)
    about = f"[{kind}: {mime}, {size} bytes; the model is not shown it]"
    return about, {"kind": kind, "mime": mime, "bytes": size}


def _structured(answer: CallToolResult, texts: list[str]) -> list[str]:
    """Returns the structured content, unless a text repeats it: servers should send both."""
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


def tool_of(
    connection: Connection, definition: Definition, spec: ToolSpec, suspended: str | None
) -> Tool:
    """Makes the tool. Its result is untrusted text, and private if its server is."""
    server, switch = connection.server, connection.server.switch(definition.name)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        own = connection.server  # the user may have changed its switches
        if own.switch(definition.name) != switch or own.private != server.private:
            what = f"The user has changed the switches of {spec.name} since it was offered."
            raise ToolError("mcp_changed", what, "Go on without it.")
        await connection.ready(server.startup_seconds)
        now = connection.listing.get(definition.name)
        if connection.state == "ready" and (now is None or now.hash != definition.hash):
            what = "is no longer there" if now is None else "has changed since it was offered"
            raise ToolError("mcp_changed", f"{spec.name} {what}.", "Go on without it.")
        answer = await connection.call(definition.name, arguments)
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
