"""Plans: handed over as data, taken from a list when the user asks for it, and carried out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import AgentError
from searchloop.agent.log.events import Event
from searchloop.agent.log.session import Session
from searchloop.agent.run.prompts import built_in, settings_of
from searchloop.agent.run.question import StandardTools, without_spare
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, ToolContext
from searchloop.agent.tools.present_plan import (
    find_plan,
    listed_steps,
    offer,
    plan_data,
    plan_from_answer,
    present_plan,
    run_text,
)
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Message, Mode, ToolResult
from tests.agent.scripted import Memory, Scripted, open_house, says

URL = "https://example.org/tides"
STEPS = [
    {"text": "Read  the\nconfig", "files": ["app/config.toml", "app/config.toml"], "sources": [1]},
    {"text": "Change it", "sources": ["[1]", URL, 7, "https://nobody.example/"]},
]


def presented(title: str = "Better config", steps: Any = STEPS) -> tuple[ToolResult, Memory]:
    """What becomes of a call, in a chat that met one page and found another."""
    table, heard = SourceTable(), Memory()
    table.meet(URL, "Tides", "opened")

    async def run() -> Any:
        tool = present_plan()
        return await tool.run({"title": title, "steps": steps}, ToolContext("c1", table, heard))

    return asyncio.run(run()), heard


def test_a_plan_is_an_event() -> None:
    """Steps, files and sources, numbered as the chat numbers them; what nobody met is left out."""
    result, heard = presented()
    (plan,) = heard.of("plan")
    assert plan["title"] == "Better config"
    assert plan["steps"] == [
        {"text": "Read the config", "files": ["app/config.toml"], "sources": [1]},
        {"text": "Change it", "files": [], "sources": [1]},
    ]
    assert plan["files"] == ["app/config.toml"]
    assert plan["sources"] == [{"n": 1, "url": URL, "title": "Tides", "state": "opened"}]
    assert plan["by"] == "model"
    assert result.details == {"kind": "plan", "plan_id": plan["plan_id"]}
    assert "7, https://nobody.example/" in result.content


@pytest.mark.parametrize(
    "steps", [[], [{"text": " "}], [{"text": "x"}] * 51, [{"text": "x" * 5000}]]
)
def test_a_plan_that_is_none(steps: Any) -> None:
    """No step, an empty one, too many, too long: the model is told, and no event is stored."""
    with pytest.raises(AgentError) as caught:
        presented(steps=steps)
    assert caught.value.code == "bad_plan"


def tools_in(mode: Mode, folder: str | None = "/ws") -> list[str]:
    """The names of what a session has in this mode, with or without a workspace."""
    session = Session("s", "", "m:x", mode, "off", "off", folder, 0.0, 0.0, 0, False)
    return [tool.spec.name for tool in asyncio.run(StandardTools().tools(session))]


def test_plans_are_handed_over_in_plan_mode_only() -> None:
    """And left out where it would cost the model's own search."""
    assert tools_in("plan") == ["present_plan"]
    assert tools_in("ask") == tools_in("agent") == []
    assert tools_in("agent", None) == []
    assert tools_in("plan", None) == ["present_plan"]
    own = present_plan()
    assert without_spare([own, Tool(own.spec, own.run, origin="user")])[0].origin == "user"


ANSWER = """\
# Move the tides to the new service

I looked at `app/tides.py` first [1].

1. Read `app/tides.py` and `README.md` [1].
   Note what calls it.
2. Write `new/service.py` [1][9]
3. Delete the old one

Points to watch:
- time zones
- leap years
"""


def ended(answer: str) -> list[Event]:
    """A log whose last turn ended with this."""
    source = {"n": 1, "url": URL, "title": "Tides", "state": "cited"}
    data = {"answer": answer, "sources": [source, {"url": "x", "title": "", "state": "found"}]}
    return [Event(1, "user_message", {"text": "?"}, 0.0), Event(2, "run_finished", data, 0.0)]


