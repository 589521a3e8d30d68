"""Runs with an agent, a workspace and a plan: what is offered, what is told, what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent
from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.log.events import messages_from
from searchloop.agent.run.prompts import NamedAgent, settings_of
from searchloop.agent.run.question import StandardTools, open_session
from searchloop.agent.run.undo import undo_files
from searchloop.agent.tools.present_plan import find_plan, plan_from_answer, run_text
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Capabilities
from tests.agent.scripted import (
    House,
    Scripted,
    Step,
    call,
    calls,
    check_calls_are_answered,
    open_house,
    says,
    settings,
)

LIST = "1. Read `a.txt`\n2. Change `b.txt`"
Scenario = Callable[[House, Scripted], Awaitable[None]]


def play(
    folder: Path, *steps: Step, scenario: Scenario, can: Capabilities | None = None
) -> Scripted:
    """A scenario in a house with every tool of our own; the session has a workspace."""
    (folder / "ws").mkdir()
    (folder / "ws" / "a.txt").write_text("one\n")
    model = Scripted(steps, can)

    async def run() -> None:
        bring = (StandardTools(), Workspace(folder / "home"))
        async with open_house(folder / "home", model, bring=bring) as house:
            house.log.update_session(house.session, workspace=str(folder / "ws"))
            await scenario(house, model)
            check_calls_are_answered(messages_from(house.log.read(house.session)))

    asyncio.run(run())
    return model


def offered(model: Scripted) -> list[str]:
    """The names of the tools in the last request."""
    return [spec.name for spec in model.requests[-1].tools]


def test_an_agent_restricts_what_is_offered_and_what_runs(tmp_path: Path) -> None:
    """Its words are in the system text; a tool it may not use is not there, called or not."""
    few = NamedAgent("reader", system="Answer in rhyme.", tools=("read_file",))

    async def scenario(house: House, model: Scripted) -> None:
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

    steps = (
        calls(
            call("create_file", 1, path="x.txt", content="x"), call("read_file", 2, path="a.txt")
        ),
        says("Done."),
        says("Done."),
    )
    play(tmp_path, *steps, scenario=scenario)
    assert not (tmp_path / "ws" / "x.txt").exists()


def test_a_plan_is_handed_to_agent_mode(tmp_path: Path) -> None:
    """Presented in plan mode, stored as an event, carried out in agent mode in the same session."""

    async def scenario(house: House, model: Scripted) -> None:
        ended = await house.ask("plan it", mode="plan")
        assert ended.data["answer"] == "It improves a."
        assert "present_plan" in offered(model)
        assert "notice" not in house.kinds()
        plan = find_plan(house.log.read(house.session))
        await house.ask(run_text(plan), mode="agent", approve="auto", plan=plan)
        assert "present_plan" not in offered(model)
        assert "Carry out this plan: Better a" in model.requests[-1].messages[-3].content
        assert house.log.session(house.session).mode == "agent"

    steps = [{"text": "Change a", "files": ["a.txt"]}]
    play(
        tmp_path,
        calls(call("present_plan", 1, title="Better a", steps=steps)),
        says("It improves a."),
        calls(call("replace_in_file", 2, path="a.txt", old_text="one", new_text="two")),
        says("Changed."),
        scenario=scenario,
    )
    assert (tmp_path / "ws" / "a.txt").read_text() == "two\n"


def test_a_plan_in_text_is_offered(tmp_path: Path) -> None:
    """The text stays as it is; the notice offers to make a plan of it, and nothing is made yet."""

    async def scenario(house: House, model: Scripted) -> None:
        ended = await house.ask("plan it", mode="plan")
        assert ended.data["answer"] == LIST
        events = house.log.read(house.session)
        (notice,) = [e.data for e in events if e.type == "notice"]
        assert notice["code"] == "plan_in_text"
        assert "plan" not in house.kinds()
        assert plan_from_answer(events)["files"] == ["a.txt", "b.txt"]
        await house.ask("and without planning", mode="ask")
        assert house.kinds().count("notice") == 1

    play(tmp_path, says(LIST), says(LIST), scenario=scenario)


@pytest.mark.parametrize("both", [True, False])
def test_small_tools_do_not_cost_the_search(tmp_path: Path, both: bool) -> None:
    """A model that searches by itself or uses tools, not both, goes on searching by itself."""

    async def scenario(house: House, model: Scripted) -> None:
        house.log.update_session(house.session, workspace=None)
        ended = await house.ask("plan my day", search="native", mode="plan")
        assert ended.data["search_path"] == "native:scripted"
        assert offered(model) == (["present_plan"] if both else [])

    can = Capabilities(native_search=True, tools_with_native_search=both)
    play(tmp_path, says("Late."), scenario=scenario, can=can)


def test_a_model_without_tools_is_sent_none(tmp_path: Path) -> None:
    """One that only searches is not sent the files' tools, and the user is told so."""

    async def scenario(house: House, model: Scripted) -> None:
        ended = await house.ask("what is new?", search="auto")
        assert ended.data["search_path"] == "native:scripted"
        assert offered(model) == []
        told = [e.data["code"] for e in house.log.read(house.session) if e.type == "notice"]
        assert told == ["tools_left_out"]

    can = Capabilities(tools=False, native_search=True)
    play(tmp_path, says("This."), scenario=scenario, can=can)


