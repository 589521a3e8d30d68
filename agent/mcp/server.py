"""A server before anything is started: its settings, and what is wrong with them.

Names under which MCP tools are offered: `mcp_<server>_<tool>`, each of exactly one tool.

Providers take 64 of `a-z A-Z 0-9 _ -`. What a server's part is follows from the configuration
alone, and what a tool's part is from that tool alone: no server can take or move another's name,
whatever it lists and whenever it connects.

What servers write, made fit to be shown and sent: no hidden characters, and not without end.

How fast a server may talk: a burst is taken as it comes, a flood is slowed down.

Whoever reads a little at a time and waits in between leaves the rest in the pipe, where it stops
the sender and costs us nothing.

Small JSON files in SEARCHLOOP_HOME: readable by the user alone, replaced whole or not at all.
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
from typing import Any, TypeVar, get_args

from searchloop.agent.errors import StoreError
from searchloop.agent.settings.keys import replace_private
from searchloop.agent.settings.secrets import given_by_flags, secrets_of
from searchloop.agent.text import visible
from searchloop.agent.types import Effect

EFFECTS: tuple[Effect, ...] = get_args(Effect)
SECONDS, STARTUP_SECONDS = 60.0, 20.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What keeps a server, or a whole file, from being used; `line` counts from 1."""

    file: str
    line: int
    column: int
    server: str | None
    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Switch:
    """What the user says of one tool."""

    enabled: bool = True
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One server, checked and with its variables filled in.

    `shown` is its command or address as it stands in the file, without what variables hold and
    without keys.
    `workspace` is the folder whose file names it; None is the user's own file.
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
        """Whether what reaches the one reaches the other: they differ at most in what is done with
        its tools."""
        own = replace(self, private=False, effect=None, tools={}, only=None)
        return own == replace(other, private=False, effect=None, tools={}, only=None)

    def keys(self) -> dict[str, str]:
        """What it is given as keys, by where that stands."""
        places = {**self.env, **self.headers, "its address": self.url}
        named = given_by_flags((self.command, *self.args))
        return secrets_of(places) | {f"{flag} in its arguments": key for flag, key in named.items()}

    def switch(self, tool: str) -> Switch:
        """What holds for one tool; an effect that nobody gave is `exec`."""
        own = self.tools.get(tool, Switch())
        wanted = own.enabled and (self.only is None or tool in self.only)
        return Switch(wanted, own.effect or self.effect or "exec")

    def may_offer(self, effects: frozenset[Effect]) -> bool:
        """Whether any of its tools could have one of these effects."""
        own = {switch.effect for switch in self.tools.values() if switch.enabled}
        return not self.disabled and not effects.isdisjoint({self.effect or "exec", *own})


PREFIX = "mcp_"
MOST = 64
_SERVER = 24  # characters of the server's part
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


def server_parts(names: Iterable[str]) -> dict[str, str]:
    """Server -> its part. No part with a "_" after it begins another one."""
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
    """The name of a server's tool; a digest tells apart what had to be rewritten."""
    start = f"{PREFIX}{part}_"
    plain = _OTHER.sub("_", tool)
    if plain == tool and plain and len(start) + len(plain) <= MOST:
        return start + plain
    return f"{start}{plain[: MOST - len(start) - 7]}_{_digest(tool)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


_MORE = 4096  # hidden characters that may stand in a text before it counts as cut


def clean(text: str, most: int) -> str:
    """The text without hidden characters, cut after `most` characters with a word about it."""
    seen = visible(text[: most + _MORE].replace("\r\n", "\n").replace("\r", "\n"))
    if len(seen) <= most and len(text) <= most + _MORE:
        return seen
    return f"{seen[:most].rstrip()} [... cut]"


def line(text: str, most: int) -> str:
    """The same on one line."""
    return clean(" ".join(text[: 8 * most].split()), most)


def has_hidden(text: str) -> bool:
    """Whether there is a character in it that a reader would not see."""
    return visible(text) != text


MESSAGES, BYTES = 400.0, 4e6  # a second, on and on
_BURST = 5.0  # seconds' worth that may come at once


class Pace:
    """A bucket for what one connection sends."""

    def __init__(self, messages: float = MESSAGES, size: float = BYTES) -> None:
        self._each, self._byte = 1 / messages, 1 / size
        self._due = 0.0

    async def spend(self, size: int, messages: int = 0) -> None:
        """Counts what came, and waits when it was too much."""
        now = time.monotonic()
        cost = size * self._byte + messages * self._each
        self._due = max(self._due, now - _BURST) + cost
        if self._due > now:
            await asyncio.sleep(self._due - now)


T = TypeVar("T")
_LOCK = threading.Lock()


def read_object(path: Path) -> dict[str, Any]:
    """The object in the file; an empty one when there is no file. Raises StoreError."""
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


def change_object(path: Path, change: Callable[[dict[str, Any]], T]) -> T:
    """Reads, changes in place and writes; what `change` returns. Raises StoreError."""
    with _LOCK:
        value = read_object(path)
        result = change(value)
        write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        return result


def write_text(path: Path, text: str) -> None:
    """Replaces the file in one step; mode 0600. A link stays one. Raises StoreError."""
    path = path.resolve()
    try:
        replace_private(path, text)
    except OSError as error:
        words = f"{path} cannot be written: {error.strerror or error}."
        raise StoreError(
            "store_failed", words, "Check the disk and the folder's rights."
        ) from error
