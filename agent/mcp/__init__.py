"""MCP: tools of other programs and other machines, under the same rules as all tools.

    catalogue    which servers there are (`mcp.json`, a trusted project's `.mcp.json`)
    connection   one server, over `stdio` (held by `supervisor`) or `http`
    manager      McpServers: the servers of a process as a source of tools

The official SDK speaks the protocol and is imported when the first server is connected to.

Others may import: config, login, manager, server.
"""

from __future__ import annotations

from searchloop.agent.mcp.manager import McpServers

__all__ = ["McpServers"]
