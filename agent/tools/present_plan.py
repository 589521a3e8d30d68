"""Plans, and `present_plan`: in plan mode the model hands its plan over as data."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from searchloop.agent.errors import Conflict, ToolError
from searchloop.agent.log.events import Event, source_data
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import Source, ToolResult, ToolSpec
from searchloop.analysis.addresses import url_key

_MOST = 50  # steps
_LISTED = 40  # files or sources of a step
_LONG, _TITLE = 4000, 120  # characters of a step, of a title
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
        if not text:
            raise _bad(f"step {number} is empty")
        found = [(name, _source(name, context, known)) for name in step.get("sources", [])]
        unknown += [str(name) for name, source in found if source is None]
        own = {source.url: source for _, source in found if source}
        behind |= own
        files = dict.fromkeys(" ".join(str(name).split())[:300] for name in step.get("files", []))
        numbers = [source.n for source in own.values()]
        steps.append({"text": text, "files": [*filter(None, files)], "sources": numbers})
    data = {
        "plan_id": secrets.token_hex(6),
        "title": " ".join(arguments["title"].split())[:_TITLE] or "Plan",
        "steps": steps,
        "files": [*dict.fromkeys(name for step in steps for name in step["files"])],
        "sources": [source_data(source) for source in behind.values()],
    }
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
