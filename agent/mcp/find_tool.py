"""`find_tool`, for more tools than a model should carry: definitions are sent with every request.

If they would take more than a share of the model's context, the model gets this tool instead, which
finds others by their names; those found are offered from the next step on, until the session ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchloop.agent.mcp.definitions import tokens_of
from searchloop.agent.mcp.server import SessionSets, line
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import ToolResult, ToolSpec

NAME = "find_tool"
_LISTED = 8000  # characters of names in its description
_FOUND = 8  # tools of one answer
_WORD = re.compile(r"[^\W_]+")


class Offers:
    """Remembers the tools that each session has found."""

    def __init__(self) -> None:
        self._found = SessionSets()

    def settle(self, session: str, tools: Sequence[Tool], budget: int) -> list[Tool]:
        """Returns the tools of a turn, with `find_tool` if the others take more than the budget."""
        offered = (tool.spec for tool in tools if tool.listed and not tool.suspended)
        if sum(map(tokens_of, offered)) <= budget:
            return list(tools)
        found = self._found.of(session)
        known = [replace(tool, listed=tool.spec.name in found) for tool in tools]
        by_name = {tool.spec.name: tool for tool in tools if not tool.suspended}
        return [*known, self._find_tool(session, by_name)]

    def _find_tool(self, session: str, tools: Mapping[str, Tool]) -> Tool:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
            query = str(arguments["query"])
            best = matching(query, tools)
            self._found.of(session).update(best)
            context.reveal(best)
            specs = [tools[name].spec for name in best]
            told = [
                {"name": s.name, "description": s.description, "parameters": s.parameters}
                for s in specs
            ]
            text = json.dumps(told, ensure_ascii=False, indent=1)
            words = f"You can call these from now on:\n{text}" if best else _NOTHING
            details = {"kind": "tools", "query": line(query, 200), "tools": best}
            return ToolResult(context.call_id, NAME, words, details=details)

        return Tool(_spec(tools), run, origin="ours", untrusted=True)


_NOTHING = "No tool matches. Use words of a tool's name, as find_tool lists them."


def _spec(tools: Mapping[str, Tool]) -> ToolSpec:
    names = ", ".join(sorted(tools))
    listed = names if len(names) <= _LISTED else f"{names[:_LISTED].rpartition(',')[0]}, ..."
    words = (
        "Look up further tools by name or by what they do. They can be called once they were "
        f"found. There are: {listed}"
    )
    query = text_schema("Names, or words for what is wanted")
    return ToolSpec(NAME, words, object_schema({"query": query}, "query"), "read")


def matching(query: str, tools: Mapping[str, Tool]) -> list[str]:
    """Returns the names of the tools that fit best: those named, else those with most words."""
    asked = set(re.split(r"[\s,;]+", query))
    named = [name for name in tools if name in asked]
    if named:
        return named[:_FOUND]
    words = {word.lower() for word in _WORD.findall(query)}
    scores = {name: _score(words, tool.spec) for name, tool in tools.items()}
    best = sorted((name for name in tools if scores[name]), key=lambda n: (-scores[n], n))
    return best[:_FOUND]


def _score(words: set[str], spec: ToolSpec) -> int:
    name = {word.lower() for word in _WORD.findall(spec.name)}
    about = {word.lower() for word in _WORD.findall(spec.description)}
    return 3 * len(words & name) + len(words & about)
