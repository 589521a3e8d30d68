"""`present_plan`: how a turn in plan mode ends, as data that can be shown and carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.errors import ToolError
from agent.plans import plan_data, step_data
from agent.sources import url_key
from agent.tools import Tool, ToolContext
from agent.types import Source, ToolResult, ToolSpec

_MOST = 50  # steps
_LISTED = 40  # files or sources of a step
_LONG = 4000  # characters of a step
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_SPEC = ToolSpec(
    name="present_plan",
    description=(
        "Show the finished plan to the user, who may have it carried out. Call it once, at the "
        "end; then say in one sentence what the plan achieves."
    ),
    parameters={
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What the plan achieves, a few words"},
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "What is done in this step"},
                        "files": {**_TEXTS, "description": "Files or systems that it touches"},
                        "sources": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "Numbers or addresses of the sources behind it",
                        },
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["title", "steps"],
        "additionalProperties": False,
    },
    effect="read",
)


def present_plan() -> Tool:
    """The tool. It stores a `plan` event; a source that nobody met is left out of it."""
    return Tool(_SPEC, _run, seconds=10.0, origin="ours")


async def _run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    given = arguments["steps"]
    if not 0 < len(given) <= _MOST:
        raise _bad(f"it has {len(given)} steps, not 1 to {_MOST}")
    known = {url_key(source.url): source for source in context.sources.touched()}
    steps, unknown, behind = list[dict[str, Any]](), list[str](), dict[str, Source]()
    for number, step in enumerate(given, 1):
        text = " ".join(step["text"].split())
        files, named = step.get("files", []), step.get("sources", [])
        if not text or len(text) > _LONG or max(len(files), len(named)) > _LISTED:
            raise _bad(f"step {number} is empty or too long")
        found = [(name, _source(name, context, known)) for name in named]
        unknown += [str(name) for name, source in found if source is None]
        sources = [source for _, source in found if source]
        behind.update((source.url, source) for source in sources)
        steps.append(step_data(text, files, sources))
    data = plan_data(arguments["title"], steps, by="model")
    await context.emit.event("plan", data)
    said = "The user sees the plan now. Say in one sentence what it achieves; do not repeat it."
    if unknown:
        said += f" Left out, because they are no sources of this chat: {', '.join(unknown[:10])}."
    details = {"kind": "plan", "plan_id": data["plan_id"]}
    cited = tuple(behind.values())
    return ToolResult(context.call_id, _SPEC.name, said, details=details, sources=cited)


def _source(name: object, context: ToolContext, known: Mapping[str, Source]) -> Source | None:
    """The source of this number or address, which has a number then; None for any other."""
    text = str(name).strip().strip("[]")
    if text.isascii() and text.isdigit():
        return context.sources.numbered(int(text))
    found = known.get(url_key(text))
    if found is None or found.n is not None:
        return found
    return context.sources.meet(found.url, found.title, found.state)


def _bad(what: str) -> ToolError:
    return ToolError("bad_plan", f"The plan was not shown: {what}.", "Correct it and call again.")
