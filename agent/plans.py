"""Plans: what a turn in plan mode ends with, and how one is carried out.

A plan is an event of the session's log, `plan {plan_id, title, steps, files, sources, by}`; a step
is `{text, files, sources}` with the sources' numbers. `by` says who put it into this form: the
model with `present_plan`, or the program from the list in an answer (`text`), when the user asks
for that.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.errors import ConfigError, Conflict
from agent.events import Event, source_data
from agent.types import Message, Source

_ITEM = re.compile(r"^ {0,3}(\d{1,3})[.)]\s+(\S.*)$")
_BULLET = re.compile(r"^ {0,3}[-*+]\s+\[[ xX]\]\s+(\S.*)$")
_CITED = re.compile(r"\[(\d{1,3})\]")
_CODE = re.compile(r"`([^`\n]{1,200})`")
_FILE = re.compile(r"[\w.@+-]*(?:/[\w.@+-]+)+/?|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}")
_MOST, _TITLE = 50, 120
IN_TEXT = "plan_in_text"


def step_data(text: str, files: Iterable[str], sources: Iterable[Source]) -> dict[str, Any]:
    """One step of a plan; `sources` become numbers when the plan is put together."""
    named = dict.fromkeys(" ".join(str(name).split())[:300] for name in files)
    behind = {source.url: source for source in sources}
    return {"text": text, "files": [n for n in named if n], "sources": list(behind.values())}


def plan_data(title: str, steps: Sequence[Mapping[str, Any]], *, by: str) -> dict[str, Any]:
    """The data of a `plan` event, made of steps as `step_data` gives them."""
    sources = {source.url: source for step in steps for source in step["sources"]}
    files = dict.fromkeys(name for step in steps for name in step["files"])
    return {
        "plan_id": secrets.token_hex(6),
        "title": " ".join(title.split())[:_TITLE] or "Plan",
        "steps": [{**step, "sources": [s.n for s in step["sources"]]} for step in steps],
        "files": list(files),
        "sources": [source_data(source) for source in sources.values()],
        "by": by,
    }


def find_plan(events: Iterable[Event], plan_id: str | None = None) -> Mapping[str, Any]:
    """The plan of this id, or the newest. Raises Conflict('no_plan') when there is none."""
    plans = [event.data for event in events if event.type == "plan"]
    found = [plan for plan in plans if plan_id in (None, plan["plan_id"])]
    if not found:
        what = f"This session has no plan {plan_id[:40]!r}." if plan_id else "There is no plan."
        raise Conflict("no_plan", what, "Ask for one in plan mode first.")
    return found[-1]


def plan_from_answer(events: Iterable[Event]) -> dict[str, Any]:
    """A plan made of the list in the last answer. Raises ConfigError('no_list') without one."""
    ends = [event.data for event in events if event.type == "run_finished"]
    steps = listed_steps(ends[-1]["answer"]) if ends else []
    if not steps:
        raise ConfigError(
            "no_list", "The last answer holds no list of steps.", "Ask for a plan in plan mode."
        )
    known = {s["n"]: Source(**s) for s in ends[-1]["sources"] if s.get("n")}
    made = [step_data(text, files_in(text), _cited(text, known)) for text in steps[:_MOST]]
    return plan_data(_heading(ends[-1]["answer"]), made, by="text")


def listed_steps(text: str) -> list[str]:
    """The items of the longest numbered list in a text, or of its longest list of tasks (`- [ ]`).

    Points without a number or a box may be anything: quotes, remarks, choices.
    """
    lists: list[list[str]] = [[]]
    points: list[list[str]] = [[]]
    for line in text.split("\n"):
        item, point = _ITEM.match(line), _BULLET.match(line)
        if item:
            if int(item[1]) != len(lists[-1]) + 1:
                lists.append([])
            if int(item[1]) == len(lists[-1]) + 1:
                lists[-1].append(item[2].strip())
        elif point:
            points[-1].append(point[1].strip())
        elif line.startswith("#"):
            lists.append([])
            points.append([])
        elif line.strip() and line[0] in " \t" and lists[-1]:
            lists[-1][-1] += f" {line.strip()}"
    numbered, dotted = max(lists, key=len), max(points, key=len)
    return numbered or (dotted if len(dotted) > 1 else [])


def files_in(text: str) -> list[str]:
    """What stands in code marks and reads like the name of a file."""
    return [name for name in _CODE.findall(text) if _FILE.fullmatch(name)]


def _cited(text: str, known: Mapping[int, Source]) -> list[Source]:
    numbers = dict.fromkeys(int(number) for number in _CITED.findall(text))
    return [known[number] for number in numbers if number in known]


def _heading(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return "Plan" if _ITEM.match(first) or _BULLET.match(first) else first.strip(" #*:")


def run_text(plan: Mapping[str, Any]) -> str:
    """The question that has a plan carried out: all of it, so that any model can take it up."""
    lines = [f"Carry out this plan: {plan['title']}", ""]
    for number, step in enumerate(plan["steps"], 1):
        lines.append(f"{number}. {step['text']}")
        if step["files"]:
            lines.append(f"   Touches: {', '.join(step['files'])}")
        if step["sources"]:
            lines.append(f"   Sources: {', '.join(f'[{n}]' for n in step['sources'])}")
    return "\n".join(lines)


def offer(answer: str, said: Iterable[Message]) -> dict[str, str] | None:
    """The notice for an answer in plan mode that came without `present_plan`; None when it did.

    What the answer says is never passed off as a plan: the user decides to make it one.
    """
    if any(message.details.get("kind") == "plan" for message in said if not message.is_error):
        return None
    steps = len(listed_steps(answer))
    if not steps:
        return None
    return {
        "code": IN_TEXT,
        "message": f"The plan came as text; its {steps} steps can be made a plan that runs.",
        "remedy": "Use /run in `searchloop chat`, or --run-plan, to go on with it.",
    }
