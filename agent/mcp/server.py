"""A server before anything is started: its settings, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from agent.known_secrets import given_by_flags, secrets_of
from agent.types import Effect

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
