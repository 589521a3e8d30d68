"""Definitions of tools: lists, compares and pins them, and makes them fit to be sent to a model.

The hash is over all that a model or a user is shown, as the server sent it, so that no change goes
unnoticed. A definition is pinned when it is first seen. If a server changes it later (a "rug
pull"), its tool is suspended until the user has seen the difference. `mcp_pins.json` keeps the
pins by workspace, server and tool.

If they would take more than a share of the model's context, the model gets `find_tool` instead,
which finds others by their names; those are offered from the next step on, until the session ends.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchloop.agent.errors import Conflict
from searchloop.agent.mcp.server import (
    Server,
    change_object,
    clean,
    has_hidden,
    line,
    read_object,
    session_sets,
)
from searchloop.agent.text import tokens
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import Effect, ToolResult, ToolSpec

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as TheirTool

DESCRIPTION, SCHEMA, DEPTH = 4000, 60_000, 24  # characters, characters of JSON, levels
_WORDS = ("description", "title", "$comment")  # text for the model
_OBJECTS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


class Unusable(ValueError):
    """The reason why a definition is not offered."""


class Definition(NamedTuple):
    """A tool as its server describes it. `hints` are the server's claims and grant nothing."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    hints: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All of it as canonical JSON."""
        said: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
        }
        said |= {"inputSchema": self.schema, "annotations": self.hints}
        # ASCII, so that hidden characters show as escapes when two versions are compared.
        return json.dumps(said, ensure_ascii=True, sort_keys=True, indent=2)

    @property
    def hash(self) -> str:
        """SHA-256 of `text`, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def difference(before: str, after: str) -> str:
    """Returns a unified diff of the texts of two definitions."""
    # A long description is cut where its own lines end.
    old, new = (text.replace("\\n", "\\n\n    ").splitlines() for text in (before, after))
    diff = difflib.unified_diff(old, new, "approved", "now", lineterm="", n=2)
    return clean("\n".join(diff), 20_000)


def spec_of(definition: Definition, name: str, server: str, effect: Effect) -> ToolSpec:
    """Makes the tool as the model sees it. Raises Unusable."""
    schema = plain_schema(definition.schema)
    if len(json.dumps(schema)) > SCHEMA:
        raise Unusable(f"its schema has more than {SCHEMA} characters")
    said = clean(definition.description or definition.title, DESCRIPTION).strip()
    return ToolSpec(name, said or f"{line(definition.name, 80)} of {server}", schema, effect)


def tokens_of(spec: ToolSpec) -> int:
    """Estimates the tokens that the definition takes in each request."""
    data = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return tokens(json.dumps(data, ensure_ascii=False))


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Removes keywords of a wrong type and hidden characters. Raises Unusable where that fails."""
    found = _plain(schema, 0)
    if found.get("type") not in (None, "object"):
        raise Unusable("its arguments are no object")
    found["type"] = "object"
    properties: dict[str, Any] = found.setdefault("properties", {})
    found["required"] = [name for name in found.get("required", ()) if name in properties]
    if not found["required"]:
        del found["required"]
    return found