def test_a_list_in_an_answer_becomes_a_plan_when_asked() -> None:
    """Its numbered items, the files in code marks, the sources it cites: nothing is made up."""
    plan = plan_from_answer(ended(ANSWER))
    assert plan["title"] == "Move the tides to the new service"
    assert [step["text"] for step in plan["steps"]] == [
        "Read `app/tides.py` and `README.md` [1]. Note what calls it.",
        "Write `new/service.py` [1][9]",
        "Delete the old one",
    ]
    assert plan["files"] == ["app/tides.py", "README.md", "new/service.py"]
    assert [step["sources"] for step in plan["steps"]] == [[1], [1], []]
    assert plan["by"] == "text"
    with pytest.raises(AgentError, match="no list"):
        plan_from_answer(ended("I do not know."))
    with pytest.raises(AgentError, match="no list"):
        plan_from_answer([])


def test_which_list_is_taken() -> None:
    """The longest numbered one; tasks only where nothing is numbered; plain points never."""
    assert listed_steps("1. a\n2. b\n\nOr:\n1. c\n2) d\n3. e") == ["c", "d", "e"]
    assert listed_steps("- [ ] a\n- [x] b") == ["a", "b"]
    assert listed_steps("- [ ] a") == []
    assert listed_steps("- “a quote”\n- “another”\n- and one more") == []
    assert listed_steps("In 1990. It was\n1990. It") == []


@given(st.lists(st.sampled_from(["1. a", "2. b", "3) c", "- d", "# e", " f", "", "9. g"])))
def test_steps_of_any_text_are_its_own_words(lines: list[str]) -> None:
    """Whatever the text, each step is made of what stands in it, in order."""
    text = "\n".join(lines)
    squeezed = "".join(text.split())
    for step in listed_steps(text):
        assert "".join(step.split())[:1] in squeezed


def test_the_plan_that_is_meant() -> None:
    """The newest, or the one of this id; a clear word when there is none."""
    events = [Event(n, "plan", {"plan_id": f"p{n}", "title": "T"}, 0.0) for n in (1, 2)]
    assert find_plan(events)["plan_id"] == "p2"
    assert find_plan(events, "p1")["plan_id"] == "p1"
    for plan_id, log in (("p9", events), (None, [])):
        with pytest.raises(AgentError) as caught:
            find_plan(log, plan_id)
        assert caught.value.code == "no_plan"


def test_what_agent_mode_is_told() -> None:
    """The whole plan as a question, so that another model can carry it out as well."""
    _, heard = presented()
    (plan,) = heard.of("plan")
    assert run_text(plan) == (
        "Carry out this plan: Better config\n\n"
        "1. Read the config\n   Touches: app/config.toml\n   Sources: [1]\n"
        "2. Change it\n   Sources: [1]"
    )


@pytest.mark.parametrize(
    ("agent", "files", "runs"),
    [
        ("planner", ["a.md"], False),
        ("planner", [], True),
        ("coder", ["a.md"], True),
        (None, ["a.md"], True),
    ],
)
async def test_an_agent_that_cannot_run_a_plan_says_so(
    tmp_path: Path, agent: str | None, files: list[str], runs: bool
) -> None:
    """Nothing is sent to a model that has no tool to do it with; the question knows its plan."""
    (folder := tmp_path / "ws").mkdir()
    step = {"text": "Write", "files": files, "sources": []}
    plan = plan_data("Notes", [step], by="text")

    model = Scripted([says("Done.")])
    bring = [Workspace(tmp_path / "home")]
    async with open_house(tmp_path / "home", model, bring=bring) as house:
        kept = settings_of(built_in()[agent]) if agent else {}
        house.log.update_session(house.session, kept, workspace=str(folder))
        finished = await house.ask(run_text(plan), mode="agent", plan=plan)
        assert house.log.read(house.session)[0].data["plan"] == plan["plan_id"]
        assert bool(model.requests) is runs
        if not runs:
            assert finished.data["error"]["code"] == "agent_cannot_run"
            assert "a.md" in finished.data["error"]["message"]


def test_text_is_offered_as_a_plan_and_not_passed_off_as_one() -> None:
    """An answer with a list is offered; one that was handed over, or has no list, is not."""
    done = Message("tool", "ok", tool_name="present_plan", details={"kind": "plan"})
    failed = Message("tool", "no", tool_name="present_plan", is_error=True)
    notice = offer(ANSWER, [failed])
    assert notice
    assert notice["code"] == "plan_in_text"
    assert "3 steps" in notice["message"]
    assert offer(ANSWER, [failed, done]) is None
    assert offer("Nothing to do.", []) is None
