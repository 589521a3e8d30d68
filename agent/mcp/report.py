"""Servers and their tools as data, for every surface. No value of a variable is in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent.mcp.catalogue import Found
from agent.mcp.connection import Connection
from agent.mcp.definitions import Definition, Unusable, spec_of, tokens_of
from agent.mcp.names import tool_name
from agent.mcp.server import Server
from agent.mcp.text import clean, line

_SESSIONS = 500  # remembered
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Once:
    """Tells each session each thing once."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, set[str]] = OrderedDict()

    def fresh(self, session: str, notices: list[dict[str, str]]) -> list[dict[str, str]]:
        """Those that the session has not been told yet."""
        told = self._told.setdefault(session, set())
        self._told.move_to_end(session)
        while len(self._told) > _SESSIONS:
            self._told.popitem(last=False)
        new = [notice for notice in notices if notice["message"] not in told]
        told.update(notice["message"] for notice in new)
        return new


def troubles_of(found: Found) -> list[dict[str, str]]:
    """What is wrong with the files, as notices."""
    told = [
        {
            "code": problem.code,
            "message": f"{problem.message} ({problem.file}, line {problem.line})",
            "remedy": problem.remedy,
        }
        for problem in found.problems
    ]
    if found.untrusted:
        words = f"The MCP servers of {found.untrusted.file} are not used."
        folder = Path(found.untrusted.file).parent
        remedy = f"Look at them in the settings under Tools, or: searchloop mcp trust {folder}"
        told.append({"code": "mcp_untrusted", "message": words, "remedy": remedy})
    return told


def troubles_with(connection: Connection, suspended: Mapping[str, str]) -> list[dict[str, str]]:
    """What is wrong with a server, as notices."""
    told = [connection.error.as_dict()] if connection.error else []
    name = connection.server.name
    for tool in suspended:
        words = (
            f"The tool {line(tool, 80)!r} of the MCP server {name!r} has changed, and is not used."
        )
        remedy = f"Look at the change: searchloop mcp approve {name} {line(tool, 80)}"
        told.append({"code": "mcp_suspended", "message": words, "remedy": remedy})
    return told


def whole_report(found: Found, servers: list[dict[str, Any]], file: str) -> dict[str, Any]:
    """{servers, problems, untrusted, file}: all that a page or a command shows."""
    waits = found.untrusted
    return {
        "file": file,
        "servers": servers,
        "problems": [asdict(problem) for problem in found.problems],
        "untrusted": waits
        and {
            "file": waits.file,
            "hash": waits.hash,
            "commands": [{"name": name, "command": list(c)} for name, c in waits.commands],
        },
    }


def plan_of(server: Server) -> dict[str, Any]:
    """What a server is before it is started: what would be run or asked, and with what."""
    return {
        "name": server.name,
        "file": server.file,
        "workspace": server.workspace,
        "kind": server.kind,
        "command": list(server.shown),
        "cwd": server.cwd,
        "variables": sorted(server.env),
        "headers": sorted(server.headers),
        "disabled": server.disabled,
        "private": server.private,
        "effect": server.effect or "exec",
    }


def server_report(
    server: Server, connection: Connection | None, part: str, suspended: Mapping[str, str]
) -> dict[str, Any]:
    """One server: `plan_of` it, its state, its tools and what they cost in each request."""
    listing = connection.listing if connection else {}
    tools = [_tool(server, each, part, suspended) for each in listing.values()]
    error = connection.error if connection else None
    return {
        **plan_of(server),
        "state": "disabled" if server.disabled else connection.state if connection else "idle",
        "error": error.as_dict() if error else None,
        "retry_in": connection.retry_in if connection else None,
        "protocol": connection.protocol if connection else "",
        "title": connection.title if connection else "",
        "version": connection.version if connection else "",
        "oddities": list(connection.oddities) if connection else [],
        "tools": tools,
        "tokens": sum(tool["tokens"] for tool in tools if tool["enabled"]),
    }


def _tool(
    server: Server, definition: Definition, part: str, suspended: Mapping[str, str]
) -> dict[str, Any]:
    """One tool: its switch, the server's hints, and the difference when it is suspended."""
    switch = server.switch(definition.name)
    name, unusable, tokens = tool_name(part, definition.name), None, 0
    try:
        tokens = tokens_of(spec_of(definition, name, server.name, switch.effect or "exec"))
    except Unusable as problem:
        unusable = str(problem)
    hints = {h: bool(definition.hints[h]) for h in _HINTS if h in definition.hints}
    diff = suspended.get(definition.name)
    return {
        "name": line(definition.name, 128),
        "offered_as": name,
        "title": line(definition.title, 100),
        "description": clean(definition.description, 1000),
        "enabled": switch.enabled,
        "effect": switch.effect,
        "hints": hints,
        "tokens": tokens,
        "unusable": unusable,
        "definition": definition.hash,
        "suspended": None if diff is None else {"diff": diff},
    }
