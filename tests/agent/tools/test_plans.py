"""Plans: handed over as data, and carried out.

Runs with an agent, a workspace and a plan: what is offered, what is told, what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import AgentError, Conflict
from searchloop.agent.log.events import Event, messages_from
from searchloop.agent.run.prompts import NamedAgent, settings_of
from searchloop.agent.run.question import StandardTools, without_spare
from searchloop.agent.run.undo import undo_files
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, ToolContext
from searchloop.agent.tools.present_plan import (
    find_plan,
    present_plan,
    run_text,
)
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Capabilities, Mode, ToolResult
from tests.agent.guard.guarding import session
from tests.agent.scripted import (
    House,
    Memory,
    Scripted,
    Step,
    call,
    calls,
    check_calls_are_answered,
    open_house,
    says,
    settings,
)

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
    assert result.details == {"kind": "plan", "plan_id": plan["plan_id"]}
    assert "7, https://nobody.example/" in result.content


@pytest.mark.parametrize("steps", [[], [{"text": " "}]])
def test_a_plan_that_is_none(steps: Any) -> None:
    """No step, or an empty one: the model is told, and no event is stored."""
    with pytest.raises(AgentError) as caught:
        presented(steps=steps)
    assert caught.value.code == "bad_plan"


def tools_in(mode: Mode, folder: str | None = "/ws") -> list[str]:
    """The names of what a session has in this mode, with or without a workspace."""
    tools = asyncio.run(StandardTools().tools(session(mode, workspace=folder)))
    return [tool.spec.name for tool in tools]


def test_plans_are_handed_over_in_plan_mode_only() -> None:
    """And left out where it would cost the model's own search."""
    assert tools_in("plan") == ["present_plan"]
    assert tools_in("ask") == tools_in("agent") == []
    assert tools_in("agent", None) == []
    assert tools_in("plan", None) == ["present_plan"]
    own = present_plan()
    assert without_spare([own, Tool(own.spec, own.run, origin="user")])[0].origin == "user"


def test_the_plan_that_is_meant() -> None:
    """The newest, or the one of this id; a clear word when there is none."""
    events = [Event(n, "plan", {"plan_id": f"p{n}", "title": "T"}, 0.0) for n in (1, 2)]
    assert find_plan(events)["plan_id"] == "p2"
    assert find_plan(events, "p1")["plan_id"] == "p1"
    for plan_id, log in (("p9", events), (None, [])):
        with pytest.raises(AgentError) as caught:
            find_plan(log, plan_id)
        assert caught.value.code == "no_plan"


@asynccontextmanager
async def playing(
    folder: Path, *steps: Step, can: Capabilities | None = None
) -> AsyncIterator[tuple[House, Scripted]]:
    """A house with every tool of our own; the session has a workspace."""
    (folder / "ws").mkdir()
    (folder / "ws" / "a.txt").write_text("one\n")
    model, bring = Scripted(steps, can), (StandardTools(), Workspace(folder / "home"))
    async with open_house(folder / "home", model, bring=bring) as house:
        house.log.update_session(house.session, workspace=str(folder / "ws"))
        yield house, model
        check_calls_are_answered(messages_from(house.log.read(house.session)))


def offered(model: Scripted) -> list[str]:
    """The names of the tools in the last request."""
    return [spec.name for spec in model.requests[-1].tools]


async def test_an_agent_restricts_what_is_offered_and_what_runs(tmp_path: Path) -> None:
    """Its words are in the system text; a tool it may not use is not there, called or not."""
    few = NamedAgent("reader", system="Answer in rhyme.", tools=("read_file",))
    steps = (
        calls(
            call("create_file", 1, path="x.txt", content="x"), call("read_file", 2, path="a.txt")
        ),
        says("Done."),
        says("Done."),
    )
    async with playing(tmp_path, *steps) as (house, model):
        house.log.update_session(house.session, settings_of(few), mode="agent")
        await house.ask("go")
        assert offered(model) == ["read_file"]
        assert "Answer in rhyme." in model.requests[0].system
        results = [e.data for e in house.log.read(house.session) if e.type == "tool_result"]
        assert [r["is_error"] for r in results] == [True, False]
        assert "no tool called 'create_file'" in results[0]["content"]
        house.log.update_session(house.session, settings_of(None))
        await house.ask("and now")
        assert "create_file" in offered(model)
        assert "rhyme" not in model.requests[-1].system
    assert not (tmp_path / "ws" / "x.txt").exists()


