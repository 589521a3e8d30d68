"""The agent as a library: answers, streams, threads, and closing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import searchloop as package
from searchloop import Agent
from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.errors import AgentError, ConfigError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.tools import tool
from searchloop.agent.types import Citation, Limits, Mark, TextDelta
from tests.agent.scripted import (
    Hold,
    Scripted,
    SearchApp,
    Step,
    call,
    calls,
    found,
    page,
    says,
    settings,
)
from tests.fakes import FakeServer, json_reply


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


def test_a_question_is_answered(make: Made) -> None:
    """Text, reason, citations, sources, usage and path in one value."""
    app = SearchApp({"/api/web-search": found("https://a.example/")})
    steps = [calls(call("web_search", query="x")), says("Wet [1].")]
    answer = make(*steps, search_backend=app).ask("Is water wet?", search="local")
    assert (answer.text, answer.reason, answer.search_path) == ("Wet [1].", "stop", "local:tin")
    assert answer.citations == (
        Citation(
            1,
            "https://a.example/",
            "Page https://a.example/",
            marks=(Mark((4, 7), verdict="unread"),),
        ),
    )
    assert [s.state for s in answer.sources] == ["cited"]
    assert answer.usage.searches == 1
    assert answer.error is None


def test_a_session_goes_on(make: Made) -> None:
    """The same session remembers; without one each question begins a new one."""
    agent = make(says("One."), says("Two."), says("Three."))
    first = agent.ask("a")
    assert agent.ask("b", session=first.session_id).session_id == first.session_id
    assert agent.ask("c").session_id != first.session_id
    assert agent.log.session(first.session_id).messages == 2


def test_events_as_they_happen(make: Made) -> None:
    """A stream has every event once, in order, and ends with `run_finished`."""
    events = list(make(says("It is noon.")).stream("What time is it?"))
    assert [e.seq for e in events] == sorted({e.seq for e in events})
    assert events[0].type == "user_message"
    assert [e.type for e in events][-2:] == ["message", "run_finished"]


def test_a_quick_answer_is_streamed_whole(make: Made) -> None:
    """Pieces of an answer that is over at once are all in the stream: nobody listens too late."""
    events = list(make(says("It is noon.")).stream("What time is it?"))
    pieces = [e.data["text"] for e in events if e.type == "text_delta"]
    assert "".join(pieces) == "It is noon."


def test_only_this_turns_events(make: Made) -> None:
    """The stream of a second turn begins with its own question."""
    agent = make(says("One."), says("Two."))
    session = agent.ask("a").session_id
    events = list(agent.stream("b", session=session))
    assert events[0].data == {"text": "b"}


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


def test_what_cannot_be_sent_is_raised(make: Made) -> None:
    """Bad input is an error of `ask` and of `stream` itself, before any event."""
    agent = make(says("One."))
    with pytest.raises(ConfigError):
        agent.ask("")
    with pytest.raises(ConfigError):
        agent.stream("hi", mode="dance")
    with pytest.raises(Conflict):
        agent.ask("hi", session="nowhere")


def test_a_refused_question_leaves_no_session(make: Made) -> None:
    """Going on with the last session never means one in which nothing was said."""
    agent = make(says("One."))
    kept = agent.ask("a").session_id
    with pytest.raises(ConfigError):
        agent.ask("b", model="nobody:x")
    with pytest.raises(ConfigError):
        agent.stream("b", model="nobody:x")
    with pytest.raises(ConfigError):
        agent.ask("", session=kept)
    assert [s.id for s in agent.log.sessions()] == [kept]


def test_many_threads_may_ask(make: Made) -> None:
    """Twenty threads, one agent: each gets its own answer."""
    agent = make(*[says(f"Answer {n}.") for n in range(20)])
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(agent.ask("hi").text)) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(answers) == sorted(f"Answer {n}." for n in range(20))


def test_own_tools_and_limits(make: Made) -> None:
    """The caller's tools are called like ours, and limits hold."""

    @tool
    def double(n: int) -> int:
        """Twice the number."""
        return 2 * n

    agent = make(calls(call("double", n=21)), says("42."), tools=[double])
    answer = agent.ask("Twice 21?", limits=Limits(steps=1))
    assert (answer.text, answer.reason) == ("42.", "limit")
    results = [e.data for e in agent.log.read(answer.session_id) if e.type == "tool_result"]
    assert [r["content"] for r in results] == ["42"]


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


def test_closing_ends_what_other_threads_wait_for(make: Made) -> None:
    """A thread that reads a stream, and one that asks, come back when the agent is closed."""
    holds = [Hold(), Hold()]
    agent = make(*[[hold] for hold in holds])
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
    assert ended == ["cancelled", "cancelled"]


