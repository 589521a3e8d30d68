"""The agent as a library: answers, streams, threads, and closing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from searchloop import Agent
from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.errors import Conflict
from searchloop.agent.log.log import EventLog
from searchloop.agent.types import Capabilities, TextDelta
from searchloop.streams import followed
from tests.agent.scripted import (
    Hold,
    Scripted,
    SearchApp,
    Step,
    call,
    calls,
    native,
    page,
    says,
    settings,
)

P, T = ParamSpec("P"), TypeVar("T")


class Made:
    """An agent on scripted parts; closed by the fixture."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.agents: list[Agent] = []

    def __call__(self, *steps: Step, values: dict[str, str] | None = None, **more: Any) -> Agent:
        own = settings(self.home, **(values or {}))
        more = {"search_backend": None, **more}
        self.agents.append(Agent(own, providers=[Scripted(steps)], **more))
        return self.agents[-1]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Made]:
    """Makes agents."""
    made = Made(tmp_path)
    yield made
    for agent in made.agents:
        agent.close()


def test_an_answer_waits_for_its_check_where_one_is_wanted(make: Made) -> None:
    """`ask` and `stream` end with the marks as the check left them, and the log keeps both."""
    url = "https://tide.example/"
    for n, options in enumerate(({"check": True}, {"check_with": "words"}, {}, {"check": False})):
        app = SearchApp({"/api/open-page": page("High water comes at noon today.")})
        steps = [native("High water comes at noon today.", url)] * 2
        searches = Capabilities(native_search=True)
        agent = Agent(
            settings(make.home / str(n)), providers=[Scripted(steps, searches)], search_backend=app
        )
        make.agents.append(agent)
        answer = agent.ask("When?", search="native", **options)
        expected = "supported" if any(options.values()) else "unread"
        assert [m.verdict for c in answer.citations for m in c.marks] == [expected]
        events = list(agent.stream("When?", search="native", **options))
        assert events[-1].type == "run_finished"
        assert events[-1].citations[0].marks[0].verdict == expected
        assert [e.url for e in events if e.type == "check"] == ([url] if expected[0] == "s" else [])


def test_leaving_a_stream_stops_the_run(make: Made) -> None:
    """Closing the iterator cancels upstream; the session is free again."""
    hold = Hold()
    agent = make([TextDelta("Half"), hold], says("Whole."))
    stream = agent.stream("a")
    session = ""
    for event in stream:
        session = session or agent.log.sessions()[0].id
        if event.type == "text_delta":
            break
    stream.close()  # type: ignore[attr-defined]
    assert hold.left.is_set()
    assert agent.log.last_event(session).data["reason"] == "cancelled"
    assert agent.ask("b", session=session).text == "Whole."


def test_a_refused_question_stops_no_answer(make: Made) -> None:
    """A question to a chat that is being answered is refused, and that answer goes on."""

    async def others(known: set[Any]) -> set[Any]:
        return asyncio.all_tasks() - known - {asyncio.current_task()}

    async def over(known: set[Any]) -> None:
        await asyncio.gather(*await others(known), return_exceptions=True)

    async def later() -> None:
        async for _ in followed(core, "c", session, {}):
            raise AssertionError

    hold = Hold()
    agent = make([TextDelta("Half"), hold])
    core, stream = agent._core, agent.stream("a")
    next(stream)
    assert hold.reached.wait(90)
    session = agent.log.sessions()[0].id
    known = core.wait(others(set()))
    with pytest.raises(Conflict, match="still answering"):
        agent.ask("b", session=session)
    with pytest.raises(Conflict, match="still answering"):
        asyncio.run(later())
    core.wait(over(known))
    assert not hold.left.is_set()
    assert agent.log.session(session).running


def test_a_stream_of_a_deleted_session_ends(make: Made) -> None:
    """Whoever reads is told that the session is gone, and does not wait for ever."""
    hold = Hold()
    agent = make([TextDelta("Half"), hold])
    stream = agent.stream("a")
    next(stream)
    assert hold.reached.wait(90)
    agent.log.delete_session(agent.log.sessions()[0].id)
    with pytest.raises(Conflict, match="no session"):
        list(stream)


class Slow(EventLog):
    """A log on a disk that takes its time: whoever follows a run comes last."""

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Lets all others go first."""
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().aside(work, *args, **kwargs)


def test_closing_ends_what_other_threads_wait_for(make: Made) -> None:
    """A thread that reads a stream, and one that asks, get the end of their run at the close."""
    holds = [Hold(), Hold()]
    agent = make(*[[hold] for hold in holds], store=(log := Slow(make.home / "chats.db")))
    ended: list[str] = []
    threads = [
        threading.Thread(target=lambda: ended.append(list(agent.stream("a"))[-1].data["reason"])),
        threading.Thread(target=lambda: ended.append(agent.ask("b").reason)),
    ]
    for thread in threads:
        thread.start()
    assert all(hold.reached.wait(90) for hold in holds)
    agent.close()
    for thread in threads:
        thread.join(90)
    log.close()
    assert ended == ["cancelled", "cancelled"]


def test_a_stream_may_be_left_after_its_agent(make: Made) -> None:
    """An error in a loop over it closes the agent first; the generator ends without a word."""
    with make([Hold()]) as agent:
        events = agent.stream("hi")
        next(events)
    events.close()


def test_without_a_backend_search_is_an_honest_error(tmp_path: Path) -> None:
    """The model is told that there is no search backend, and so is the user."""
    model = Scripted([calls(call("web_search", query="x")), says("Nothing searched.")])
    with BareAgent(settings(tmp_path), search_backend=None, providers=[model]) as agent:
        events = {e.type: e.data for e in agent.stream("hi", search="local")}
    assert events["search_finished"]["status"] == "error"
    assert "There is no search backend" in events["tool_result"]["content"]


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("searchloop", ("asyncio", "sqlite3", "aiohttp", "httpx2", "flask")),
        (
            "searchloop.cli.ask",
            ("prometheus_client", "flask", "uvicorn", "searchloop.search_backend", "zoneinfo"),
        ),
    ],
)
def test_an_import_loads_nothing_heavy(module: str, heavy: tuple[str, ...]) -> None:
    """`import searchloop` loads no network, database or web code, and `searchloop ask` neither
    what counts for a scraper nor the search backend.
    """
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_a_ctrl_c_that_comes_as_one_falls_asleep_is_seen(make: Made) -> None:
    """A signal handled by another thread wakes nobody: the wait has to look by itself."""
    hold = Hold()
    agent = make([TextDelta("It begins"), hold])
    shown = threading.Event()
    in_time: list[bool] = []

    def interrupt() -> None:
        shown.wait()
        signal.raise_signal(signal.SIGINT)  # in this thread, so that the main one sleeps on
        in_time.append(hold.left.wait(60))
        if not in_time[0]:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()

    def show() -> None:
        for event in agent.stream("Speak"):
            if event.type == "text_delta":
                shown.set()

    with pytest.raises(KeyboardInterrupt):
        show()
    thread.join()
    assert in_time == [True]
