"""Assembles the tool calls that servers stream in pieces.

Pieces belong together by `index`. Servers bend that rule: whole calls that all have index 0, no
index at all, the id and the name repeated with every piece, ids such as "0", made from the tool's
name, or none. So each call gets an id of ours, unique in any session; the server's own id is kept
for the replay.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from searchloop.agent.calls.arguments import is_object, read_arguments
from searchloop.agent.types import ToolCall

_KNOWN = frozenset({"id", "type", "function", "index"})


class _Pending:
    """One call as far as it has come."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.extra: dict[str, Any] = {}


class StreamedCalls:
    """The calls of one answer, in order of appearance."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, items: Any, *, whole: bool) -> None:
        """Adds the `tool_calls` of a delta, or of a `whole` message: there each is a call."""
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict):
                self._piece({**item, "index": len(self._pending)} if whole else item)

    def build(self) -> tuple[tuple[ToolCall, ...], list[dict[str, Any]]]:
        """Returns the calls, and each as its server wrote it."""
        calls, raw = [], []
        for pending in self._pending:
            text = pending.arguments
            if text.startswith("{}") and is_object(text[2:]):
                text = text[2:]  # an empty object first, then the real one
            arguments, problem = read_arguments(text)
            if not pending.name:
                problem = "The call names no tool."
            call_id = f"call_{uuid.uuid4().hex[:24]}"
            calls.append(ToolCall(call_id, pending.name, arguments, problem))
            function = {"name": pending.name, "arguments": text}
            own = {"id": pending.id, "type": "function", "function": function}
            raw.append(own | pending.extra)
        return tuple(calls), raw

    def _piece(self, item: Mapping[str, Any]) -> None:
        function = item.get("function")
        function = function if isinstance(function, dict) else {}
        given, name = _string(item.get("id")), _string(function.get("name"))
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        pending = self._find(item.get("index"), given, name)
        if pending is not None and name and _is_another(pending, given, name, arguments):
            if _is_repetition(pending, given, name, arguments):
                return
            pending = None
        if pending is None:
            pending = _Pending(item.get("index"))
            self._pending.append(pending)
        pending.id = pending.id or given
        pending.name = pending.name or name
        pending.arguments += arguments
        pending.extra |= {k: v for k, v in item.items() if k not in _KNOWN and v is not None}

    def _find(self, index: Any, given: str, name: str) -> _Pending | None:
        if index is None and not given:
            return None if name or not self._pending else self._pending[-1]
        for pending in reversed(self._pending):
            if pending.index == index if index is not None else pending.id == given:
                return pending
        return None


def _is_another(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Returns True if a piece with a name begins a new call in the place of `pending`."""
    if given and pending.id and given != pending.id:
        return True
    # More arguments would break an object that is complete.
    return is_object(pending.arguments) and (is_object(arguments) or name != pending.name)


def _is_repetition(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Returns True for the same call, sent a second time."""
    same = bool(given) and given == pending.id and name == pending.name
    return same and arguments == pending.arguments


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
