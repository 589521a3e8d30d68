"""Reads, trusts and changes the files of MCP servers (`mcpServers` JSON, as other programs write).

A mistake in one server is a ServerProblem and leaves the others alone;
docs/guides/mcp.md describes the fields. A project's `.mcp.json` comes with a repository and names
programs to run: it is used only if the user has trusted this content at this path. Only the user's
own act changes the user's file, and its other content stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.mcp.server import (
    ONLY,
    McpServer,
    Server,
    ServerProblem,
    change_object,
    given_servers,
    read_object,
    read_server,
    server_parts,
)
from searchloop.agent.settings.secrets import HIDDEN, masked, masked_command
from searchloop.analysis.told import one_of

Parsed = tuple[list[Server], list[ServerProblem]]


def parse(
    text: str, file: str, variables: Mapping[str, str] | None, workspace: str | None = None
) -> Parsed:
    """Returns the servers of a file and its problems."""
    try:
        raw = raw_servers(text, file)
    except ConfigError as error:
        return [], [ServerProblem(error, file)]
    servers, problems = [], []
    for name, given in raw.items():
        try:
            servers.append(read_server(name, given, file, variables, workspace))
        except ConfigError as error:
            problems.append(ServerProblem(error, file, name))
    return servers, problems


def raw_servers(text: str, file: str) -> dict[str, Any]:
    """Returns the object under `mcpServers` or `servers`, or the whole. Raises ConfigError."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{error.msg} at line {error.lineno}, column {error.colno}"
        what = f"{file} is not valid JSON: {where}."
        raise ConfigError("bad_json", what, "Correct it there.") from error
    except RecursionError as error:
        raise ConfigError("bad_json", f"{file} is nested too deeply.", "Correct it.") from error
    if isinstance(value, dict):
        value = value.get("mcpServers", value.get("servers", value))
    if not isinstance(value, dict) or any(
        isinstance(value.get(k), str) for k in ("command", "url")
    ):
        remedy = 'Write {"mcpServers": {"name": {"command": "...", "args": []}}}.'
        raise ConfigError("bad_servers", f"{file} does not name its servers.", remedy)
    return value


USER_FILE, PROJECT_FILE, TRUST_FILE = "mcp.json", ".mcp.json", "mcp_trust.json"
_LARGEST = 1_000_000  # bytes of a file of servers


class Untrusted(NamedTuple):
    """A project's file that the user has not trusted; `commands` is what its servers would run."""

    file: str
    hash: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]


class ServerList(NamedTuple):
    """The servers of a folder: the user's own, and those of its project once it is trusted."""

    servers: tuple[Server, ...] = ()
    problems: tuple[ServerProblem, ...] = ()
    untrusted: Untrusted | None = None

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the servers in the names of their tools."""
        return server_parts(server.name for server in self.servers)

    def named(self, name: str) -> Server:
        """Returns the server with this name. Raises ConfigError, with its problem if it has one."""
        for server in self.servers:
            if server.name == name:
                return server
        for problem in self.problems:
            if problem.server == name:
                raise problem.error
        raise no_server(f"There is no MCP server {name[:64]!r}.", name, self.parts)


def no_server(what: str, name: str, known: Collection[str]) -> ConfigError:
    """Makes the error for a server that is not there."""
    remedy = one_of(name, known) if known else "`searchloop mcp add` adds one."
    return ConfigError("no_server", what, remedy)


def file_notices(found: ServerList) -> list[dict[str, str]]:
    """Returns notices about the files: their problems, and servers that are not trusted."""
    told = [
        {**p.error.as_dict(), "message": f"{p.error.message} ({p.file})"} for p in found.problems
    ]
    if found.untrusted:
        words = f"The MCP servers of {found.untrusted.file} are not used."
        folder = shlex.quote(str(Path(found.untrusted.file).parent))
        remedy = f"Look at them in the settings under Tools, or: searchloop mcp trust {folder}"
        told.append({"code": "mcp_untrusted", "message": words, "remedy": remedy})
    return told


class Catalogue:
    """Reads the files anew each time; the servers `given` go in their place."""

    def __init__(
        self, home: Path, variables: Mapping[str, str], given: Mapping[str, McpServer] | None = None
    ) -> None:
        self._given = None if given is None else ServerList(given_servers(given, variables))
        self._home = home
        self._variables = variables

    @property
    def user_file(self) -> Path:
        """The file of the user's own servers."""
        return self._home / USER_FILE

    def find(self, workspace: str | None) -> ServerList:
        """Returns the servers for a folder. Never raises: a broken file is among the problems."""
        if self._given is not None:
            return self._given
        _, (servers, problems) = self._parsed(self.user_file, None)
        if workspace is None:
            return ServerList(tuple(servers), tuple(problems))
        file = Path(workspace) / PROJECT_FILE
        text, (theirs, wrong) = self._parsed(file, workspace)
        if text and not self._trusted(file, text):
            commands = tuple((server.name, server.shown) for server in theirs)
            waits = Untrusted(str(file), content_hash(text), commands)
            return ServerList(tuple(servers), (*problems, *wrong), waits)
        known = {server.name for server in servers}
        double = [_shadowed(server) for server in theirs if server.name in known]
        more = [server for server in theirs if server.name not in known]
        return ServerList((*servers, *more), (*problems, *wrong, *double))

    def trust(self, workspace: str, seen: str) -> None:
        """Trusts a project's file with the hash that the user saw. Raises AgentError."""
        file = Path(workspace) / PROJECT_FILE
        now = content_hash(read_text(file))
        if now != seen:
            words = f"{file} is not the file that you looked at."
            raise Conflict("file_changed", words, "Look at it again.")
        change_object(self._home / TRUST_FILE, lambda value: value.update({str(file): now}))

    def _trusted(self, file: Path, text: str) -> bool:
        try:
            return bool(read_object(self._home / TRUST_FILE).get(str(file)) == content_hash(text))
        except ConfigError:  # nothing is trusted then
            return False

    def _parsed(self, file: Path, workspace: str | None) -> tuple[str, Parsed]:
        try:
            text = read_text(file)
        except ConfigError as error:
            return "", ([], [ServerProblem(error, str(file))])
        return text, parse(text, str(file), self._variables, workspace)