async def test_a_plan_is_handed_to_agent_mode(tmp_path: Path) -> None:
    """Presented in plan mode, stored as an event, carried out in agent mode in the same session."""
    steps = [{"text": "Change a", "files": ["a.txt"]}]
    made = [
        calls(call("present_plan", 1, title="Better a", steps=steps)),
        says("It improves a."),
        calls(call("replace_in_file", 2, path="a.txt", old_text="one", new_text="two")),
        says("Changed."),
    ]
    async with playing(tmp_path, *made) as (house, model):
        ended = await house.ask("plan it", mode="plan")
        assert ended.data["answer"] == "It improves a."
        assert "present_plan" in offered(model)
        assert "notice" not in house.kinds()
        plan = find_plan(house.log.read(house.session))
        await house.ask(run_text(plan), mode="agent", approve="auto", plan=plan)
        assert "present_plan" not in offered(model)
        assert model.requests[-1].messages[-3].content == (
            "Carry out this plan: Better a\n\n1. Change a\n   Touches: a.txt"
        )
        assert house.log.session(house.session).mode == "agent"
    assert (tmp_path / "ws" / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("both", [True, False])
async def test_small_tools_do_not_cost_the_search(tmp_path: Path, both: bool) -> None:
    """A model that searches by itself or uses tools, not both, goes on searching by itself."""
    can = Capabilities(native_search=True, tools_with_native_search=both)
    async with playing(tmp_path, says("Late."), can=can) as (house, model):
        house.log.update_session(house.session, workspace=None)
        ended = await house.ask("plan my day", search="native", mode="plan")
        assert ended.data["search_path"] == "native:scripted"
        assert offered(model) == (["present_plan"] if both else [])


async def test_an_undo_is_told_to_the_model_once(tmp_path: Path) -> None:
    """The next question says which files are as before; a reload reads the same transcript."""
    async with playing(tmp_path, says("Done."), says("Yes."), says("Yes.")) as (house, model):
        await house.ask("change it", mode="agent", approve="auto")
        house.log.update_session(house.session, {"undone": ["a.txt"]})
        await house.ask("go on")
        said = model.requests[-1].messages[-1].content
        assert said.startswith("[The user has undone your changes to these files")
        assert said.endswith("a.txt]\n\ngo on")
        read = messages_from(house.log.read(house.session))
        assert read[-2].content == said
        await house.ask("and on")
        assert model.requests[-1].messages[-1].content == "and on"


async def test_an_undo_leaves_hidden_versions_alone(tmp_path: Path) -> None:
    """What is taken back is what an answer on show did, not that of a version nobody looks at."""
    make = [call("create_file", n, path=f"{n}.txt", content="x") for n in (1, 2)]
    steps = [calls(make[0]), says("Done."), calls(make[1]), says("Done.")]
    async with playing(tmp_path, *steps) as (house, _):
        await house.ask("go", mode="agent", approve="auto")
        first = next(e.seq for e in house.log.read(house.session) if e.type == "user_message")
        await house.ask("go", mode="agent", approve="auto", replaces=first)
        own, made = settings(tmp_path / "home"), tmp_path / "ws"
        house.log.append(house.session, [("branch_chosen", {"turn": first})])
        assert undo_files(house.log, own, house.session) == ["1.txt"]
        with pytest.raises(Conflict, match="No answer that this chat"):
            undo_files(house.log, own, house.session)
        assert [(made / f"{n}.txt").exists() for n in (1, 2)] == [False, True]