def test_an_undo_is_told_to_the_model_once(tmp_path: Path) -> None:
    """The next question says which files are as before; a reload reads the same transcript."""

    async def scenario(house: House, model: Scripted) -> None:
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

    play(tmp_path, says("Done."), says("Yes."), says("Yes."), scenario=scenario)


def test_an_undo_leaves_hidden_versions_alone(tmp_path: Path) -> None:
    """What is taken back is what an answer on show did, not that of a version nobody looks at."""
    make = [call("create_file", n, path=f"{n}.txt", content="x") for n in (1, 2)]

    async def scenario(house: House, model: Scripted) -> None:
        await house.ask("go", mode="agent", approve="auto")
        first = next(e.seq for e in house.log.read(house.session) if e.type == "user_message")
        await house.ask("go", mode="agent", approve="auto", replaces=first)
        own, made = settings(tmp_path / "home"), tmp_path / "ws"
        house.log.append(house.session, [("branch_chosen", {"turn": first})])
        assert undo_files(house.log, own, house.session) == ["1.txt"]
        with pytest.raises(Conflict, match="No answer of this session"):
            undo_files(house.log, own, house.session)
        assert [(made / f"{n}.txt").exists() for n in (1, 2)] == [False, True]

    steps = [calls(make[0]), says("Done."), calls(make[1]), says("Done.")]
    play(tmp_path, *steps, scenario=scenario)


def test_a_workspace_that_is_gone_leaves_the_session_alone(tmp_path: Path) -> None:
    """Its tools say so to the model; the answer comes."""

    async def scenario(house: House, model: Scripted) -> None:
        house.log.update_session(house.session, workspace=str(tmp_path / "gone"))
        ended = await house.ask("list it")
        assert ended.data["answer"] == "It is gone."
        (result,) = [e.data for e in house.log.read(house.session) if e.type == "tool_result"]
        assert result["details"]["error"]["code"] == "no_workspace"

    play(tmp_path, calls(call("list_directory")), says("It is gone."), scenario=scenario)


def test_a_broken_copy_of_an_agent_is_named(tmp_path: Path) -> None:
    """A session whose settings were damaged does not run as somebody else."""

    async def scenario(house: House, model: Scripted) -> None:
        broken: dict[str, Any] = {"agent": "x", "preset": {"tools": "all"}}
        house.log.update_session(house.session, broken)
        with pytest.raises(ConfigError, match="tools"):
            await house.ask("go")

    play(tmp_path, scenario=scenario)


def test_files_and_undo_as_a_library(tmp_path: Path) -> None:
    """As in docs/guides/library-use.md: a session with a folder, a change, and the way back."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "todo.md").write_text("b\na\n")
    own = settings(tmp_path / "home")
    change = call("replace_in_file", path="todo.md", old_text="b\na", new_text="a\nb")
    model = Scripted([calls(change), says("Sorted.")])
    with Agent(own, bring=[Workspace.of(own)], providers=[model]) as agent:
        wanted = {"workspace": str(tmp_path / "ws"), "agent": "coder"}
        session = open_session(agent.log, own, wanted)
        assert (session.mode, session.search) == ("agent", "off")
        answer = agent.ask("Sort the list in todo.md.", session=session.id, approve="auto")
        assert answer.text == "Sorted."
        assert (tmp_path / "ws" / "todo.md").read_text() == "a\nb\n"
        assert undo_files(agent.log, own, session.id) == ["todo.md"]
        assert (tmp_path / "ws" / "todo.md").read_text() == "b\na\n"
