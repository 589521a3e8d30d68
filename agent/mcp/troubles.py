"""What it means when a server cannot be reached or used, in words for the user."""

from __future__ import annotations

from agent.errors import AgentError, ConfigError, ToolError
from agent.mcp.server import Server
from agent.mcp.stdio import Said
from agent.mcp.text import line


def lost(server: Server, said: Said) -> AgentError:
    """The connection has ended, as it was seen from outside."""
    if said.fault:
        return said.fault
    how = f"ended with exit code {said.code}" if said.code is not None else "broke off"
    what = f"The connection to the MCP server {server.name!r} {how}."
    return ToolError("mcp_lost", what, f"See why: searchloop mcp test {server.name}")


def meaning(
    server: Server, error: BaseException, ended: AgentError | None, status: int | None
) -> AgentError:
    """What an exception of the SDK says of the server.

    `ended` is there when the connection was over; `status` is the last one over HTTP.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    name = server.name
    if isinstance(error, AgentError):
        return error
    if isinstance(error, ValueError):  # the SDK's validation; its second and third line say where
        said = " ".join(str(error).splitlines()[1:3]).partition(" [type=")[0]
        what = f"The MCP server {name!r} breaks the protocol: {line(said or str(error), 300)}."
        return ToolError("mcp_bad_answer", what, "Tell its authors; until then disable it.")
    if isinstance(error, TimeoutError):
        seconds = server.startup_seconds
        what = f"The MCP server {name!r} was not ready within {seconds:g} seconds."
        return ToolError("mcp_timeout", what, f"See why: searchloop mcp test {name}")
    if ended:
        return ended
    if status in (401, 403):
        what = f"The MCP server {name!r} wants a login (status {status})."
        return ConfigError("mcp_login", what, f"searchloop mcp login {name}")
    if server.kind == "http":
        told = f" (status {status})" if status else ""
        what = f"The MCP server {name!r} cannot be reached{told}: {type(error).__name__}."
        return ToolError("mcp_unreachable", what, f"Check its address: {server.shown[0]}")
    what = (
        f"The MCP server {name!r} cannot be used: {line(f'{type(error).__name__}: {error}', 300)}"
    )
    return ToolError("mcp_failed", what, f"See what it says: searchloop mcp test {name}")
