"""MCP servers in a home of their own, and the little that a tool needs to be called."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchloop.agent.mcp import McpServers
from searchloop.agent.mcp.connection import Connection
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Ask, Tool, ToolContext, nobody
from searchloop.agent.types import Mode, ToolResult
from tests.agent.scripted import Memory

HOSTILE = str(Path(__file__).with_name("hostile_server.py"))


def hostile(mode: str = "ok", seen: Path | None = None, **more: Any) -> dict[str, Any]:
    """The configuration of a server that behaves like this."""
    args = ["-I", "-S", HOSTILE, mode, *([str(seen)] if seen else [])]
    return {"command": sys.executable, "args": args, "startup_timeout": 90, **more}


def lines(seen: Path, word: str = "") -> list[str]:
    """What a server noted so far, of what begins so."""
    noted = seen.read_text("utf-8").splitlines() if seen.exists() else []
    return [line for line in noted if line.startswith(word)]


def write(home: Path, servers: Mapping[str, Any], name: str = "mcp.json") -> Path:
    """A file of servers."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / name
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def settings_of(home: Path, **env: str) -> Settings:
    """Settings of nobody's machine; PATH is where Python is."""
    given = {"SEARCHLOOP_HOME": str(home), "PATH": str(Path(sys.executable).parent), **env}
    return Settings.load(Environment({"test": given}))


@dataclass(frozen=True)
class Chat:
    """The part of a session that decides which tools there are."""

    mode: Mode = "agent"
    workspace: str | None = None
    id: str = "s1"
    model: str = "scripted:one"
    settings: Mapping[str, Any] = field(default_factory=dict)


class Patient(McpServers):
    """A turn waits as long as it takes for a server, not just one second or ten: on a busy machine
    a process is slow to start.
    """

    def _patience(self, connection: Connection) -> float:
        return 90.0


@asynccontextmanager
async def serving(
    home: Path,
    servers: Mapping[str, Any] | None = None,
    window: int = 1_000_000,
    idle: float = 1800.0,
    kind: type[McpServers] = Patient,
    **env: str,
) -> AsyncIterator[McpServers]:
    """The servers of this home, closed at the end."""
    if servers is not None:
        write(home, servers)
    source = kind(settings_of(home, **env), lambda model: window, idle)
    try:
        yield source
    finally:
        await source.aclose()


def by_name(tools: list[Tool]) -> dict[str, Tool]:
    """The tools by the name that a model calls."""
    return {tool.spec.name: tool for tool in tools}


async def run(
    tool: Tool,
    told: Memory | None = None,
    reveal: Callable[[Iterable[str]], None] = list,
    ask: Ask = nobody,
    **arguments: Any,
) -> ToolResult:
    """Calls a tool as the dispatcher would, with its time limit."""
    context = ToolContext("call_1", SourceTable(), told or Memory(), reveal, ask=ask)
    async with asyncio.timeout(tool.seconds):
        result = await tool.run(arguments, context)
    assert isinstance(result, ToolResult)
    return result
