"""Two servers, one PostgreSQL: taking over, fencing out, stopping and following across them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from tests.chaos.dialects import load
from tests.crash.hosts import Host, Watcher
from tests.fakes import FakeServer, Received, Reply
from tests.postgres import Postgres
from tests.waiting import until

pytestmark = pytest.mark.integration


@dataclass
class Ground:
    """A store, a model whose first answer never ends, and what a server needs to use both."""

    url: str
    model: FakeServer
    settings: dict[str, str]
    log: EventLog
    session: str

    def host(self, home: Path, prefix: Sequence[str] = ()) -> Host:
        """One more server."""
        home.mkdir()
        return Host(home, prefix, **self.settings)

    def ends(self) -> list[Any]:
        """The data of each `run_finished`."""
        events = self.log.read(self.session)
        return [event.data for event in events if event.type == "run_finished"]


@pytest.fixture
def ground(postgres: Postgres) -> Iterator[Ground]:
    """One session; asked the first time, the model stalls in mid-sentence."""
    dialect, url = load("openai-chat"), postgres.url()

    def reply(received: Received) -> Reply:
        first = len(model.requests) == 1
        pieces = dialect.text("High water is ", "at 07:40.")
        headers = {"content-type": dialect.content_type}
        return Reply(pieces[:2], headers=headers, end="stall") if first else Reply(pieces)

    model = FakeServer(reply)
    with model:
        log = EventLog(url)
        name = f"{dialect.name}:{dialect.models[0]}"
        session = log.create_session(model=name).id
        settings = {"SEARCHLOOP_DATABASE_URL": url, **dialect.settings(model.url)}
        yield Ground(url, model, settings, log, session)
        log.close()
    assert check(url) == []


def talking(ground: Ground) -> None:
    """Until the first half of the answer is there."""
    until(lambda: any(e.type == "text_delta" for e in ground.log.read(ground.session)))


def test_a_dead_servers_run_goes_on_elsewhere(ground: Ground, tmp_path: Path) -> None:
    """Killed with -9 in mid-sentence: the other server ends the answer, and shows all of it."""
    with ground.host(tmp_path / "a") as a, ground.host(tmp_path / "b") as b:
        watcher = Watcher(b, ground.session)
        a.start(ground.session)
        talking(ground)
        a.signal(signal.SIGKILL)
        until(ground.ends)
        (end,) = ground.ends()
        assert (end["reason"], end["answer"]) == ("stop", "High water is at 07:40.")
        until(lambda: "run_finished" in watcher.kinds())
        assert watcher.kinds().count("user_message") == 1
        assert "run_resumed" in watcher.kinds()


def test_a_frozen_server_is_fenced_out(ground: Ground, tmp_path: Path) -> None:
    """Stopped in its tracks: its lease ends and another goes on; woken, it writes nothing more."""
    with ground.host(tmp_path / "a") as a, ground.host(tmp_path / "b"):
        a.start(ground.session)
        talking(ground)
        a.signal(signal.SIGSTOP)
        until(ground.ends)
        last = ground.log.last_seq(ground.session)
        a.signal(signal.SIGCONT)
        until(lambda: ground.model.requests[0].gone.is_set())  # it gave up its own answer
        assert a.ask("GET", "/api/health")[0] == 200
        assert ground.log.last_seq(ground.session) == last
        assert [end["answer"] for end in ground.ends()] == ["High water is at 07:40."]
        a.start(ground.session, "and now?")
        until(lambda: len(ground.ends()) == 2)


def test_a_server_that_is_told_to_stop_hands_over(ground: Ground, tmp_path: Path) -> None:
    """An update of one machine after the other interrupts no answer: the lease is given up and not
    waited for, who followed on the one goes on at the other, and nothing counts as a crash.
    """
    with ground.host(tmp_path / "a") as a, ground.host(tmp_path / "b") as b:
        leaving = Watcher(a, ground.session)
        a.start(ground.session)
        talking(ground)
        a.signal(signal.SIGTERM)
        until(ground.ends)
        assert [end["reason"] for end in ground.ends()] == ["stop"]
        assert a.process.wait(90) == 0
        events = ground.log.read(ground.session)
        assert [e.data["takeovers"] for e in events if e.type == "run_resumed"] == [0]
        assert ground.model.requests[0].gone.is_set()
        assert len(ground.model.requests) == 2
        last = leaving.seen[-1]["seq"]
        rest = list(take_until_end(b, ground.session, last))
        assert [e["seq"] for e in rest] == [e.seq for e in events if e.seq > last]


def test_the_database_goes_away_and_comes_back(tmp_path: Path) -> None:
    """At the start and in the middle: meanwhile every request gets a sentence; afterwards the
    answer is whole, without restart.
    """
    dialect = load("openai-chat")
    pieces = dialect.text("High water is ", "at 07:40.")
    with Postgres() as server:
        url = server.url()

        def reply(received: Received) -> Reply:
            if len(model.requests) == 1:
                server.stop()
            return Reply(pieces, headers={"content-type": dialect.content_type})

        model = FakeServer(reply)
        settings = {"SEARCHLOOP_DATABASE_URL": url, **dialect.settings(model.url)}
        (tmp_path / "a").mkdir()
        server.stop()
        with model, Host(tmp_path / "a", **settings) as host:
            status, told = host.ask("GET", "/api/sessions")
            assert (status, told["error"]["code"]) == (503, "store_down")
            assert "does not answer" in (tmp_path / "a" / "errors").read_text()
            server.start()
            until(lambda: host.ask("GET", "/api/sessions")[0] == 200)
            _, session = host.ask("POST", "/api/sessions", {"model": "openai-chat:tidewater-8b"})
            host.start(session["id"])
            until(lambda: host.ask("GET", "/api/sessions")[0] == 503)
            status, told = host.ask("GET", "/api/sessions")
            assert (status, told["error"]["code"]) == (503, "store_down")
            assert host.ask("GET", "/api/health")[0] == 200
            server.start()
            until(lambda: not running(host, session["id"]), 60)
            last = list(take_until_end(host, session["id"]))[-1]
            assert (last["reason"], last["answer"]) == ("stop", "High water is at 07:40.")
        assert check(url) == []


def running(host: Host, session: str) -> bool:
    """Whether the session is still being answered, as far as can be told."""
    status, told = host.ask("GET", f"/api/sessions/{session}")
    return status != 200 or bool(told["running"])


def take_until_end(host: Host, session: str, after: int = 0) -> Iterator[dict[str, Any]]:
    """The events up to the end of the run."""
    for event in host.events(session, after):
        yield event
        if event["type"] == "run_finished":
            return