def test_a_closed_agent_says_so(make: Made) -> None:
    """Asking it is an error in words, and closing it twice is none."""
    agent = make(says("One."))
    agent.close()
    agent.close()
    with pytest.raises(AgentError):
        agent.ask("hi")
    with pytest.raises(ConfigError, match="closed"):
        agent.models()


def test_a_stream_may_be_left_after_its_agent(make: Made) -> None:
    """An error in a loop over it closes the agent first; the generator ends without a word."""
    with make([Hold()]) as agent:
        events = agent.stream("hi")
        next(events)
    events.close()


def test_a_log_that_was_handed_in_stays_open(make: Made, tmp_path: Path) -> None:
    """Who opened it closes it."""
    log = EventLog(tmp_path / "own.sqlite3")
    with make(says("One."), log=log) as agent:
        agent.ask("hi")
    assert len(log.sessions()) == 1
    log.create_session(model="m")
    log.close()


def test_without_a_backend_search_is_an_honest_error(tmp_path: Path) -> None:
    """The model is told that there is no search backend, and so is the user."""
    model = Scripted([calls(call("web_search", query="x")), says("Nothing searched.")])
    with BareAgent(settings(tmp_path), search_backend=None, providers=[model]) as agent:
        events = {e.type: e.data for e in agent.stream("hi", search="local")}
    assert events["search_finished"]["status"] == "error"
    assert "There is no search backend" in events["tool_result"]["content"]


def test_a_backend_elsewhere_is_asked_over_http(make: Made) -> None:
    """SEARCH_BACKEND_URL: the same contract over the wire."""
    app = {"/api/engines": {"engines": []}, "/api/web-search": found("https://a.example/")}
    app["/api/forget"] = {"pages": 0, "kept": 0}
    with FakeServer(lambda received: json_reply(app[received.path])) as server:
        agent = make(
            calls(call("web_search", query="x")),
            says("Wet [1]."),
            values={"SEARCH_BACKEND_URL": server.url + "/"},
        )
        assert agent.ask("hi", search="local").search_path == "local:tin"
        assert [r.path for r in server.requests] == ["/api/engines", "/api/web-search"]
        chat = agent.log.sessions()[0].id
        assert server.requests[1].json == {"query": "x", "max_results": 6, "chat": chat}
        agent.delete(chat)
        assert (server.requests[2].path, server.requests[2].json) == ("/api/forget", {"chat": chat})
        assert agent.log.sessions() == []


def test_a_backend_that_is_not_there(make: Made) -> None:
    """Nothing listens: the turn goes on and says what to start."""
    with FakeServer([]) as server:
        url = server.url
    steps = [calls(call("web_search", query="x")), says("Without the web."), says("Page next.")]
    agent = make(*steps, values={"SEARCH_BACKEND_URL": url})
    answer = agent.ask("hi", search="local")
    assert answer.text == "Without the web."
    events = {e.type: e.data for e in agent.log.read(answer.session_id)}
    assert "search-backend serve" in events["tool_result"]["content"]


def test_pages_are_read_through_the_backend(make: Made) -> None:
    """What the user names may be opened, and quotes from it are checked."""
    app = SearchApp({"/api/open-page": page("The bridge opened in 1932, they say.")})
    steps = [
        calls(call("open_page", url="https://a.example/")),
        says('It says "bridge opened in 1932" [1].'),
    ]
    answer = make(*steps, search_backend=app).ask("Read https://a.example/", search="local")
    assert [(c.n, c.verified) for c in answer.citations] == [(1, True)]
    assert [s.state for s in answer.sources] == ["cited"]


def test_importing_the_package_costs_nothing() -> None:
    """`import searchloop` loads no network, database or web code; the names come on first use."""
    heavy = "asyncio", "sqlite3", "aiohttp", "httpx2", "flask"
    code = f"import sys, searchloop; print([m for m in {heavy!r} if m in sys.modules])"
    root = Path(__file__).parent.parent.parent
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"
    assert issubclass(package.Agent, Agent)
    assert not hasattr(package, "Nothing")


def test_a_question_loads_no_part_of_the_server() -> None:
    """`searchloop ask` loads neither what counts for a scraper nor the search backend."""
    heavy = "prometheus_client", "flask", "uvicorn", "searchloop.search_backend", "zoneinfo"
    code = f"import sys, searchloop.cli.ask; print([m for m in {heavy!r} if m in sys.modules])"
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
