"""Values that the other modules share: a server's settings, read from one entry of an MCP file with
the field of a mistake; names of tools, clean text, files.

Tools are offered as `mcp_<server>_<tool>`: providers take 64 of `a-z A-Z 0-9 _ -`. The server's
part follows from the configuration and the tool's part from that tool alone, so no server can take
or move another's name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, get_args

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.settings import private_files
from searchloop.agent.settings.secrets import given_by_flags, masked, masked_command, secrets_of
from searchloop.agent.text import neutral
from searchloop.agent.types import Effect
from searchloop.analysis.schema_check import problems_with

EFFECTS: tuple[Effect, ...] = get_args(Effect)
GIVEN = "the program"  # in place of a file
SECONDS, STARTUP_SECONDS = 60.0, 120.0


class McpServer(TypedDict, total=False):
    """An MCP server that a program brings, as `mcp.json` would name it.

    It has a `command` with `args`, `env` and `cwd`, or a `url` with `headers` and `oauth`. Its
    tools have the `effect` "exec" until this says otherwise, for all of them or in `tools` by name;
    `private` marks its results as data that must not leave. `timeout` and `startup_timeout` are
    seconds.

        Agent(mcp={"sums": {"command": "python3", "args": ["sums.py"], "effect": "read"}})
    """

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    cwd: str | Path
    url: str
    headers: Mapping[str, str]
    oauth: Mapping[str, Any]
    effect: Effect
    tools: Mapping[str, bool | Mapping[str, Any]]
    private: bool
    timeout: float
    startup_timeout: float


class ServerProblem(NamedTuple):
    """An error in a file, or in one server of it."""

    error: AgentError
    file: str
    server: str | None = None


class Switch(NamedTuple):
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

    def command_line(self, verb: str, *more: str) -> str:
        """Returns a command about it, which a shell reads as it stands."""
        return shlex.join(["searchloop", "mcp", verb, self.name, *more])

    def see_why(self) -> str:
        """Says how to find out why it cannot be used."""
        return self.alone() if self.file == GIVEN else f"See why: {self.command_line('test')}"

    def alone(self) -> str:
        """Says how to try it without searchloop."""
        how = "Check its address" if self.url else "Run it by itself to see why"
        return f"{how}: {shlex.join(self.shown)}"

    def log_in(self) -> str:
        """Names the commands that log in to it; a login is known by the address."""
        add = (
            f"{self.command_line('add', '--url', *self.shown)}, then " if self.file == GIVEN else ""
        )
        return f"{add}{self.command_line('login')}"

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


def session_sets() -> Callable[[str], set[str]]:
    """Returns a function that has a set of texts for each of the last sessions."""
    return lru_cache(500)(lambda session: set[str]())


_LOCK = threading.Lock()


def read_object(path: Path) -> dict[str, Any]:
    """Reads the JSON object in a file, {} without a file. Raises ConfigError."""
    return private_files.read_object(path, "bad_file", str(path)) or {}


def change_object(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` change the object in a file. Raises ConfigError, StoreError."""
    with _LOCK:
        value = read_object(path)
        change(value)
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        private_files.write_private(path.resolve(), text)  # a link stays one


_MILLISECONDS = 1000  # other programs write times in milliseconds: from here on that is meant
_STDIO, _HTTP = ("stdio",), ("http", "streamable-http", "streamablehttp", "streamable_http")
_EXAMPLES = {"command": '"npx"', "url": '"https://example.com/mcp"'}
_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_TEXTS, _TIME = {"type": "array", "items": _TEXT}, {"type": "number", "minimum": 0.001}
_SETTING = {"type": ["string", "number"]}
_EFFECT = {"enum": [*EFFECTS, None]}
_TOOL = {"type": ["boolean", "object"], "properties": {"enabled": _FLAG, "effect": _EFFECT}}
_SWITCHED_OFF, ONLY = ("disabledTools", "excludeTools"), ("enabledTools", "includeTools")
# The fields of a server, and those that hold such values by name.
_FIELDS: Mapping[str, Any] = {
    **dict.fromkeys(("command", "cwd", "url", "type", "transport"), _TEXT),
    **dict.fromkeys(("args", *_SWITCHED_OFF, *ONLY), _TEXTS),
    **dict.fromkeys(("disabled", "enabled", "private"), _FLAG),
    **dict.fromkeys(("timeout", "startup_timeout"), _TIME),
    "oauth": {"type": "object"},
    "effect": _EFFECT,
}
_BY_NAME = {"env": _SETTING, "headers": _SETTING, "tools": _TOOL}
# Those in which variables are filled in.
_FILLED = ("command", "args", "env", "cwd", "url", "headers", *_SWITCHED_OFF, *ONLY)
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]{0,200})(?::-([^}]{0,1000}))?\}")


