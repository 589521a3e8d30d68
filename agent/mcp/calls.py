"""An MCP tool as one of ours: called over its connection, held to the definition that was shown."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from agent.errors import ToolError
from agent.mcp.connection import Connection
from agent.mcp.definitions import Definition
from agent.mcp.results import result_of
from agent.mcp.text import line
from agent.tools import Tool, ToolContext
from agent.types import ToolResult, ToolSpec

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
