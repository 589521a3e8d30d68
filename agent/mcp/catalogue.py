"""The servers that hold for a session: the user's file, and a project's once it is trusted.

A project's `.mcp.json` comes with somebody's repository and names programs to run. It is used only
when the user has trusted this very content at this very path; after any change it has to be trusted
again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ConfigError, Conflict, StoreError
from agent.mcp.config import parse
from agent.mcp.files import change_object, read_object
from agent.mcp.server import Problem, Server

USER_FILE, PROJECT_FILE, TRUST_FILE = "mcp.json", ".mcp.json", "mcp_trust.json"
_LARGEST = 1_000_000  # bytes of a file of servers


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A project's file that waits for the user; `commands` is what its servers would run or ask."""

    file: str
    hash: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Found:
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

    def find(self, workspace: str | None) -> Found:
        """Whatever holds in this folder. Raises nothing: what is wrong is among the problems."""
        _, servers, problems = self._parsed(self.user_file, None)
        if workspace is None:
            return Found(servers, problems)
        file = Path(workspace) / PROJECT_FILE
        text, theirs, wrong = self._parsed(file, workspace)
        if not text:
            return Found(servers, (*problems, *wrong))
        if not self._trusted(file, text):
            commands = tuple((server.name, server.shown) for server in theirs)
            waits = Untrusted(str(file), content_hash(text), commands)
            return Found(servers, (*problems, *wrong), waits)
        known = {server.name for server in servers}
        double = [_shadowed(server) for server in theirs if server.name in known]
        more = tuple(server for server in theirs if server.name not in known)
        return Found((*servers, *more), (*problems, *wrong, *double))

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