def read_server(
    name: str,
    raw: Any,
    file: str,
    variables: Mapping[str, str] | None,
    workspace: str | None = None,
) -> Server:
    """Reads and checks one server; without `variables` it fills none in. Raises ConfigError."""
    if not name.strip() or len(name) > 64 or has_hidden(name) or "\n" in name:
        raise _wrong(name[:64], "has a name that cannot be used", "Use 1 to 64 visible characters.")
    if not isinstance(raw, Mapping):
        raise _wrong(name, "is not an object", 'Give it "command" or "url".')
    given = {key: value for key, value in raw.items() if value not in (None, "", [], {})}
    shape = {**_shape_of(given), "additionalProperties": file != GIVEN}  # a file has others' fields
    if problem := problems_with(given, shape):
        raise _unusable(name, problem.removesuffix("."))
    kind = _kind(name, given)
    read = {k: _filled(name, k, given[k], variables) for k in _FILLED if k in given}
    own: dict[str, Any]
    if kind == "stdio":
        own = {"command": read["command"], "args": tuple(read.get("args", ()))}
        own |= {"env": read.get("env", {}), "cwd": read.get("cwd")}
        shown = masked_command((given["command"], *given.get("args", ())))
    else:
        own = {"url": read["url"], "headers": read.get("headers", {})}
        own |= {"oauth": given.get("oauth", {})}
        shown = (masked(given["url"]),)
        if not re.match(r"https?://[^/\s]", own["url"]):
            raise _unusable(name, "url is no http:// or https:// address")
    only = frozenset(tool for key in ONLY for tool in read.get(key, ()))
    switches = {tool: Switch(enabled=False) for key in _SWITCHED_OFF for tool in read.get(key, ())}
    for tool, value in given.get("tools", {}).items():
        set_so: Any = {"enabled": value} if isinstance(value, bool) else value
        switches[tool] = Switch(set_so.get("enabled", tool not in switches), set_so.get("effect"))
    return Server(
        name=name,
        file=file,
        shown=shown,
        kind=kind,
        workspace=workspace,
        disabled=given.get("disabled", False) or not given.get("enabled", True),
        private=given.get("private", False),
        effect=given.get("effect"),
        tools=switches,
        only=only or None,
        seconds=_seconds(given.get("timeout", SECONDS)),
        startup_seconds=_seconds(given.get("startup_timeout", STARTUP_SECONDS)),
        **own,
    )


def given_servers(
    servers: Mapping[str, McpServer], variables: Mapping[str, str]
) -> tuple[Server, ...]:
    """Reads the servers that a program brings. Raises ConfigError, also for an unknown field."""
    raw: dict[str, Any] = json.loads(json.dumps(dict(servers), default=str))
    return tuple(read_server(name, each, GIVEN, variables) for name, each in raw.items())


def _shape_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON Schema of a server with these names in its objects."""
    objects = {k: v for k in _BY_NAME if isinstance(v := given.get(k, {}), Mapping)}
    named = {
        key: {"type": "object", "properties": dict.fromkeys(objects.get(key, ()), kind)}
        for key, kind in _BY_NAME.items()
    }
    return {"properties": {**_FIELDS, **named}}


def _wrong(name: str, what: str, remedy: str) -> ConfigError:
    return ConfigError("bad_server", f"The MCP server {name!r} {what}.", remedy)


def _unusable(name: str, why: str) -> ConfigError:
    return _wrong(name, f"cannot be used: {why}", "Correct it there.")


def _kind(name: str, given: Mapping[str, Any]) -> str:
    """Returns how a server is reached: stdio or http."""
    said = (given.get("type") or given.get("transport") or "").lower()
    if said and said not in _STDIO + _HTTP:
        raise _unusable(name, f"type is {said[:40]!r}, not stdio or http (Streamable HTTP)")
    if "command" in given and "url" in given:
        raise _wrong(name, "has both a command and a url", "Remove one of them.")
    http = said in _HTTP or (not said and "url" in given)
    key = "url" if http else "command"
    if key not in given:
        neither = "" if said or http else " and no url"
        what = f"The MCP server {name!r} has no {key}{neither}."
        remedy = f'Give it "{key}", for example {_EXAMPLES[key]}.'
        raise ConfigError(f"missing_{key}", what, remedy)
    return "http" if http else "stdio"


def _seconds(value: float) -> float:
    return min(value / 1000 if value >= _MILLISECONDS else float(value), 3600.0)


def _filled(name: str, key: str, value: Any, variables: Mapping[str, str] | None) -> Any:
    """Fills `${NAME}` and `${NAME:-default}` into a text, or into those of a list or an object."""
    if isinstance(value, Mapping):
        return {k: _filled(name, key, str(v), variables) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(name, key, each, variables) for each in value]

    def fill(match: re.Match[str]) -> str:
        value = "set" if variables is None else variables.get(match[1]) or match[2]
        if value is None:
            what = f"The MCP server {name!r} needs {match[1]}, which is not set ({key})."
            remedy = f"Set {match[1]}, or write ${{{match[1]}:-default}}."
            raise ConfigError("missing_variable", what, remedy)
        return value

    filled = _VARIABLE.sub(fill, value)
    if "\0" in filled:
        raise _unusable(name, f"{key} holds a NUL character")
    return filled
