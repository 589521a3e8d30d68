"""MCP: tools of other programs and other machines, under the same rules as all tools.

    config       reads the files of servers (`mcp.json`, a trusted project's `.mcp.json`)
    connection   one server, over `stdio` (its program runs under `supervisor`) or HTTP
    manager      McpServers: offers the servers of a process as a source of tools

The official SDK speaks the protocol; it is imported when the first server is connected.

Others may import: config, login, manager, server.
"""

from __future__ import annotations

from searchloop.agent.mcp.manager import McpServers

__all__ = ["McpServers"]
