"""Plans, and `present_plan`: in plan mode the model hands its plan over as data."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from searchloop.agent.errors import Conflict, ToolError
from searchloop.agent.log.events import Event, source_data
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import Source, ToolResult, ToolSpec
from searchloop.analysis.addresses import url_key

_MOST = 50  # steps
_LISTED = 40  # files or sources of a step
_LONG = 4000  # characters of a step
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": _LISTED}
_STEP = object_schema(
    {
        "text": {**text_schema("What is done in this step"), "maxLength": _LONG},
        "files": {**_TEXTS, "description": "Files or systems that it touches"},
        "sources": {**_TEXTS, "description": "Numbers or addresses of the sources behind it"},
    },
    "text",
)
_SPEC = ToolSpec(
    name="present_plan",
    description=(
        "Show the finished plan to the user, who may have it carried out. Call it once, at the "
        "end; then say in one sentence what the plan achieves."
    ),
    parameters=object_schema(
        {
            "title": text_schema("What the plan achieves, a few words"),
            "steps": {"type": "array", "items": _STEP, "maxItems": _MOST},
        },
        "title",
        "steps",
    ),
    effect="read",
)


def present_plan() -> Tool:
    """Returns the tool. It stores a `plan` event without the sources that the chat has not met."""
    return Tool(_SPEC, _run, seconds=10.0, origin="ours")


async def _run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    if not (given := arguments["steps"]):
        raise _bad("it has no steps")
    known = {url_key(source.url): source for source in context.sources.touched()}
    steps, unknown, behind = list[dict[str, Any]](), list[str](), dict[str, Source]()
    for number, step in enumerate(given, 1):
        text = " ".join(step["text"].split())
        files, named = step.get("files", []), step.get("sources", [])
        if not text:
            raise _bad(f"step {number} is empty")
        found = [(name, _source(name, context, known)) for name in named]
        unknown += [str(name) for name, source in found if source is None]
        sources = [source for _, source in found if source]
        behind.update((source.url, source) for source in sources)
        steps.append(step_data(text, files, sources))
    data = plan_data(arguments["title"], steps)
    await context.emit.event("plan", data)
    said = "The user sees the plan now. Say in one sentence what it achieves; do not repeat it."
    if unknown:
        said += f" Left out, because they are no sources of this chat: {', '.join(unknown[:10])}."
    details = {"kind": "plan", "plan_id": data["plan_id"]}
    cited = tuple(behind.values())
    return ToolResult(context.call_id, _SPEC.name, said, details=details, sources=cited)


def _source(name: object, context: ToolContext, known: Mapping[str, Source]) -> Source | None:
    """Finds the source of a number or address and numbers it; returns None for any other."""
    text = str(name).strip().strip("[]")
    if text.isascii() and text.isdigit():
        return context.sources.numbered(int(text))
    found = known.get(url_key(text))
    if found is None or found.n is not None:
        return found
    return context.sources.meet(found.url, found.title, found.state)


def _bad(what: str) -> ToolError:
    return ToolError("bad_plan", f"The plan was not shown: {what}.", "Correct it and call again.")


_TITLE = 120


def step_data(text: str, files: Iterable[str], sources: Iterable[Source]) -> dict[str, Any]:
    """Makes one step of a plan; `plan_data` turns its `sources` into numbers."""
    named = dict.fromkeys(" ".join(str(name).split())[:300] for name in files)
    behind = {source.url: source for source in sources}
    return {"text": text, "files": [n for n in named if n], "sources": list(behind.values())}


def plan_data(title: str, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Makes the data of a `plan` event of steps from `step_data`."""
    sources = {source.url: source for step in steps for source in step["sources"]}
    files = dict.fromkeys(name for step in steps for name in step["files"])
    return {
        "plan_id": secrets.token_hex(6),
        "title": " ".join(title.split())[:_TITLE] or "Plan",
        "steps": [{**step, "sources": [s.n for s in step["sources"]]} for step in steps],
        "files": list(files),
        "sources": [source_data(source) for source in sources.values()],
    }


def find_plan(events: Iterable[Event], plan_id: str | None = None) -> Mapping[str, Any]:
    """Returns the plan of this id, or the newest. Raises Conflict('no_plan')."""
    plans = [event.data for event in events if event.type == "plan"]
    found = [plan for plan in plans if plan_id in (None, plan["plan_id"])]
    if not found:
        what = f"This session has no plan {plan_id[:40]!r}." if plan_id else "There is no plan."
        raise Conflict("no_plan", what, "Ask for one in plan mode first.")
    return found[-1]


def run_text(plan: Mapping[str, Any]) -> str:
    """Returns the question that carries a plan out, with the whole plan for any model."""
    lines = [f"Carry out this plan: {plan['title']}", ""]
    for number, step in enumerate(plan["steps"], 1):
        lines.append(f"{number}. {step['text']}")
        if step["files"]:
            lines.append(f"   Touches: {', '.join(step['files'])}")
        if step["sources"]:
            lines.append(f"   Sources: {', '.join(f'[{n}]' for n in step['sources'])}")
    return "\n".join(lines)
