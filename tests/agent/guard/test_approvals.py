"""Approvals through the log: asked, answered from anywhere, and still there after a restart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.guard.approvals import Approvals, decided, pending
from searchloop.agent.guard.guard import Policy, save_policy
from searchloop.agent.log import EventLog
from searchloop.agent.tools import Tool
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Capabilities, Request
from tests.agent.guard.guarding import made
from tests.agent.scripted import (
    House,
    Memory,
    Scripted,
    SearchApp,
    Step,
    call,
    calls,
    found,
    open_house,
    says,
)

PUT = [calls(call("put", text="a")), says("Done.")]


@asynccontextmanager
async def playing(
    home: Path,
    tools: tuple[Tool, ...] = (),
    steps: list[Step] = PUT,
    *,
    can: Capabilities | None = None,
    **more: Any,
) -> AsyncIterator[tuple[House, Scripted]]:
    """A house in which a model plays these steps."""
    model = Scripted(steps, can)
    async with open_house(home, model, tools=tools, **more) as house:
        yield house, model


@pytest.mark.parametrize(("decision", "runs"), [("once", 1), ("always", 1), ("deny", 0)])
async def test_a_run_waits_and_goes_on(tmp_path: Path, decision: str, runs: int) -> None:
    """The request names all that a person needs; another process may answer it."""
    put, done = made("put")
    async with playing(tmp_path, (put,)) as (house, _):
        await house.runner.start(house.session, "Do it.", mode="agent")
        asked = await house.event("approval_requested")
        assert {k: asked.data[k] for k in ("name", "arguments", "effect", "server")} == {
            "name": "put",
            "arguments": {"text": "a"},
            "effect": "write",
            "server": None,
        }
        assert not done
        elsewhere = decision == "once"  # as another process would, which is seen a second later
        log = EventLog(tmp_path / "sessions.sqlite3") if elsewhere else house.log
        await asyncio.to_thread(Approvals(log).answer, house.session, "call-1", decision)
        if elsewhere:
            log.close()
        await house.runner.wait(house.session)
        assert len(done) == runs
        assert house.log.last_event(house.session).data["reason"] == "stop"


async def test_an_allowed_folder_is_kept_with_the_session(tmp_path: Path) -> None:
    """The second file of the folder is made without a question, after a restart too."""
    home, work = tmp_path / "home", tmp_path / "work"
    (work / "notes").mkdir(parents=True)
    bring, done = [Workspace(home)], says("Done.")
    steps = [calls(call("create_file", path="notes/a.md", content="x")), done]
    async with playing(home, (), steps, bring=bring) as (house, _):
        chat = house.session
        house.log.update_session(chat, workspace=str(work))
        assert (await house.decide("folder")).data["folder"] == str(work / "notes")
    steps = [calls(call("create_file", 2, path="notes/deep/b.md", content="y")), done]
    async with playing(home, (), steps, bring=bring) as (house, _):
        house.session = chat
        await house.ask("And again.", mode="agent")
        assert house.kinds().count("approval_requested") == 1
    assert (work / "notes" / "deep" / "b.md").read_text() == "y"


async def test_always_is_kept_with_the_session(tmp_path: Path) -> None:
    """The same call runs without a question in a later turn and after a restart; another asks."""
    put, done = made("put")
    async with playing(tmp_path, (put,)) as (house, _):
        chat = house.session
        await house.decide("always")
    steps = [calls(call("put", 2, text="a")), says("Done."), calls(call("put", 3, text="b"))]
    async with playing(tmp_path, (put,), [*steps, says("No.")]) as (house, _):
        house.session = chat
        for question, approve in (("Again.", "ask"), ("Another.", "never")):
            await house.ask(question, mode="agent", approve=approve)
    assert [call["text"] for call in done] == ["a", "a"]


async def test_late_and_foreign_answers_are_refused(tmp_path: Path) -> None:
    """Each request takes one answer, while its run lives; a word that is no decision names them."""
    put, done = made("put")
    async with playing(tmp_path, (put,)) as (house, _):
        answer = house.runner.approvals.answer
        with pytest.raises(Conflict, match="No call 'call-1' waits"):
            answer(house.session, "call-1", "once")
        await house.runner.start(house.session, "Do it.", mode="agent")
        await house.event("approval_requested")
        with pytest.raises(ConfigError, match="no decision 'perhaps'"):
            answer(house.session, "call-1", "perhaps")
        with pytest.raises(ConfigError, match="no file of the work folder"):
            answer(house.session, "call-1", "folder")
        with pytest.raises(Conflict):
            answer(house.session, "call-2", "once")
        answer(house.session, "call-1", "once")
        with pytest.raises(Conflict, match="'call-1' was decided already: once, by user"):
            answer(house.session, "call-1", "deny")
        await house.runner.wait(house.session)
        with pytest.raises(Conflict):
            answer(house.session, "call-1", "once")
        assert [call["text"] for call in done] == ["a"]


def test_of_many_decisions_the_first_counts(store: Path | str) -> None:
    """Two hosts, eight people, all at once while the log grows: one is told yes, and the others
    who decided what.
    """
    hosts = [EventLog(store), EventLog(store)]
    session = hosts[0].create_session(model="m").id
    request = {"call_id": "c", "name": "put", "arguments": {}, "definition": "d"}
    hosts[0].append(session, [("approval_requested", request)])
    start = threading.Barrier(9)

    def decide(number: int) -> str:
        start.wait()
        try:
            Approvals(hosts[number % 2]).answer(session, "c", "once", by=f"person {number}")
        except Conflict as conflict:
            return f"{conflict.code}: {conflict.message}"
        return f"person {number}"

    with ThreadPoolExecutor(8) as people:
        deciding = people.map(decide, range(8))
        start.wait()
        for _ in range(10):
            hosts[0].append(session, [("text_delta", {"text": "x"})])
        told = list(deciding)
    (kept,) = (e for e in hosts[1].read(session) if e.type == "approval_decided")
    (first,) = (words for words in told if words.startswith("person"))
    assert kept.data["by"] == first
    assert len(told) == 8
    told.remove(first)
    assert all(f"once, by {first}." in words for words in told)
    assert all(words.startswith("already_decided: ") for words in told)
    for host in hosts:
        host.close()


async def test_a_decision_counts_for_its_own_request(tmp_path: Path) -> None:
    """A server's question whose id is that of a call does not let that call run."""
    log = EventLog(tmp_path / "s.sqlite3")
    session, approvals, nobody = log.create_session(model="m:x").id, Approvals(log), Memory()
    known = {"call_id": "c-1", "effect": "write", "folder": "", "why": ""}
    call = {**known, "name": "put", "arguments": {"text": "a"}, "definition": "1"}
    question = {**known, "name": "mcp_quiz", "arguments": {"text": "evil"}, "definition": "2"}
    log.append(session, [("approval_requested", each) for each in (call, question)])
    approvals.answer(session, "c-1", "once")
    log.append(session, [("approval_decided", decided(call, "deny", None, "user"))])
    asked = (approvals.ask(session, None, each, nobody) for each in (call, question))
    said = [(answer.decision, answer.arguments["text"]) for answer in await asyncio.gather(*asked)]
    assert said == [("deny", "a"), ("once", "evil")]
    log.close()


