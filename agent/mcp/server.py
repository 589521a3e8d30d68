"""Values that the other modules share: a server's settings, names of tools, clean text, files.

Tools are offered as `mcp_<server>_<tool>`: providers take 64 of `a-z A-Z 0-9 _ -`. The server's
part follows from the configuration and the tool's part from that tool alone, so no server can take
or move another's name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from searchloop.agent.errors import AgentError, ConfigError, StoreError
from searchloop.agent.settings.keys import replace_private
from searchloop.agent.settings.secrets import given_by_flags, secrets_of
from searchloop.agent.text import neutral
from searchloop.agent.types import Effect

EFFECTS: tuple[Effect, ...] = get_args(Effect)
SECONDS, STARTUP_SECONDS = 60.0, 120.0


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file, or in one server of it; `line` and `column` count from 1."""

    file: str
    line: int
    column: int
    server: str | None
    code: str
    message: str
    remedy: str

    @classmethod
    def of(
        cls, error: AgentError, file: str, server: str | None = None, at: tuple[int, int] = (1, 1)
    ) -> Problem:
        """Describes an error at a place of a file."""
        return cls(file, *at, server, error.code, error.message, error.remedy)

    @property
    def error(self) -> ConfigError:
        """The error, to be raised."""
        return ConfigError(self.code, self.message, self.remedy)


@dataclass(frozen=True, slots=True)
class Switch:
    """The user's settings for one tool."""

    enabled: bool = True
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One server, checked and with its variables filled in.

    `shown` is its command or address as the file has it, without the values of variables and
    without keys. `workspace` is the folder whose file names it, None for the user's own file.
    """

    name: str
    file: str
    shown: tuple[str, ...]
    kind: str = "stdio"
    workspace: str | None = None
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: Mapping[str, Any] = field(default_factory=dict, repr=False)
    disabled: bool = False
    private: bool = False
    effect: Effect | None = None
    tools: Mapping[str, Switch] = field(default_factory=dict)
    only: frozenset[str] | None = None
    seconds: float = SECONDS
    startup_seconds: float = STARTUP_SECONDS

    def reached_as(self, other: Server) -> bool:
        """Returns True if one connection serves both: only settings of their tools differ."""
        same: dict[str, Any] = {"private": False, "effect": None, "tools": {}, "only": None}
        return replace(self, **same) == replace(other, **same)

    def keys(self) -> dict[str, str]:
        """Returns the keys in its settings, by the place where they stand."""
        places = {**self.env, **self.headers, "its address": self.url}
        named = given_by_flags((self.command, *self.args))
        return secrets_of(places) | {f"{flag} in its arguments": key for flag, key in named.items()}

    def switch(self, tool: str) -> Switch:
        """Returns the settings of one tool; without an effect it is `exec`."""
        own = self.tools.get(tool, Switch())
        wanted = own.enabled and (self.only is None or tool in self.only)
        return Switch(wanted, own.effect or self.effect or "exec")

    def may_offer(self, effects: frozenset[Effect]) -> bool:
        """Returns True if a tool of it can have one of these effects."""
        own = {switch.effect for switch in self.tools.values() if switch.enabled}
        return not self.disabled and not effects.isdisjoint({self.effect or "exec", *own})


PREFIX = "mcp_"
MOST = 64
_SERVER = 24  # characters of the server's part
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


def server_parts(names: Iterable[str]) -> dict[str, str]:
    """Maps servers to their parts of names. No part with a "_" after it begins another one."""
    parts: dict[str, str] = {}
    for name in names:
        part = _OTHER.sub("-", name).strip("-_")[:_SERVER] or "server"
        if any(_clash(part, taken) for taken in parts.values()):
            # Without "_" it can only be equal to another part, and the digest settles that.
            part = f"{part.replace('_', '-')[: _SERVER - 7]}-{_digest(name)}"
        parts[name] = part
    return parts


def _clash(one: str, other: str) -> bool:
    return f"{one}_".startswith(f"{other}_") or f"{other}_".startswith(f"{one}_")


def tool_name(part: str, tool: str) -> str:
    """Returns the name of a server's tool; a name that had to be rewritten gets a digest."""
    start = f"{PREFIX}{part}_"
    plain = _OTHER.sub("_", tool)
    if plain == tool and plain and len(start) + len(plain) <= MOST:
        return start + plain
    return f"{start}{plain[: MOST - len(start) - 7]}_{_digest(tool)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


_MORE = 4096  # hidden characters that a text may have before it counts as cut


def clean(text: str, most: int) -> str:
    """Removes hidden characters, defuses marks of a chat, and cuts after `most` characters."""
    seen = neutral(text[: most + _MORE].replace("\r\n", "\n").replace("\r", "\n"))
    if len(seen) <= most and len(text) <= most + _MORE:
        return seen
    return f"{seen[:most].rstrip()} [... cut]"


def line(text: str, most: int) -> str:
    """Does the same, and joins all lines."""
    return clean(" ".join(text[: 8 * most].split()), most)


def has_hidden(text: str) -> bool:
    """Returns True if a reader would not see one of its characters, or a model see a mark."""
    return neutral(text) != text


_MESSAGES, _BYTES = 400.0, 4e6  # a second, for good
_BURST = 5.0  # seconds' worth that may come at once


class Pace:
    """Slows a flood down: what is not read stays in the pipe, where it stops the sender."""

    def __init__(self) -> None:
        self._due = 0.0

    async def spend(self, size: int, messages: int = 0) -> None:
        """Counts what came, and waits if it was too much."""
        now = time.monotonic()
        cost = size / _BYTES + messages / _MESSAGES
        self._due = max(self._due, now - _BURST) + cost
        if self._due > now:
            await asyncio.sleep(self._due - now)


_SESSIONS = 500


class SessionSets(dict[str, set[str]]):
    """A set of texts for each of the last sessions."""

    def of(self, session: str) -> set[str]:
        """Returns the session's set; forgets the session that was not asked for the longest."""
        found = self[session] = self.pop(session, set())
        while len(self) > _SESSIONS:
            del self[next(iter(self))]
        return found


_LOCK = threading.Lock()


def read_object(path: Path) -> dict[str, Any]:
    """Reads the JSON object in a file, {} without a file. Raises StoreError."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(
            "bad_file", f"{path} cannot be read: {error}.", "Correct it, or move it away."
        ) from error
    if not isinstance(value, dict):
        raise StoreError("bad_file", f"{path} holds no object.", "Correct it, or move it away.")
    return value


def change_object(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` change the object in a file. Raises StoreError."""
    with _LOCK:
        value = read_object(path)
        change(value)
        write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replaces a file in one step; mode 0600. A link stays one. Raises StoreError."""
    path = path.resolve()
    try:
        replace_private(path, text)
    except OSError as error:
        words = f"{path} cannot be written: {error.strerror or error}."
        remedy = "Check the disk and the folder's rights."
        raise StoreError("store_failed", words, remedy) from error
