"""Results too long for the context: the model gets the beginning, and the rest when it asks.

The whole text stays in the result's details, which are stored and never sent to a model, so that it
can be read on after a restart too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.errors import ToolError
from agent.tools import Tool, ToolContext
from agent.types import Message, ToolResult, ToolSpec

READ_MORE = "read_more"
SHOWN = 24_000  # characters of one result: some 6,000 tokens
KEPT = 1_000_000  # characters of one result that can be read at all
REST = "whole"
_SPEC = ToolSpec(
    name=READ_MORE,
    description="Read on in a long result of an earlier call, which was cut to its beginning.",
    parameters={
        "type": "object",
        "properties": {
            "call_id": {"type": "string", "description": "As given at the end of the cut result"},
            "offset": {"type": "integer", "minimum": 0, "description": "Where to go on"},
        },
        "required": ["call_id", "offset"],
        "additionalProperties": False,
    },
    effect="read",
)


class Overflow:
    """The long results of a session, by call."""

    def __init__(self) -> None:
        self._whole: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self.tool = Tool(_SPEC, self._more, origin="ours", listed=False)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Overflow:
        """Those of this transcript."""
        overflow = cls()
        for message in messages:
            if message.role == "tool" and REST in message.details:
                overflow._keep(str(message.tool_call_id), message.details)
        return overflow

    @property
    def empty(self) -> bool:
        """Whether every result was short enough."""
        return not self._whole

    def bounded(self, result: ToolResult) -> ToolResult:
        """The result, cut to what is shown at once, saying how to get the rest."""
        text = result.content
        if len(text) <= SHOWN or result.details.get("text") or result.details.get("kind"):
            return result  # pages and searches are bounded by their own rules
        kept = text[:KEPT]
        details = {**result.details, REST: kept}
        self._keep(result.call_id, details)
        return replace(result, content=_part(kept, 0, result.call_id, len(text)), details=details)

    def _keep(self, call_id: str, details: Mapping[str, Any]) -> None:
        marks = {m: True for m in ("private", "untrusted") if details.get(m)}
        self._whole[call_id] = (details[REST], marks)

    async def _more(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        found = self._whole.get(arguments["call_id"])
        if found is None:
            known = ", ".join(self._whole)
            raise ToolError(
                "unknown_call",
                f"No result of {arguments['call_id']!r} was cut.",
                f"Calls with more to read: {known}.",
            )
        text, marks = found
        offset = min(arguments["offset"], len(text))
        content = _part(text, offset, arguments["call_id"], len(text))
        return ToolResult(context.call_id, READ_MORE, content, details=marks)


def _part(text: str, offset: int, call_id: str, length: int) -> str:
    part = text[offset : offset + SHOWN]
    end = offset + len(part)
    if end < len(text):
        more = f"Read on with {READ_MORE}, call_id {call_id!r}, offset {end}."
    else:
        more = "That is the end." if end == length else "The rest was not kept."
    return f"{part}\n[Characters {offset} to {end} of {length}. {more}]"
