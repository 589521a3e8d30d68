"""Function calls: whole in one part, or with arguments that come in pieces.

A call is only a call once it is complete. Pieces name the place of a value in the arguments by a
path such as `$.rows[0].name`; some servers of this API send them without being asked.

Spec: https://ai.google.dev/gemini-api/docs/function-calling
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from agent.types import ToolCall

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\[['\"]([^'\"]*)['\"]\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")

Part = dict[str, Any]


class Calls:
    """The calls of one answer, in order."""

    def __init__(self) -> None:
        self.done: list[ToolCall] = []
        self._ids: set[str] = set()
        self._open: Part | None = None
        self._problem: str | None = None

    @property
    def pending(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._open is not None

    def add(self, part: Part) -> Part | None:
        """A functionCall part. Returns the part to keep, once the call is complete."""
        call = part["functionCall"]
        if self._open is None and not call.get("name"):
            return None
        if self._open is None and not (call.get("willContinue") or call.get("partialArgs")):
            return self._finish(part, call)
        if self._open is None:
            begun = {k: v for k, v in call.items() if k in ("id", "name")}
            begun["args"] = dict(call.get("args") or {})
            self._open, self._problem = {**part, "functionCall": begun}, None
        for piece in call.get("partialArgs") or ():
            if not _put(self._open["functionCall"], piece):
                self._problem = "Some of its arguments came in a form that is not known."
        if call.get("willContinue"):
            return None
        whole, self._open = self._open, None
        return self._finish(whole, whole["functionCall"])

    def _finish(self, part: Part, call: Mapping[str, Any]) -> Part | None:
        arguments, problem = call.get("args"), self._problem
        self._problem = None
        if arguments is None:
            arguments = {}
        elif not isinstance(arguments, dict):
            problem = f"The arguments must be a JSON object, not {type(arguments).__name__}."
            arguments = {}
            part = {**part, "functionCall": {**call, "args": {}}}
        # An id of our own is never sent: the server knows its calls by their order then.
        call_id = call.get("id") or f"gemini-{secrets.token_hex(8)}"
        if call_id in self._ids:
            return None  # sent twice
        self._ids.add(call_id)
        self.done.append(ToolCall(call_id, call["name"], arguments, problem))
        return part


def _put(root: dict[str, Any], piece: Mapping[str, Any]) -> bool:
    """Stores one value; strings of the same place are joined."""
    path = str(piece.get("jsonPath") or "").removeprefix("$")
    steps: list[str | int] = ["args"]
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return False
        name, index, quoted = match.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = match.end()
    kind = next((kind for kind in _VALUES if kind in piece), None)
    value = None if kind in (None, "nullValue") else piece[kind]
    return _store(root, steps, value) if kind else True


def _store(target: Any, steps: list[str | int], value: Any) -> bool:
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        kind: type[Any] = list if isinstance(step, int) else dict
        if not isinstance(target, kind):
            return False
        if isinstance(step, int):
            target.extend([None] * (step + 1 - len(target)))
        old = target[step] if isinstance(step, int) else target.get(step)
        if following is None:
            joined = isinstance(value, str) and isinstance(old, str)
            target[step] = old + value if joined else value
        elif old is None:
            target[step] = [] if isinstance(following, int) else {}
        target = target[step]
    return True
