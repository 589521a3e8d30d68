"""Makes tools of ours from MCP tools, and text for a model from their results.

A tool runs only while its definition is the one that was offered. Pictures go along for models that
see; sounds and other bytes are described by kind and size. A link to a resource can be read from
the server that named it; it was not found by a search, so `open_page` does not open it for that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.mcp.connection import Connection
from searchloop.agent.mcp.definitions import Definition
from searchloop.agent.mcp.server import Server, clean, line
from searchloop.agent.run.question.files import MOST_FILES, NewFile, checked_file
from searchloop.agent.text import is_shallow
from searchloop.agent.tools import Tool, ToolContext, ToolFunction, object_schema, text_schema
from searchloop.agent.types import Effect, ToolResult, ToolSpec
from searchloop.agent.types.attachments import Attachment

if TYPE_CHECKING:
    from mcp.types import CallToolResult

MOST = 1_000_000  # characters of one result
_DEPTH = 100


def result_of(call_id: str, name: str, answer: CallToolResult, **details: Any) -> ToolResult:
    """Makes the result of a call."""
    texts, pictures = list[str](), list[Attachment]()
    for part in answer.content:
        texts.append(_text(part, pictures))
    texts += _structured(answer, texts)
    content = clean("\n\n".join(text for text in texts if text), MOST)
    return ToolResult(
        call_id,
        name,
        content or "(The tool answered with nothing.)",
        is_error=bool(answer.is_error),
        details={"kind": "mcp", **details},
        attachments=tuple(pictures),
    )


def _text(part: Any, pictures: list[Attachment]) -> str:
    """Returns a content block as text; adds it to the pictures if it is one."""
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        return _media(part.type, part.mime_type, part.data, pictures)
    if part.type == "resource_link":
        facts = (part.title, part.description, part.mime_type)
        about = " ".join(f"({line(fact, 400)})" for fact in facts if fact)
        return f"Resource {line(part.name, 200)}: {line(str(part.uri), 2000)} {about}".strip()
    resource = part.resource
    where = line(str(resource.uri), 2000)
    text = getattr(resource, "text", None)
    if text is not None:
        return f"Resource {where}:\n{text}"
    told = _media("resource", resource.mime_type or "bytes", resource.blob, pictures)
    return f"Resource {where}: {told}"


def _media(kind: str, mime: str, data: str, pictures: list[Attachment]) -> str:
    size, mime, why = len(data) * 3 // 4, line(mime, 80).lower(), ""
    data = "".join(data.split())  # some break the lines of base64
    if mime.startswith("image/"):
        name = f"picture {len(pictures) + 1}"
        try:
            file = checked_file(NewFile.decode({"name": name, "media_type": mime, "data": data}))
        except ConfigError as error:
            why = f": {error.message}"
        else:
            if len(pictures) < MOST_FILES:
                pictures.append(replace(file.attachment, data=data))
                return f"[{pictures[-1].label()}]"
    return f"[{kind}: {mime}, {size} bytes; the model is not shown it{why}]"


def _structured(answer: CallToolResult, texts: list[str]) -> list[str]:
    """Returns the structured content, unless a text repeats it (servers should send both), or it
    holds a picture's bytes once more.
    """
    value = answer.structured_content
    if value is None:
        return []
    if not is_shallow(value, _DEPTH):
        return [f"[Its structured content has more than {_DEPTH} levels and was left out]"]
    said = list(map(_read, texts))
    inner = list(value.values()) if isinstance(value, dict) else []  # a name around it, or none
    if any(value == each or inner == [each] for each in (*said, *texts, said, texts)):
        return []
    whole = json.dumps(value, ensure_ascii=False)
    data = (getattr(part, "data", "") for part in answer.content)
    return [] if any(each and each in whole for each in data) else [whole]


def _read(text: str) -> Any:
    """Returns what a text means as JSON, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def tool_of(
    connection: Connection,
    definition: Definition,
    spec: ToolSpec,
    suspended: str | None,
    reader: str | None = None,
) -> Tool:
    """Makes the tool. Its result is untrusted text, and private if its server is.

    A link in a result offers the tool `reader`, see `reader_of`.
    """
    server, switch = connection.server, connection.server.switch(definition.name)
    details = {"server": server.name, "tool": definition.name}

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        from mcp.types import TextContent

        own = connection.server  # the user may have changed its switches
        if own.switch(definition.name) != switch or own.private != server.private:
            what = f"The user has changed the switches of {spec.name} since it was offered."
            raise ToolError("mcp_changed", what, "Go on without it.")
        await connection.ready(server.startup_seconds)
        now = connection.listing.get(definition.name)
        if connection.state == "ready" and (now is None or now.hash != definition.hash):
            what = "is no longer there" if now is None else "has changed since it was offered"
            raise ToolError("mcp_changed", f"{spec.name} {what}.", "Go on without it.")
        answer = await connection.call(definition.name, arguments, context.ask)
        if reader and any(part.type == "resource_link" for part in answer.content):
            answer.content.append(TextContent(type="text", text=f"[Read a resource: {reader}]"))
            context.reveal((reader,))
        make = partial(result_of, context.call_id, spec.name, answer, **details)
        return await asyncio.to_thread(make)

    return _tool(server, spec, run, suspended=suspended)


def reader_of(connection: Connection, name: str, effect: Effect) -> Tool:
    """Makes the tool that reads a resource of this server; it is listed once a link was met."""
    server = connection.server
    words = f"Read a resource of the MCP server {server.name} that a result of it has named."
    uri = text_schema("The address of the resource, as the result names it")
    spec = ToolSpec(name, words, object_schema({"uri": uri}, "uri"), effect)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        from mcp.types import CallToolResult, EmbeddedResource

        read = await connection.read(arguments["uri"])
        parts = [EmbeddedResource(type="resource", resource=each) for each in read.contents]
        make = partial(result_of, context.call_id, name, CallToolResult(content=[*parts]))
        return await asyncio.to_thread(make, server=server.name, resource=arguments["uri"])

    return _tool(server, spec, run, listed=False)


def _tool(server: Server, spec: ToolSpec, run: ToolFunction, **more: Any) -> Tool:
    facts: Any = {"server": server.name, "private": server.private, "seconds": server.seconds}
    return Tool(spec, run, origin="mcp", untrusted=True, **facts, **more)
