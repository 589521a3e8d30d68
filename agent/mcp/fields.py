"""Reads one server of an MCP file, and names the field of a mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.mcp.server import (
    EFFECTS,
    SECONDS,
    STARTUP_SECONDS,
    Server,
    Switch,
    has_hidden,
)
from searchloop.agent.settings.secrets import masked, masked_command
from searchloop.agent.types import Effect

_MILLISECONDS = 1000  # other programs write times in milliseconds: from here on that is meant
_STDIO, _HTTP = ("stdio",), ("http", "streamable-http", "streamablehttp", "streamable_http")
_EXAMPLES = {"command": '"npx"', "url": '"https://example.com/mcp"'}
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


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
    given = _Reader(name, raw, variables)
    kind = given.kind()
    own: dict[str, Any]
    if kind == "stdio":
        own = {"command": given.text("command"), "args": tuple(given.texts("args"))}
        own |= {"env": given.pairs("env"), "cwd": given.text("cwd") or None}
        shown = masked_command((str(raw["command"]), *map(str, raw.get("args") or ())))
    else:
        own = {"url": given.text("url"), "headers": given.pairs("headers")}
        own |= {"oauth": given.get("oauth", Mapping, "is not an object", {})}
        shown = (masked(str(raw["url"])),)
        if not re.match(r"https?://[^/\s]", own["url"]):
            raise given.wrong("url", "is no http:// or https:// address")
    only = given.texts("enabledTools", "includeTools")
    return Server(
        name=name,
        file=file,
        shown=shown,
        kind=kind,
        workspace=workspace,
        disabled=given.flag("disabled") or not given.flag("enabled", True),
        private=given.flag("private"),
        effect=given.effect(raw.get("effect"), "effect"),
        tools=given.switches(),
        only=frozenset(only) if only else None,
        seconds=given.seconds("timeout", SECONDS),
        startup_seconds=given.seconds("startup_timeout", STARTUP_SECONDS),
        **own,
    )


def _wrong(name: str, what: str, remedy: str) -> ConfigError:
    return ConfigError("bad_server", f"The MCP server {name!r} {what}.", remedy)


class _Reader:
    """Reads the fields of one server. Its methods raise ConfigError."""

    def __init__(
        self, name: str, raw: Mapping[str, Any], variables: Mapping[str, str] | None
    ) -> None:
        self._name = name
        self._raw = raw
        self._variables = variables

    def wrong(self, key: str, what: str) -> ConfigError:
        return _wrong(self._name, f"cannot be used: {key!r} {what}", "Correct it in the file.")

    def kind(self) -> str:
        raw = self._raw
        said = str(raw.get("type") or raw.get("transport") or "").lower()
        if said == "sse":
            raise _wrong(
                self._name,
                "speaks the old HTTP+SSE transport, which is no longer part of MCP",
                'Use the address of its Streamable HTTP endpoint with "type": "http".',
            )
        if said and said not in _STDIO + _HTTP:
            raise self.wrong("type", f"is {said[:40]!r}, not stdio or http")
        if "command" in raw and "url" in raw:
            raise _wrong(self._name, "has both a command and a url", "Remove one of them.")
        http = said in _HTTP or (not said and "url" in raw)
        key = "url" if http else "command"
        if not raw.get(key):
            what = f"The MCP server {self._name!r} has no {key}."
            remedy = f'Give it "{key}", for example {_EXAMPLES[key]}.'
            raise ConfigError(f"missing_{key}", what, remedy)
        return "http" if http else "stdio"

    def get(self, key: str, kind: Any, what: str, default: Any) -> Any:
        """Returns a field of this kind, `default` for none or an empty one."""
        value = self._raw.get(key)
        value = default if value in (None, "", [], {}) else value
        if not isinstance(value, kind):
            raise self.wrong(key, what)
        return value

    def text(self, key: str) -> str:
        return self._filled(key, self.get(key, str, "is not text", ""))

    def texts(self, *keys: str) -> Sequence[str]:
        found: list[str] = []
        for key in keys:
            value = self.get(key, list, "is not a list of texts", [])
            if not all(isinstance(v, str) for v in value):
                raise self.wrong(key, "is not a list of texts")
            found += [self._filled(key, v) for v in value]
        return found

    def pairs(self, key: str) -> dict[str, str]:
        value = self.get(key, Mapping, "is not an object", {})
        if not all(isinstance(v, str | int | float) for v in value.values()):
            raise self.wrong(key, "holds something else than texts")
        return {k: self._filled(key, str(v)) for k, v in value.items()}

    def flag(self, key: str, default: bool = False) -> bool:
        return bool(self.get(key, bool, "is neither true nor false", default))

    def seconds(self, key: str, default: float) -> float:
        value = self.get(key, int | float, "is not a number of seconds above 0", default)
        if isinstance(value, bool) or not value > 0:
            raise self.wrong(key, "is not a number of seconds above 0")
        return min(value / 1000 if value >= _MILLISECONDS else float(value), 3600.0)

    def effect(self, value: Any, key: str) -> Effect | None:
        if value is not None and value not in EFFECTS:
            raise self.wrong(key, f"is not one of {', '.join(EFFECTS)}")
        return value  # type: ignore[no-any-return]

    def switches(self) -> dict[str, Switch]:
        off = self.texts("disabledTools", "excludeTools")
        found = {name: Switch(enabled=False) for name in off}
        for tool, value in self.get("tools", Mapping, "is not an object", {}).items():
            given = {"enabled": value} if isinstance(value, bool) else value
            key = f"tools.{tool[:64]}"
            if not isinstance(given, Mapping):
                raise self.wrong(key, "is not an object")
            enabled = given.get("enabled", tool not in found)
            if not isinstance(enabled, bool):
                raise self.wrong(f"{key}.enabled", "is neither true nor false")
            found[tool] = Switch(enabled, self.effect(given.get("effect"), f"{key}.effect"))
        return found

    def _filled(self, key: str, text: str) -> str:
        """Fills in `${NAME}` and `${NAME:-default}`."""

        def fill(match: re.Match[str]) -> str:
            value = "set" if self._variables is None else self._variables.get(match[1]) or match[2]
            if value is None:
                what = f"The MCP server {self._name!r} needs {match[1]}, which is not set ({key})."
                remedy = f"Set {match[1]}, or write ${{{match[1]}:-default}}."
                raise ConfigError("missing_variable", what, remedy)
            return value

        filled = _VARIABLE.sub(fill, text)
        if "\0" in filled:
            raise self.wrong(key, "holds a NUL character")
        return filled