def _plain(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > DEPTH:
        raise Unusable(f"its schema has more than {DEPTH} levels")
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if has_hidden(key):
            raise Unusable("its schema has names with hidden characters")
        kept = _keyword(key, value, depth)
        if kept is not None:
            found[key] = kept
    return found


def _keyword(key: str, value: Any, depth: int) -> Any:
    """Returns the value of one keyword, None to remove it."""
    if key in _WORDS:
        return clean(value, DESCRIPTION) if isinstance(value, str) else None
    if key in _OBJECTS:
        inner = value if isinstance(value, Mapping) else {}
        if any(has_hidden(name) for name in inner):
            raise Unusable("its schema has names with hidden characters")
        return {n: _plain(s, depth + 1) for n, s in inner.items() if isinstance(s, Mapping)}
    if key in _LISTS:
        arms = value if isinstance(value, list) else []
        return [_plain(s, depth + 1) for s in arms if isinstance(s, Mapping)] or None
    if key in _ONE:
        if isinstance(value, Mapping):
            return _plain(value, depth + 1)
        return value if isinstance(value, bool) and key == "additionalProperties" else None
    if key == "type":
        kinds = value if isinstance(value, list) else [value]
        return value if kinds and all(isinstance(kind, str) for kind in kinds) else None
    if key == "required":
        names = value if isinstance(value, list) else []
        return [name for name in names if isinstance(name, str)]
    if key == "enum":
        return value if isinstance(value, list) and not _hidden_in(value) else None
    if key in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
        raise Unusable("its schema refers to another document")
    if key in ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if number else None
    return None if _hidden_in(value) else value


def _hidden_in(value: Any) -> bool:
    """Returns True if a text in a JSON value has hidden characters."""
    return has_hidden(json.dumps(value, ensure_ascii=False))


PAGES, TOOLS = 40, 500


async def list_tools(client: Client) -> tuple[dict[str, Definition], tuple[str, ...]]:
    """Returns the tools by name, and sentences for the user about what is odd in the list.

    Of two tools with one name the first counts: its definition was pinned and approved.
    """
    found: dict[str, Definition] = {}
    odd: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            if each.name in found:
                odd.append(f"It lists {line(each.name, 80)!r} twice; the first is used.")
            elif each.execution and each.execution.task_support == "required":
                odd.append(f"{line(each.name, 80)!r} runs as a task only; it is left out.")
            elif len(found) < TOOLS:
                found[each.name] = _definition(each)
        cursor = page.next_cursor
        if not cursor:
            break
    if cursor or len(found) == TOOLS:
        odd.insert(0, f"It lists {TOOLS} tools or {PAGES} pages and more; the rest is left out.")
    return found, tuple(odd[:20])


def _definition(tool: TheirTool) -> Definition:
    hints = tool.annotations
    said = hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
    return Definition(tool.name, tool.title or "", tool.description or "", tool.input_schema, said)


FILE = "mcp_pins.json"


class Pins:
    """The pinned definitions, kept in the data folder or, without one, as long as this lives.

    Raises ConfigError or StoreError if the file cannot be read or written.
    """

    def __init__(self, home: Path | None) -> None:
        self._path = home and home / FILE
        self._held: dict[str, Any] = {}

    def settle(self, server: Server, listing: Mapping[str, Definition]) -> dict[str, str]:
        """Pins new tools. Returns the differences of those that are not as they were pinned."""
        pinned = _of(self._read(), server)
        self._pin(server, [each for name, each in listing.items() if name not in pinned])
        return {
            name: difference(pinned[name]["text"], each.text)
            for name, each in listing.items()
            if name in pinned and pinned[name]["hash"] != each.hash
        }

    def approve(self, server: Server, definition: Definition, seen: str) -> None:
        """Pins the definition that the user has seen. Raises Conflict if it has changed again."""
        if definition.hash != seen:
            what = f"{definition.name!r} has changed again since you looked."
            raise Conflict("definition_changed", what, "Look at the new difference first.")
        self._pin(server, [definition])

    def forget(self, server: Server) -> None:
        """Deletes the pins of a server."""
        if _of(self._read(), server):
            self._change(lambda value: value[_scope(server)].pop(server.name, None))

    def _pin(self, server: Server, new: Sequence[Definition]) -> None:
        def put(value: dict[str, Any]) -> None:
            pinned = value.setdefault(_scope(server), {}).setdefault(server.name, {})
            for each in new:
                pinned[each.name] = {"hash": each.hash, "text": each.text, "at": int(time.time())}

        if new:
            self._change(put)

    def _read(self) -> dict[str, Any]:
        return read_object(self._path) if self._path else self._held

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        if self._path:
            change_object(self._path, change)
        else:
            change(self._held)


def _of(value: Mapping[str, Any], server: Server) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value.get(_scope(server), {}).get(server.name, {})
    return found


def _scope(server: Server) -> str:
    return server.workspace or "user"


FIND = "find_tool"
_LISTED = 8000  # characters of names in its description
_FOUND = 8  # tools of one answer


class Offers:
    """Remembers the tools that each session has found."""

    def __init__(self) -> None:
        self._found = session_sets()

    def settle(self, session: str, tools: Sequence[Tool], budget: int) -> list[Tool]:
        """Returns the tools of a turn, with `find_tool` if the others take more than the budget."""
        offered = (tool.spec for tool in tools if tool.listed and not tool.suspended)
        if sum(map(tokens_of, offered)) <= budget:
            return list(tools)
        found = self._found(session)
        known = [replace(tool, listed=tool.spec.name in found) for tool in tools]
        by_name = {tool.spec.name: tool for tool in tools if not tool.suspended}
        return [*known, self._find_tool(session, by_name)]

    def _find_tool(self, session: str, tools: Mapping[str, Tool]) -> Tool:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
            query = str(arguments["query"])
            best = matching(query, tools)
            self._found(session).update(best)
            context.reveal(best)
            specs = [tools[name].spec for name in best]
            told = [
                {"name": s.name, "description": s.description, "parameters": s.parameters}
                for s in specs
            ]
            text = json.dumps(told, ensure_ascii=False, indent=1)
            words = f"You can call these from now on:\n{text}" if best else _NOTHING
            details = {"kind": "tools", "query": line(query, 200), "tools": best}
            return ToolResult(context.call_id, FIND, words, details=details)

        return Tool(_find_spec(tools), run, origin="ours", untrusted=True)


_NOTHING = "No tool matches. Use words of a tool's name, as find_tool lists them."


def _find_spec(tools: Mapping[str, Tool]) -> ToolSpec:
    names = ", ".join(sorted(tools))
    listed = names if len(names) <= _LISTED else f"{names[:_LISTED].rpartition(',')[0]}, ..."
    words = (
        "Look up further tools by name or by what they do. They can be called once they were "
        f"found. There are: {listed}"
    )
    query = text_schema("Names, or words for what is wanted")
    return ToolSpec(FIND, words, object_schema({"query": query}, "query"), "read")


def matching(query: str, tools: Mapping[str, Tool]) -> list[str]:
    """Returns the names of the tools that fit best: those named, else those with most words."""
    asked = {*re.split(r"[\s,;]+", query)}
    named = [name for name in tools if name in asked]
    words = _words(query)
    fits = {
        name: 3 * len(words & _words(name)) + len(words & _words(tool.spec.description))
        for name, tool in tools.items()
    }
    return (named or sorted(filter(fits.get, fits), key=lambda name: (-fits[name], name)))[:_FOUND]


def _words(text: str) -> set[str]:
    return {*re.findall(r"[^\W_]+", text.lower())}