def content_hash(text: str) -> str:
    """Returns the SHA-256 of a file's text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read_text(file: Path) -> str:
    """Reads a file, "" without one. Raises ConfigError."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        words = f"{file} cannot be read: {error.strerror}."
        raise ConfigError("bad_file", words, "Correct its rights.") from error
    if len(data) > _LARGEST:
        words = f"{file} has more than {_LARGEST} bytes."
        raise ConfigError("bad_file", words, "A list of MCP servers is small; shorten it.")
    return data.decode("utf-8-sig", "surrogateescape")


def _shadowed(server: Server) -> ServerProblem:
    what = f"A server called {server.name!r} is in your own file, which goes before the project's."
    remedy = "Rename one of them to use both."
    return ServerProblem(ConfigError("duplicate_server", what, remedy), server.file, server.name)


_PLACES = ("mcpServers", "servers")


def pasted(text: str) -> tuple[dict[str, Any], list[Server]]:
    """Reads servers that the user pasted: (raw, read). Raises ConfigError for a mistake."""
    raw = raw_servers(text, "The text")
    servers, problems = parse(text, "The text", None)
    if problems:
        raise problems[0].error
    if not servers:
        remedy = 'Paste {"mcpServers": {"name": {"command": "...", "args": []}}}.'
        raise ConfigError("no_servers", "There is no server in it.", remedy)
    return raw, servers


def add(file: Path, raw: Mapping[str, Any], *, replace: bool = False) -> None:
    """Puts servers into the file. Raises Conflict for a name that is taken, and ConfigError."""

    def put(servers: dict[str, Any]) -> None:
        taken = [name for name in raw if name in servers]
        if taken and not replace:
            what = f"There is an MCP server {taken[0]!r} already."
            raise Conflict("server_exists", what, "Choose another name, or replace it.")
        for name, given in raw.items():
            before = servers.get(name)
            shown = _masked(before) if isinstance(before, dict) else None
            servers[name] = _unmasked(given, shown, before)

    _change(file, put)


def entry(file: Path, name: str) -> dict[str, Any]:
    """Returns a server as the file has it, to be edited: its keys are masked. Raises ConfigError.

    `add` with `replace` puts the keys back where the masks still stand.
    """
    return _masked(_known(raw_servers(read_text(file), str(file)), name))


def _masked(given: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(given)
    for part in ("env", "headers"):
        if isinstance(pairs := shown.get(part), dict):
            shown[part] = {k: v if "${" in str(v) else HIDDEN for k, v in pairs.items()}
    if isinstance(words := shown.get("args"), list):
        shown["args"] = list(masked_command(tuple(map(str, words))))
    if isinstance(shown.get("url"), str):
        shown["url"] = masked(shown["url"])
    return shown


def _unmasked(given: Any, shown: Any, before: Any) -> Any:
    """Returns an edited value with what it was `before` where it stands as it was `shown`."""
    if given == shown:
        return before
    if isinstance(given, dict) and isinstance(before, dict):
        return {k: _unmasked(v, shown.get(k), before.get(k)) for k, v in given.items()}
    if isinstance(given, list) and isinstance(before, list):
        kept = dict(zip(shown, before, strict=True))
        return [kept.get(word, word) for word in given]
    return given


def remove(file: Path, name: str) -> None:
    """Removes a server. Raises ConfigError if it is not in this file."""

    def take(servers: dict[str, Any]) -> None:
        _known(servers, name)
        del servers[name]

    _change(file, take)


def switch(file: Path, name: str, changes: Mapping[str, Any]) -> None:
    """Changes `disabled`, `private`, `effect` and `tools` of a server. Raises ConfigError.

    `tools` is {tool: {enabled?, effect?}}; None removes a setting.
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
            for only in ONLY:
                if wanted.get("enabled") and server.get(only) and tool not in server[only]:
                    server[only].append(tool)

    _change(file, change)


def _merge(into: dict[str, Any], changes: Mapping[str, Any]) -> None:
    into.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del into[key]


def _known(servers: dict[str, Any], name: str) -> dict[str, Any]:
    server = servers.get(name)
    if not isinstance(server, dict):
        what = f"There is no MCP server {name[:64]!r} in your own file."
        raise no_server(what, name, servers)
    return server


def _change(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the servers in the file. Raises ConfigError for a broken file or a new mistake."""
    text = read_text(file)
    broken = {problem.server for problem in parse(text, str(file), None)[1]}
    raw_servers(text, str(file))

    def inside(value: dict[str, Any]) -> None:
        place = next((place for place in _PLACES if place in value), None)
        bare = place is None and bool(value)
        change(value if bare else value.setdefault(place or _PLACES[0], {}))
        for problem in parse(json.dumps(value), str(file), None)[1]:
            if problem.server not in broken:
                raise problem.error

    change_object(file, inside)