async def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    """Stopped while the user is asked: nothing runs, nothing waits, the session goes on."""
    put, done = made("put")
    async with playing(tmp_path, (put,), [PUT[0], says("Fine.")]) as (house, _):
        await house.runner.start(house.session, "Do it.", mode="agent")
        await house.event("approval_requested")
        assert pending(house.log.read(house.session))
        assert await house.runner.cancel(house.session)
        assert not pending(house.log.read(house.session))
        assert (await house.ask("Go on.")).data["answer"] == "Fine."
        assert not done


async def test_two_calls_are_asked_about_at_once(tmp_path: Path) -> None:
    """One slow decision holds up neither the other question nor a call that needs none."""
    (put, done), (look, _) = made("put"), made("look", "read")
    step = calls(call("put", 1, text="a"), call("put", 2, text="b"), call("look", 3))
    async with playing(tmp_path, (put, look), [step, says("Done.")]) as (house, model):
        await house.runner.start(house.session, "Do it.", mode="agent")
        await house.event("approval_requested", 2)
        assert (await house.event("tool_result")).data["call_id"] == "call-3"
        house.runner.approvals.answer(house.session, "call-2", "once")
        house.runner.approvals.answer(house.session, "call-1", "deny")
        await house.runner.wait(house.session)
        results = [m for m in model.requests[1].messages if m.role == "tool"]
        assert [m.tool_call_id for m in results] == ["call-1", "call-2", "call-3"]
        assert [call["text"] for call in done] == ["b"]


NATIVE = Capabilities(native_search=True, tools_with_native_search=True)


async def test_reviewed_queries_take_the_local_path(tmp_path: Path) -> None:
    """What a provider searches by itself cannot be seen first: the turn says so and asks."""
    save_policy(tmp_path, Policy(review_queries=True))
    app = SearchApp({"/api/web-search": found("https://a.example/")})
    steps = [calls(call("web_search", query="tides")), says("So.")]
    async with playing(tmp_path, (), steps, can=NATIVE, app=app) as (house, model):
        asked = await house.decide("once", {"query": "high water"}, mode="ask", search="native")
        assert (asked.data["name"], asked.data["arguments"]) == ("web_search", {"query": "tides"})
        searched = [asked["query"] for path, asked in app.requests if path == "/api/web-search"]
        assert searched == ["high water"]
        assert all(r.native_search is None for r in model.requests)
        assert "native_search_held_back" in [
            e.data["code"] for e in house.log.read(house.session) if e.type == "notice"
        ]
        assert house.log.last_event(house.session).data["search_path"].startswith("local")


async def test_the_switch_holds_from_the_next_request(tmp_path: Path) -> None:
    """Switched off in the middle of a turn: the next request holds no search of the provider."""
    look, _ = made("look", "read")
    steps = [calls(call("look")), says("So.")]
    async with playing(tmp_path, (look,), steps, can=NATIVE) as (house, model):
        real = model.stream

        async def stream(request: Request) -> Any:
            async for event in real(request):
                if len(model.requests) == 1:
                    house.log.update_session(house.session, search="off")
                yield event

        model.stream = stream  # type: ignore[method-assign]
        await house.ask("Tides?", search="native")
        assert [r.native_search is None for r in model.requests] == [False, True]
