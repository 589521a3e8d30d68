"""Which servers there are: `mcpServers` JSON, as other programs write it too.

Source of the shape: the configuration files of the common MCP clients. Beside their fields
(`command args env cwd`, `type url headers`, `disabled`, `timeout`) a server may have `private`,
`effect`, `tools`, `startup_timeout` and `oauth`; see docs/mcp.md. What is wrong with one server is
a Problem with file and place, and leaves the others alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.errors import ConfigError
from agent.mcp.fields import read_server
from agent.mcp.server import Problem, Server


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
