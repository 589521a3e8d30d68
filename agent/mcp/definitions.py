"""What a server says of its tools: measured, hashed, compared, and made fit to be sent to a model.

The hash is over all that a model or a user is shown. It is taken of what the server sent, before
anything is cleaned away, so that no change goes unnoticed.

What a server lists: page by page, and not without end.

What each tool said of itself when it was first seen, or last approved.

A server that changes a definition afterwards (a "rug pull") finds its tool suspended until the user
has seen the difference. Kept in `mcp_pins.json` by file of configuration, server and tool.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import Conflict
from searchloop.agent.log.context import tokens
from searchloop.agent.mcp.server import Server, change_object, clean, has_hidden, line, read_object
from searchloop.agent.types import Effect, ToolSpec

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

DESCRIPTION, SCHEMA, DEPTH = 4000, 60_000, 24  # characters, characters of JSON, levels
_WORDS = ("description", "title", "$comment")  # of a schema: read by the model, checked by nobody
_OBJECTS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


class Unusable(ValueError):
    """A definition that is not passed on; says why."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server describes it. `hints` are the server's claims and grant nothing."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    hints: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All of it as JSON, in one way only."""
        return json.dumps(
            {
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "inputSchema": self.schema,
                "annotations": self.hints,
            },
            ensure_ascii=True,  # hidden characters show as escapes when two versions are compared
            sort_keys=True,
            indent=2,
        )

    @property
    def hash(self) -> str:
        """SHA-256 of `text`, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def difference(before: str, after: str) -> str:
    """A unified diff of two definitions' texts."""
    lines = difflib.unified_diff(
        _readable(before), _readable(after), "approved", "now", lineterm="", n=2
    )
    return clean("\n".join(lines), 20_000)


def _readable(text: str) -> list[str]:
    """Lines; a long description in a JSON text is cut where its own lines end."""
    return text.replace("\\n", "\\n\n    ").splitlines()


def spec_of(definition: Definition, name: str, server: str, effect: Effect) -> ToolSpec:
    """What the model is told. Raises Unusable."""
    schema = plain_schema(definition.schema)
    if len(json.dumps(schema)) > SCHEMA:
        raise Unusable(f"its schema has more than {SCHEMA} characters")
    said = clean(definition.description or definition.title, DESCRIPTION).strip()
    return ToolSpec(name, said or f"{line(definition.name, 80)} of {server}", schema, effect)


def tokens_of(spec: ToolSpec) -> int:
    """About how many tokens the definition takes in each request."""
    data = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return tokens(json.dumps(data, ensure_ascii=False))


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every keyword of the kind that it has to be, and nothing hidden in its words.

    Keywords of a wrong kind are left out: nobody could hold arguments to them. Raises Unusable for
    what cannot be repaired.
    """
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
    """The value of one keyword, or None to leave it out."""
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
    if key in ("minimum", "maximum"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if number else None
    return None if _hidden_in(value) else value


def _hidden_in(value: Any) -> bool:
    """Whether some text in a JSON value has hidden characters, which no plain value needs."""
    return has_hidden(json.dumps(value, ensure_ascii=False))


PAGES, TOOLS = 40, 500


async def list_tools(client: Client) -> tuple[dict[str, Definition], tuple[str, ...]]:
    """The tools by name, and what is odd about the list, in sentences for the user.

    Of two tools with one name the first counts: what it says is what was pinned and approved.
    """
    found: dict[str, Definition] = {}
    odd: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            if each.name in found:
                odd.append(f"It lists {line(each.name, 80)!r} twice; the first is used.")
            elif len(found) < TOOLS:
                found[each.name] = _definition(each)
        cursor = page.next_cursor
        if not cursor:
            break
    if cursor or len(found) == TOOLS:
        odd.insert(0, f"It lists {TOOLS} tools or {PAGES} pages and more; the rest is left out.")
    return found, tuple(odd[:20])


def _definition(tool: Tool) -> Definition:
    hints = (
        tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    )
    return Definition(tool.name, tool.title or "", tool.description or "", tool.input_schema, hints)


FILE = "mcp_pins.json"


class Pins:
    """The pinned definitions. Raises StoreError where the file cannot be read or written."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def settle(self, server: Server, listing: Mapping[str, Definition]) -> dict[str, str]:
        """Pins what is new; tool -> difference for those that are not what was pinned."""
        pinned = self._of(read_object(self._path), server)
        new = {name: each for name, each in listing.items() if name not in pinned}
        if new:
            change_object(self._path, lambda value: self._add(value, server, new))
        return {
            name: difference(pinned[name]["text"], each.text)
            for name, each in listing.items()
            if name in pinned and pinned[name]["hash"] != each.hash
        }

    def known(self, server: Server) -> dict[str, Definition]:
        """The definitions as they were pinned, for a server that is not there yet."""
        found = {}
        for name, pin in self._of(read_object(self._path), server).items():
            said = json.loads(pin["text"])
            words = (said["name"], said["title"], said["description"])
            found[name] = Definition(*words, said["inputSchema"], said["annotations"])
        return found

    def approve(self, server: Server, definition: Definition, seen: str) -> None:
        """Pins the definition that the user has seen. Raises Conflict when it is another by now."""
        if definition.hash != seen:
            raise Conflict(
                "definition_changed",
                f"{definition.name!r} has changed again since you looked.",
                "Look at the new difference first.",
            )
        change_object(
            self._path, lambda value: self._add(value, server, {definition.name: definition})
        )

    def forget(self, server: Server) -> None:
        """Everything about a server that is no longer there."""

        def remove(value: dict[str, Any]) -> None:
            value.get(_scope(server), {}).pop(server.name, None)

        if self._of(read_object(self._path), server):
            change_object(self._path, remove)

    def _of(self, value: dict[str, Any], server: Server) -> dict[str, Any]:
        found: dict[str, Any] = value.get(_scope(server), {}).get(server.name, {})
        return found

    def _add(self, value: dict[str, Any], server: Server, new: Mapping[str, Definition]) -> None:
        pinned = value.setdefault(_scope(server), {}).setdefault(server.name, {})
        for name, each in new.items():
            pinned[name] = {"hash": each.hash, "text": each.text, "at": int(time.time())}


def _scope(server: Server) -> str:
    return server.workspace or "user"
