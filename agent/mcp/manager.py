"""Connects the MCP servers of a process when they are first needed, and offers their tools.

Everything here runs on one asyncio loop, the runner's. A server that fails harms no other and
raises nothing to a caller of `tools`: `overview` reports it. No report contains a variable's value.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.session import Session
from searchloop.agent.mcp.calls import reader_of, tool_of
from searchloop.agent.mcp.config import Catalogue, ServerList, file_notices, remove, switch
from searchloop.agent.mcp.connection import Connection
from searchloop.agent.mcp.definitions import Definition, Offers, Pins, Unusable, spec_of, tokens_of
from searchloop.agent.mcp.login import forget, kept_tokens
from searchloop.agent.mcp.server import (
    GIVEN,
    McpServer,
    Server,
    clean,
    line,
    session_sets,
    tool_name,
)
from searchloop.agent.observe.logs import Redactor
from searchloop.agent.run.prompts import agent_in, may_ask
from searchloop.agent.settings import Settings
from searchloop.agent.tools import ALLOWED, ServerState, Tool

_SHARE = 0.1  # of a model's context for definitions of tools; above it only names are sent
_SHOWN = ("retry_in", "protocol", "title", "version")


def server_notices(connection: Connection) -> list[dict[str, str]]:
    """Returns notices about a server: its error, and its suspended tools."""
    told = [connection.error.as_dict()] if connection.error else []
    name, given = connection.server.name, connection.server.file == GIVEN
    for tool in connection.suspended:
        shown = line(tool, 80)
        words = f"The tool {shown!r} of the MCP server {name!r} has changed, and is not used."
        look = f"Look at the change: {connection.server.command_line('approve', shown)}"
        remedy = "A new agent takes it as it is then." if given else look
        told.append({"code": "mcp_suspended", "message": words, "remedy": remedy})
    return told


def plan_of(server: Server) -> dict[str, Any]:
    """Describes a server that is not started: what it would run or ask, and with what."""
    named = ("name", "file", "workspace", "kind", "cwd", "disabled", "private")
    return {
        **{name: getattr(server, name) for name in named},
        "command": list(server.shown),
        "variables": sorted(server.env),
        "headers": sorted(server.headers),
        "effect": server.effect or "exec",
    }


def server_report(connection: Connection, part: str) -> dict[str, Any]:
    """Describes a server: its plan, its state, its tools and their tokens in each request."""
    server, error = connection.server, connection.error
    tools = [_tool(connection, each, part) for each in connection.listing.values()]
    return {
        **plan_of(server),
        "state": "disabled" if server.disabled else connection.state,
        "error": error.as_dict() if error else None,
        **{name: getattr(connection, name) for name in _SHOWN},
        "oddities": list(connection.oddities),
        "tools": tools,
        "tokens": sum(tool["tokens"] for tool in tools if tool["enabled"]),
    }


def _tool(connection: Connection, definition: Definition, part: str) -> dict[str, Any]:
    """Describes a tool: its switch, and the change that suspended it."""
    server, switch = connection.server, connection.server.switch(definition.name)
    name, unusable, tokens = tool_name(part, definition.name), None, 0
    try:
        tokens = tokens_of(spec_of(definition, name, server.name, switch.effect or "exec"))
    except Unusable as problem:
        unusable = str(problem)
    diff = connection.suspended.get(definition.name)
    return {
        "name": line(definition.name, 128),
        "offered_as": name,
        "title": line(definition.title, 100),
        "description": clean(definition.description, 1000),
        "enabled": switch.enabled,
        "effect": switch.effect,
        "tokens": tokens,
        "unusable": unusable,
        "definition": definition.hash,
        "suspended": None if diff is None else {"diff": diff},
    }


PATIENCE, AGAIN = 10.0, 1.0  # seconds that a turn waits for a new server, and for others
_AROUND = 30.0  # seconds more in a test: to load the SDK, and to close a server in good order
_LONG = 3600.0  # seconds
IDLE = 1800.0  # seconds
CONTEXT = 32_000  # tokens of a model whose window is unknown
READER = "read_resource"
_SUSPENDED = "Its definition has changed, and the user has not approved that."

Window = Callable[[str], int | None]
Key = tuple[str | None, str]


class McpServers:
    """A source of tools. `window` returns the tokens that a model takes, None if unknown.

    A project's server that was not used for `idle` seconds is closed once another project is used.

    `settings` name its files; with `given` those servers are used and no file is. Raises
    ConfigError for one of them that cannot be used.

        Agent(settings, bring=[McpServers(settings)])
    """

    def __init__(
        self,
        settings: Settings,
        window: Window = lambda model: None,
        idle: float = IDLE,
        given: Mapping[str, McpServer] | None = None,
    ) -> None:
        self._given = given
        self.use(settings)
        self.window = window
        self._idle = idle
        self._pins = Pins(settings.home if given is None else None)
        self._offers = Offers()
        self._told = session_sets()
        self._connections: dict[Key, Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def tools(self, session: Session) -> list[Tool]:
        """Returns the tools for a turn; waits a little for servers that are still starting."""
        found, wanted = self._wanted(session)
        self._reconcile(found, session.workspace)
        if not wanted:
            return []
        allowed = ALLOWED[session.mode]
        connections = [self._connection(server) for server in wanted]
        await asyncio.gather(*(c.ready(self._patience(c)) for c in connections))
        parts = found.parts
        tools = [tool for c in connections for tool in self._tools_of(c, parts[c.server.name])]
        usable = [tool for tool in tools if tool.spec.effect in allowed]
        budget = int(_SHARE * (self.window(session.model) or CONTEXT))
        return self._offers.settle(session.id, usable, budget)

    def servers(self, session: Session) -> dict[str, ServerState]:
        """Returns the state of each server that could bring tools; a failed one is not waiting."""
        told: dict[str, ServerState] = {}
        for server in self._wanted(session)[1]:
            known = self._known(server)
            ready = known is not None and known.state == "ready"
            resting = known is not None and known.retry_in is not None
            told[server.name] = "ready" if ready else "failed" if resting else "waiting"
        return told

    def _wanted(self, session: Session) -> tuple[ServerList, list[Server]]:
        found, preset = self.catalogue.find(session.workspace), agent_in(session.settings)
        asked = [server for server in found.servers if may_ask(preset, server.name)]
        return found, [s for s in asked if s.may_offer(ALLOWED[session.mode])]

    def notices(self, session: Session) -> list[dict[str, str]]:
        """Returns what keeps tools away from this turn; each notice once a session."""
        found, wanted = self._wanted(session)
        told = file_notices(found) if "exec" in ALLOWED[session.mode] else []
        for server in wanted:
            if connection := self._connections.get(_key(server)):
                told += server_notices(connection)
        known = self._told(session.id)
        new = [notice for notice in told if notice["message"] not in known]
        known.update(notice["message"] for notice in new)
        return new

    def secrets(self, workspace: str | None) -> dict[str, str]:
        """Returns the keys of the servers, from their files and from logins."""
        given = {
            f"{name} of the MCP server {server.name}": value
            for server in self.catalogue.find(workspace).servers
            for name, value in server.keys().items()
        }
        with suppress(ConfigError):  # a server gets no token from a file that cannot be read
            given |= kept_tokens(self._settings.home)
        return given

    def overview(self, workspace: str | None = None) -> dict[str, Any]:
        """Describes the servers, the problems of the files, and a file that is not trusted."""
        found = self.catalogue.find(workspace)
        waits = found.untrusted
        commands = [{"name": n, "command": list(c)} for n, c in waits.commands] if waits else []
        return {
            "file": str(self.catalogue.user_file),
            "servers": [self._report(server, found) for server in found.servers],
            "problems": [
                {**error.as_dict(), "file": file, "server": server}
                for error, file, server in found.problems
            ],
            "untrusted": waits and {**waits._asdict(), "commands": commands},
        }

    async def test(
        self, name: str, workspace: str | None = None, patience: float = _LONG
    ) -> dict[str, Any]:
        """Connects now, even after failures, and describes the server. Raises ConfigError.

        After `patience` seconds it may still be connecting.
        """
        found = self.catalogue.find(workspace)
        server = found.named(name)
        self._reconcile(found, workspace)
        connection = self._connection(server)
        if not server.disabled:
            connection.retry_now()
            await connection.ready(min(patience, server.startup_seconds + _AROUND))
        said = Redactor(self.secrets(workspace).values).known(connection.said.tail)
        told = {**self._report(server, found), "stderr": said}
        if (error := told["error"]) and error["remedy"] == server.see_why():  # it names this
            error["remedy"] = server.alone()
        return told

    def named(self, name: str, workspace: str | None = None) -> Server:
        """Returns the server with this name. Raises ConfigError."""
        return self.catalogue.find(workspace).named(name)

    async def prompts(self, workspace: str | None = None) -> list[dict[str, str]]:
        """Lists the prompts of servers that run, as SERVER:PROMPT with what it takes and does."""
        servers = [each for each in self.catalogue.find(workspace).servers if not each.disabled]
        return [p for each in servers for p in await self._connection(each).told_prompts()]

    async def prompt(self, name: str, words: str, workspace: str | None = None) -> str:
        """Returns the text of `SERVER:PROMPT`, for the user to look at. Raises AgentError."""
        server, _, prompt = name.partition(":")
        connection = self._connection(self.named(server, workspace))
        if connection.server.disabled:
            what = f"The MCP server {server!r} is switched off."
            raise ConfigError("no_server", what, f"searchloop mcp enable {shlex.quote(server)}")
        return await connection.prompt(prompt, words.split())

    async def approve(
        self, name: str, tool: str, seen: str, workspace: str | None = None
    ) -> dict[str, Any]:
        """Approves the changed definition whose hash the user has seen.

        Raises ConfigError for an unknown tool, and Conflict if it has changed again.
        """
        server = self.named(name, workspace)
        connection = self._connection(server)
        await connection.ready(server.startup_seconds)
        definition = connection.listing.get(tool)
        if definition is None:
            words = f"The MCP server {name!r} has no tool {tool[:80]!r}."
            raise connection.error or ConfigError(
                "no_tool", words, f"searchloop mcp test {shlex.quote(name)}"
            )
        self._pins.approve(server, definition, seen)
        self._listed(connection)
        return await self.test(name, workspace)

    def remove(self, name: str) -> None:
        """Deletes a server from the user's file, its pins and its login.

        Raises ConfigError for an unknown server, and StoreError.
        """
        known = [s for s in self.catalogue.find(None).servers if s.name == name]
        remove(self.catalogue.user_file, name)
        for server in known:
            self._pins.forget(server)
            if server.url:
                forget(self._settings.home, server.url)

    def switch(self, name: str, changes: Mapping[str, Any]) -> None:
        """Sets switches in the user's file at once. Raises ConfigError, StoreError."""
        switch(self.catalogue.user_file, name, changes)
        self._reconcile(self.catalogue.find(None), None)

    def use(self, settings: Settings) -> None:
        """Takes new settings, in which variables may differ."""
        self._settings = settings
        self.catalogue = Catalogue(settings.home, settings.env, self._given)

    async def aclose(self) -> None:
        """Closes all connections."""
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(c.aclose() for c in connections), *self._closing)

    def _reconcile(self, found: ServerList, workspace: str | None) -> None:
        """Closes servers that their file no longer has or has changed, and those of idle projects.

        A server whose tools only have other switches stays connected.
        """
        now = {_key(server): server for server in found.servers}
        for key, connection in list(self._connections.items()):
            ours, server = key[0] is None or key[0] == workspace, now.get(key)
            if server and server.reached_as(connection.server):
                connection.server = server
            elif ours or connection.idle > self._idle:
                del self._connections[key]
                task = asyncio.create_task(connection.aclose())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def _connection(self, server: Server) -> Connection:
        key = _key(server)
        found = self._connections.get(key)
        if found is None:
            found = self._connections[key] = Connection(server, self._settings)
            found.on_listing = self._listed
        return found

    def _listed(self, connection: Connection) -> None:
        """Pins the new tools of a listing and suspends changed ones. Raises StoreError."""
        connection.suspended = self._pins.settle(connection.server, connection.listing)

    def _tools_of(self, connection: Connection, part: str) -> Iterable[Tool]:
        """Yields the tools that are switched on and usable."""
        server = connection.server
        taken: set[str] = set()
        own, reader = server.switch(READER), tool_name(part, READER)
        reads = connection.resources and READER not in connection.listing and own.enabled
        if reads and own.effect:
            yield reader_of(connection, reader, own.effect)
        for definition in connection.listing.values():
            switch, name = server.switch(definition.name), tool_name(part, definition.name)
            if not switch.enabled or switch.effect is None or name in taken:
                continue
            taken.add(name)
            with suppress(Unusable):
                spec = spec_of(definition, name, server.name, switch.effect)
                changed = definition.name in connection.suspended
                why = _SUSPENDED if changed else None
                yield tool_of(connection, definition, spec, why, reader if reads else None)

    def _patience(self, connection: Connection) -> float:
        if connection.error or connection.listing:
            return AGAIN
        server = connection.server
        return server.startup_seconds if server.file == GIVEN else PATIENCE

    def _known(self, server: Server) -> Connection | None:
        found = self._connections.get(_key(server))
        return found if found and found.server.reached_as(server) else None

    def _report(self, server: Server, found: ServerList) -> dict[str, Any]:
        connection = self._known(server) or Connection(server, self._settings)
        return server_report(connection, found.parts[server.name])


def _key(server: Server) -> Key:
    return server.workspace, server.name
