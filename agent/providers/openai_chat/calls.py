"""Tool calls as servers stream them, put together.

The rule is: pieces belong together by `index`. Servers bend it: whole calls that all have index 0,
no index at all, the id and the name repeated with every piece, ids such as "0", or made from the
tool's name, or none. So each call gets an id of ours, unique in any session; what the server sent
is kept for its replay.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from agent.arguments import read_arguments
from agent.types import ToolCall


class _Pending:
    __slots__ = ("arguments", "extra", "id", "index", "name")

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.extra: dict[str, Any] = {}

    @property
    def whole(self) -> bool:
        """Whether the arguments are an object already, so that more would break them."""
        return bool(self.arguments) and _is_object(self.arguments)


class Calls:
    """The calls of one answer, in order of appearance."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, items: Any) -> None:
        """The `tool_calls` of a delta."""
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict):
                self._piece(item)

    def add_whole(self, items: Any) -> None:
        """The `tool_calls` of a message: each is a call by itself."""
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict):
                self._piece({**item, "index": len(self._pending)})

    def build(self) -> tuple[tuple[ToolCall, ...], list[dict[str, Any]]]:
        """The calls, and each as its server wrote it."""
        calls, raw = [], []
        for pending in self._pending:
            text = pending.arguments
            if text.startswith("{}") and _is_object(text[2:]):
                text = text[2:]  # an empty object first, then the real one
            arguments, problem = read_arguments(text)
            if not pending.name:
                problem = "The call names no tool."
            call_id = f"call_{uuid.uuid4().hex[:24]}"
            calls.append(ToolCall(call_id, pending.name, arguments, problem))
            function = {"name": pending.name, "arguments": text}
            raw.append({"id": pending.id, "type": "function", "function": function})
            raw[-1].update(pending.extra)
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
        extra = {k: v for k, v in item.items() if k not in _KNOWN and v is not None}
        if extra:
            pending.extra.update(extra)

    def _find(self, index: Any, given: str, name: str) -> _Pending | None:
        if index is None and not given:
            return None if name or not self._pending else self._pending[-1]
        for pending in reversed(self._pending):
            if pending.index == index if index is not None else pending.id == given:
                return pending
        return None


_KNOWN = frozenset({"id", "type", "function", "index"})


def _is_another(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Whether a piece with a name begins a new call, though it bears the place of `pending`."""
    if given and pending.id and given != pending.id:
        return True
    return pending.whole and (_is_object(arguments) or name != pending.name)


def _is_repetition(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Whether it is the same call, sent a second time."""
    same = bool(given) and given == pending.id and name == pending.name
    return same and arguments == pending.arguments


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
