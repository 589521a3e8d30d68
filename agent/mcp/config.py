"""Files of MCP servers (`mcpServers` JSON, as other programs do): reads, trusts, changes them.

A mistake in one server is a Problem with file and place and leaves the others alone; see
docs/mcp.md for the fields. A project's `.mcp.json` comes with somebody's repository and names
programs to run: it is used only when the user has trusted this very content at this very path.
Only a user's own act changes the user's file, and what else stands in it stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError, Conflict, StoreError
from searchloop.agent.mcp.fields import read_server
from searchloop.agent.mcp.server import (
    Problem,
    Server,
    change_object,
    read_object,
)


def parse(
    text: str, file: str, variables: Mapping[str, str], workspace: str | None = None
) -> tuple[list[Server], list[Problem]]:
    """The servers of a file and what is wrong with it."""
    try:
        raw = raw_servers(text, file)
    except ConfigError as error:
        line, column = getattr(error, "place", (1, 1))
        whole = Problem(file, line, column, None, error.code, error.message, error.remedy)
        return [], [whole]
    servers, problems = [], []
    for name, given in raw.items():
        try:
            if name in raw.twice:
                raise ConfigError(
                    "duplicate_server",
                    f"There are two servers called {name!r}, and it is not clear which is meant.",
                    "Rename or remove one of them; until then neither is started.",
                )
            servers.append(read_server(name, given, file, variables, workspace))
        except ConfigError as error:
            line, column = _place(text, name, 1 if name in raw.twice else 0)
            told = (error.code, error.message, error.remedy)
            problems.append(Problem(file, line, column, name, *told))
    return servers, problems


class Raw(dict[str, Any]):
    """Servers by name as they stand in a file; `twice` are the names that stand there twice."""

    twice: frozenset[str] = frozenset()


def raw_servers(text: str, file: str) -> Raw:
    """The object of servers in the text: under `mcpServers` or `servers`, or by itself.

    Raises ConfigError with `place`, (line, column), when it is not JSON or holds no such object.
    """
    if not text.strip():
        return Raw()
    try:
        value = json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        words = (
            f"{file} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        )
        raise _placed(ConfigError("bad_json", words, "Correct it there."), error) from error
    except RecursionError as error:
        raise ConfigError("bad_json", f"{file} is nested too deeply.", "Correct it.") from error
    found = value
    if isinstance(value, Raw):
        found = value.get("mcpServers", value.get("servers", value))
    if not isinstance(found, Raw):
        raise ConfigError(
            "bad_servers",
            f"{file} holds no object of servers.",
            'Write {"mcpServers": {"name": {"command": "...", "args": []}}}.',
        )
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> Raw:
    raw = Raw(pairs)
    if len(raw) < len(pairs):
        names = [name for name, _ in pairs]
        raw.twice = frozenset(name for name in names if names.count(name) > 1)
    return raw


def _placed(error: ConfigError, at: json.JSONDecodeError) -> ConfigError:
    error.place = (at.lineno, at.colno)  # type: ignore[attr-defined]
    return error


def _place(text: str, name: str, nth: int) -> tuple[int, int]:
    """Line and column of a server's name in the text."""
    quoted = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    found = [m for q in quoted for m in re.finditer(re.escape(q) + r"\s*:", text)]
    if not found:
        return 1, 1
    start = sorted(m.start() for m in found)[min(nth, len(found) - 1)]
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


USER_FILE, PROJECT_FILE, TRUST_FILE = "mcp.json", ".mcp.json", "mcp_trust.json"
_LARGEST = 1_000_000  # bytes of a file of servers


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A project's file that waits for the user; `commands` is what its servers would run or ask."""

    file: str
    hash: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class ServerList:
    """What a session's files say."""

    servers: tuple[Server, ...] = ()
    problems: tuple[Problem, ...] = ()
    untrusted: Untrusted | None = None


class Catalogue:
    """Reads the files; one that has not changed is read once."""

    def __init__(self, home: Path, variables: Mapping[str, str]) -> None:
        self._home = home
        self._variables = variables
        self._read: dict[Path, tuple[str, tuple[Server, ...], tuple[Problem, ...]]] = {}

    @property
    def user_file(self) -> Path:
        """Where the user's own servers are."""
        return self._home / USER_FILE

    def find(self, workspace: str | None) -> ServerList:
        """Whatever holds in this folder. Raises nothing: what is wrong is among the problems."""
        _, servers, problems = self._parsed(self.user_file, None)
        if workspace is None:
            return ServerList(servers, problems)
        file = Path(workspace) / PROJECT_FILE
        text, theirs, wrong = self._parsed(file, workspace)
        if not text:
            return ServerList(servers, (*problems, *wrong))
        if not self._trusted(file, text):
            commands = tuple((server.name, server.shown) for server in theirs)
            waits = Untrusted(str(file), content_hash(text), commands)
            return ServerList(servers, (*problems, *wrong), waits)
        known = {server.name for server in servers}
        double = [_shadowed(server) for server in theirs if server.name in known]
        more = tuple(server for server in theirs if server.name not in known)
        return ServerList((*servers, *more), (*problems, *wrong, *double))

    def trust(self, workspace: str, seen: str) -> None:
        """Trusts a project's file with the hash that the user saw. Raises Conflict, StoreError."""
        file = Path(workspace) / PROJECT_FILE
        now = content_hash(read_text(file))
        if now != seen:
            words = f"{file} is not the file that you looked at."
            raise Conflict("file_changed", words, "Look at it again.")

        def put(value: dict[str, str]) -> None:
            value[str(file)] = now

        change_object(self._home / TRUST_FILE, put)

    def _trusted(self, file: Path, text: str) -> bool:
        try:
            return bool(read_object(self._home / TRUST_FILE).get(str(file)) == content_hash(text))
        except StoreError:  # nothing is trusted then
            return False

    def _parsed(
        self, file: Path, workspace: str | None
    ) -> tuple[str, tuple[Server, ...], tuple[Problem, ...]]:
        try:
            text = read_text(file)
        except ConfigError as error:
            told = (error.code, error.message, error.remedy)
            return "", (), (Problem(str(file), 1, 1, None, *told),)
        kept = self._read.get(file)
        if kept is None or kept[0] != text:
            servers, problems = parse(text, str(file), self._variables, workspace)
            kept = self._read[file] = text, tuple(servers), tuple(problems)
        return kept


def content_hash(text: str) -> str:
    """SHA-256 of a file's text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read_text(file: Path) -> str:
    """The file's text, empty when there is no such file. Raises ConfigError."""
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


def _shadowed(server: Server) -> Problem:
    return Problem(
        *(server.file, 1, 1, server.name, "duplicate_server"),
        f"A server called {server.name!r} is in your own file, which goes before the project's.",
        "Rename one of them to use both.",
    )


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
