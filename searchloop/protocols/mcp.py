"""The MCP server, by the official SDK: `ClientTools` over stdio or over HTTP.

One server speaks all versions of the protocol that the SDK knows, over HTTP without sessions.
https://modelcontextprotocol.io/specification/2025-11-25/server/tools
"""

from __future__ import annotations

from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from searchloop.agent import __version__
from searchloop.protocols.tools import TOOLS, ClientTools

_ABOUT = "Web search, page reading and citation checks. Cite the addresses that you have opened."
# Nothing here changes anything; what is read lies outside.
_READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=True)
_LISTED = [
    types.Tool(name=name, description=about, input_schema=schema, annotations=_READS)
    for name, about, schema in TOOLS
]


def server_of(tools: ClientTools) -> Server[Any]:
    """Returns the server of these tools."""

    async def listed(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_LISTED)

    async def call(
        ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async def progress(steps: int, words: str) -> None:
            await ctx.session.report_progress(steps, message=words)

        try:
            result = await tools.call(params.name, params.arguments or {}, progress)
        except KeyError:
            words = f"There is no tool called {params.name[:60]!r}."
            raise MCPError(types.INVALID_PARAMS, words) from None
        content = [types.TextContent(text=result.text)]
        return types.CallToolResult(
            content=[*content], structured_content=result.data, is_error=result.is_error
        )

    return Server(
        "searchloop",
        version=__version__,
        instructions=_ABOUT,
        on_list_tools=listed,
        on_call_tool=call,
    )


async def over_http(tools: ClientTools, scope: Any, receive: Any, send: Any) -> None:
    """Answers one request, which the gate has let in."""
    manager = StreamableHTTPSessionManager(server_of(tools), stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def over_stdio(tools: ClientTools) -> None:
    """Serves on stdin and stdout until the client closes one of them."""
    server = server_of(tools)
    try:
        async with stdio_server() as (asked, answers):
            await server.run(asked, answers, server.create_initialization_options())
    except* BrokenPipeError:
        pass
