"""The user's file of servers, changed: added to, switched, removed from.

What stands in the file and is not ours to change stays as it is. Nothing is started here, and only
a user's own act leads here: adding a server means running a program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.errors import ConfigError, Conflict
from agent.mcp.catalogue import read_text
from agent.mcp.config import parse, raw_servers
from agent.mcp.files import change_object
from agent.mcp.server import Server

_PLACES = ("mcpServers", "servers")
_ONLY = ("enabledTools", "includeTools")


class _Anything(Mapping[str, str]):
    """Variables that are all set: whether they are is told where the server is used."""

    def __getitem__(self, name: str) -> str:
        return "set"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def pasted(text: str) -> tuple[dict[str, Any], list[Server]]:
    """Servers as somebody pasted them, raw and read. Raises ConfigError for the first mistake."""
    raw = raw_servers(text, "The text")
    servers, problems = parse(text, "The text", _Anything())
    for problem in problems:
        raise ConfigError(problem.code, problem.message, problem.remedy)
    if not servers:
        raise ConfigError(
            "no_servers",
            "There is no server in it.",
            'Paste {"mcpServers": {"name": {"command": "...", "args": []}}}.',
        )
    return dict(raw), servers


def add(file: Path, raw: Mapping[str, Any], *, replace: bool = False) -> None:
    """Puts servers into the file. Raises Conflict for a name that is taken, and ConfigError."""

    def put(servers: dict[str, Any]) -> None:
        taken = [name for name in raw if name in servers]
        if taken and not replace:
            raise Conflict(
                "server_exists",
                f"There is an MCP server {taken[0]!r} already.",
                "Choose another name, or replace it.",
            )
        servers.update(raw)

    _change(file, put)


def remove(file: Path, name: str) -> None:
    """Takes a server out. Raises ConfigError when it is not in this file."""

    def take(servers: dict[str, Any]) -> None:
        _known(servers, name)
        del servers[name]

    _change(file, take)


def switch(file: Path, name: str, changes: Mapping[str, Any]) -> None:
    """Changes `disabled`, `private`, `effect` and `tools` of a server.

    `tools` is {tool: {enabled?, effect?}}; None takes a setting back. Raises ConfigError.
    """

    def change(servers: dict[str, Any]) -> None:
        server = _known(servers, name)
        if "disabled" in changes:
            server.pop("enabled", None)  # another program's word for the same
        _merge(server, {k: v for k, v in changes.items() if k != "tools"})
        for tool, wanted in changes.get("tools", {}).items():
            own = server.setdefault("tools", {})
            now = own.get(tool)
            own[tool] = {"enabled": now} if isinstance(now, bool) else dict(now or {})
            _merge(own[tool], wanted)
            for only in _ONLY:
                if wanted.get("enabled") and server.get(only) and tool not in server[only]:
                    server[only].append(tool)

    _change(file, change)


def _merge(into: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        into[key] = value
        if value is None:
            del into[key]


def _known(servers: dict[str, Any], name: str) -> dict[str, Any]:
    server = servers.get(name)
    if not isinstance(server, dict):
        known = ", ".join(servers) or "none"
        words = f"There is no MCP server {name[:64]!r} in your own file."
        raise ConfigError("no_server", words, f"There are: {known}.")
    return server


def _change(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the object of servers in the file; one that is broken is left alone."""
    text = read_text(file)
    before = raw_servers(text, str(file))
    broken = {problem.server for problem in parse(text, str(file), _Anything())[1]}
    if before.twice:
        words = f"{file} names {', '.join(sorted(before.twice))} twice."
        raise ConfigError("duplicate_server", words, "Rename or remove one of them first.")

    def inside(value: dict[str, Any]) -> None:
        place = next((place for place in _PLACES if place in value), None)
        bare = place is None and bool(value)
        servers = value if bare else value.setdefault(place or _PLACES[0], {})
        change(servers)
        _, problems = parse(json.dumps(value), str(file), _Anything())
        for problem in problems:
            if problem.server not in broken:
                raise ConfigError(problem.code, problem.message, problem.remedy)

    change_object(file, inside)
