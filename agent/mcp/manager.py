"""The MCP servers of a process: connects them when first needed and offers their tools.

Everything here belongs to one asyncio loop, the runner's. A server that fails harms no other and
raises nothing to a caller of `tools`: `status` reports it. No report contains a variable's value.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.mcp.calls import tool_of
from searchloop.agent.mcp.config import Catalogue, ServerList, remove, switch
from searchloop.agent.mcp.connection import Connection
from searchloop.agent.mcp.definitions import Definition, Pins, Unusable, spec_of, tokens_of
from searchloop.agent.mcp.http import forget, kept_tokens
from searchloop.agent.mcp.offers import Offers
from searchloop.agent.mcp.server import Server, clean, line, server_parts, tool_name
from searchloop.agent.observe.logs import Redactor
from searchloop.agent.run.prompts import agent_in, may_ask
from searchloop.agent.settings import Settings
from searchloop.agent.tools import ALLOWED, ServerState, Tool
from searchloop.agent.types import Mode

_SESSIONS = 500  # remembered
_SHARE = 0.1  # of a model's context for definitions of tools; above it only names are sent
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


def troubles_of(found: ServerList) -> list[dict[str, str]]:
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


def whole_report(found: ServerList, servers: list[dict[str, Any]], file: str) -> dict[str, Any]:
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


PATIENCE, AGAIN = 10.0, 1.0  # seconds a turn waits for a server never seen before, and for others
_AROUND = 30.0  # at most, for what we load before a server starts and for its end in good order
IDLE = 1800.0  # seconds after which a project's server may go, once another project is worked in
CONTEXT = 32_000  # tokens of a model that does not say how many it takes
_SUSPENDED = "Its definition has changed; the user has to approve it: searchloop mcp approve"

Window = Callable[[str], int | None]  # model -> tokens of its context, where that is known
Key = tuple[str | None, str]


class Asking(Protocol):
    """The part of a session that decides which tools there are."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def model(self) -> str:
        """provider:model."""

    @property
    def mode(self) -> Mode:
        """What may be done."""

    @property
    def workspace(self) -> str | None:
        """Its folder, whose `.mcp.json` counts once it is trusted."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What else it remembers: the agent that it runs as."""


class McpServers:
    """A source of tools. `window` tells how many tokens a model takes, where that is known; `idle`
    is how long a project's server is kept while other projects are worked in.
    """

    def __init__(
        self, settings: Settings, window: Window = lambda model: None, idle: float = IDLE
    ) -> None:
        self.catalogue = Catalogue(settings.home, settings.env)
        self._settings = settings
        self.window = window
        self._idle = idle
        self._pins = Pins(settings.home)
        self._offers = Offers()
        self._once = Once()
        self._connections: dict[Key, Connection] = {}
        self._suspended: dict[Key, dict[str, str]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def tools(self, session: Asking) -> list[Tool]:
        """What there is for a turn of this session; waits a little for servers that are new."""
        found, wanted = self._wanted(session)
        self._reconcile(found, session.workspace)
        if not wanted:
            return []
        allowed = ALLOWED[session.mode]
        connections = [self._connection(server) for server in wanted]
        await asyncio.gather(*(c.ready(self._patience(c)) for c in connections))
        parts = server_parts(server.name for server in found.servers)
        tools = [tool for c in connections for tool in self._tools_of(c, parts[c.server.name])]
        usable = [tool for tool in tools if tool.spec.effect in allowed]
        return self._offers.settle(session.id, usable, self._budget(session.model))

    def servers(self, session: Asking) -> dict[str, ServerState]:
        """How each one stands that could bring tools; what failed lately is not waited for."""
        told: dict[str, ServerState] = {}
        for server in self._wanted(session)[1]:
            found = self._connections.get(_key(server))
            known = found if found and found.server.reached_as(server) else None
            resting = known is not None and known.retry_in is not None
            ready = known is not None and known.state == "ready"
            told[server.name] = "ready" if ready else "failed" if resting else "waiting"
        return told

    def _wanted(self, session: Asking) -> tuple[ServerList, list[Server]]:
        found, preset = self.catalogue.find(session.workspace), agent_in(session.settings)
        asked = [server for server in found.servers if may_ask(preset, server.name)]
        return found, [s for s in asked if s.may_offer(ALLOWED[session.mode])]

    def notices(self, session: Asking) -> list[dict[str, str]]:
        """What keeps tools away that this turn could have had; each once a session."""
        found, wanted = self._wanted(session)
        told = troubles_of(found) if "exec" in ALLOWED[session.mode] else []
        for server in wanted:
            connection = self._connections.get(_key(server))
            if connection:
                told += troubles_with(connection, self._suspended.get(_key(server), {}))
        return self._once.fresh(session.id, told)

    def secrets(self, workspace: str | None) -> dict[str, str]:
        """What servers are given as keys: wherever their file says so, and by a login."""
        given = {
            f"{name} of the MCP server {server.name}": value
            for server in self.catalogue.find(workspace).servers
            for name, value in server.keys().items()
        }
        with suppress(StoreError):  # a file that cannot be read gives nobody a token
            given |= kept_tokens(self._settings.home)
        return given

    def status(self, workspace: str | None = None) -> list[dict[str, Any]]:
        """Every server of this folder's files, as `agent.mcp.report` describes it."""
        report: list[dict[str, Any]] = self.overview(workspace)["servers"]
        return report

    def overview(self, workspace: str | None = None) -> dict[str, Any]:
        """Servers, problems of the files, and what waits for trust."""
        found = self.catalogue.find(workspace)
        parts = server_parts(server.name for server in found.servers)
        servers = [self._report(server, parts[server.name]) for server in found.servers]
        return whole_report(found, servers, str(self.catalogue.user_file))

    async def test(self, name: str, workspace: str | None = None) -> dict[str, Any]:
        """Connects now, whatever happened before, and says what came of it. Raises ConfigError."""
        found = self.catalogue.find(workspace)
        server = named(found, name)
        self._reconcile(found, workspace)
        connection = self._connection(server)
        if not server.disabled:
            connection.retry_now()
            await connection.ready(server.startup_seconds + _AROUND)
        parts = server_parts(each.name for each in found.servers)
        said = Redactor(self.secrets(workspace).values).known(connection.said.tail)
        return {**self._report(server, parts[name]), "stderr": said}

    def named(self, name: str, workspace: str | None = None) -> Server:
        """The server called so. Raises ConfigError."""
        return named(self.catalogue.find(workspace), name)

    async def approve(
        self, name: str, tool: str, seen: str, workspace: str | None = None
    ) -> dict[str, Any]:
        """Approves a changed definition: the one whose hash the user has seen.

        Raises ConfigError for a tool that is not there, and Conflict when it changed again.
        """
        server = named(self.catalogue.find(workspace), name)
        connection = self._connection(server)
        await connection.ready(server.startup_seconds)
        definition = connection.listing.get(tool)
        if definition is None:
            words = f"The MCP server {name!r} has no tool {tool[:80]!r}."
            raise connection.error or ConfigError("no_tool", words, f"searchloop mcp tools {name}")
        self._pins.approve(server, definition, seen)
        self._listed(connection)
        return await self.test(name, workspace)

    def remove(self, name: str) -> None:
        """Takes a server out of the user's file, and forgets its pins and its login.

        Raises ConfigError when it is not there, and StoreError.
        """
        known = [s for s in self.catalogue.find(None).servers if s.name == name]
        remove(self.catalogue.user_file, name)
        for server in known:
            self._pins.forget(server)
            if server.url:
                forget(self._settings.home, server.url)

    def switch(self, name: str, changes: Mapping[str, Any]) -> None:
        """Sets switches in the user's file, which hold at once. Raises ConfigError, StoreError."""
        switch(self.catalogue.user_file, name, changes)
        self._reconcile(self.catalogue.find(None), None)

    def use(self, settings: Settings) -> None:
        """From now on these settings hold: variables may be different ones."""
        self._settings = settings
        self.catalogue = Catalogue(settings.home, settings.env)

    async def aclose(self) -> None:
        """Ends all connections."""
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(c.aclose() for c in connections), *self._closing)

    def _reconcile(self, found: ServerList, workspace: str | None) -> None:
        """Lets go of servers that are no longer in their file, or are different there, and of
        those of projects that nobody works in. Other switches for their tools make none different.
        """
        now = {_key(server): server for server in found.servers}
        for key, connection in list(self._connections.items()):
            ours, server = key[0] is None or key[0] == workspace, now.get(key)
            if server and server.reached_as(connection.server):
                connection.server = server
            elif ours or connection.idle > self._idle:
                del self._connections[key]
                self._suspended.pop(key, None)
                task = asyncio.create_task(connection.aclose())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def _connection(self, server: Server) -> Connection:
        key = _key(server)
        found = self._connections.get(key)
        if found is None:
            settings = self._settings
            found = Connection(server, settings.env, settings.home, offline=settings.offline)
            found.on_listing = self._listed
            self._connections[key] = found
        return found

    def _listed(self, connection: Connection) -> None:
        """A listing came: new tools are pinned, changed ones suspended. Raises StoreError."""
        server = connection.server
        self._suspended[_key(server)] = self._pins.settle(server, connection.listing)

    def _tools_of(self, connection: Connection, part: str) -> Iterable[Tool]:
        """The tools that are switched on and can be passed on."""
        suspended = self._suspended.get(_key(connection.server), {})
        taken: set[str] = set()
        for definition in self._listing(connection).values():
            switch = connection.server.switch(definition.name)
            name = tool_name(part, definition.name)
            if not switch.enabled or switch.effect is None or name in taken:
                continue
            taken.add(name)
            try:
                spec = spec_of(definition, name, connection.server.name, switch.effect)
            except Unusable:
                continue
            why = None
            if definition.name in suspended:
                why = f"{_SUSPENDED} {connection.server.name} {definition.name}"
            yield tool_of(connection, definition, spec, why)

    def _listing(self, connection: Connection) -> Mapping[str, Definition]:
        """What it lists; while it still starts, what it listed before. A call waits for it then,
        and is refused when the tool has changed since.
        """
        if connection.state == "connecting" and not connection.listing:
            with suppress(StoreError):
                return self._pins.known(connection.server)
        return connection.listing

    def _patience(self, connection: Connection) -> float:
        known = connection.error or connection.listing or connection.state == "ready"
        with suppress(StoreError):
            known = known or self._pins.known(connection.server)
        return AGAIN if known else PATIENCE

    def _report(self, server: Server, part: str) -> dict[str, Any]:
        key = _key(server)
        connection = self._connections.get(key)
        if connection and not connection.server.reached_as(server):
            connection = None
        return server_report(server, connection, part, self._suspended.get(key, {}))

    def _budget(self, model: str) -> int:
        return int(_SHARE * (self.window(model) or CONTEXT))


def named(found: ServerList, name: str) -> Server:
    """The server called so. Raises ConfigError, with what is wrong with it where that is known."""
    for server in found.servers:
        if server.name == name:
            return server
    for problem in found.problems:
        if problem.server == name:
            raise ConfigError(problem.code, problem.message, problem.remedy)
    known = ", ".join(server.name for server in found.servers) or "none"
    raise ConfigError("no_server", f"There is no MCP server {name[:64]!r}.", f"There are: {known}.")


def _key(server: Server) -> Key:
    return server.workspace, server.name
