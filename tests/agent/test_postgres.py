"""PostgreSQL out of reach: nothing is written twice, and it goes on by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from agent.errors import StoreError, UnsureError
from agent.events import Event
from agent.log import EventLog
from agent.store.notices import Notices
from agent.store.postgres_append import CHANNEL
from agent.upkeep import check
from tests.crash.working import Working
from tests.postgres import Postgres
from tests.waiting import until
from tests.wire import Wire

pytestmark = pytest.mark.integration

APPEND = b"INSERT INTO events"
NOTICE = ("notice", {"text": "x"})


def through(wire: Wire, url: str) -> str:
    """The same address by way of the wire."""
    head, _, name = url.rpartition("/")
    return f"{head.rpartition(':')[0]}:{wire.port}/{name}"


def test_an_answer_that_is_lost_is_looked_up(postgres: Postgres) -> None:
    """The events are there, the connection is not: the append knows, and they are there once."""
    url = postgres.url()
    with Wire(postgres.port, APPEND) as wire, closing(EventLog(through(wire, url))) as log:
        session = log.create_session(model="m").id
        log.append(session, [NOTICE])
        wire.lose(1)
        stored = log.append(session, [NOTICE, ("text_delta", {"text": "y"})])
        assert wire.lost.is_set()
        assert [event.seq for event in stored] == [2, 3]
        assert [event.seq for event in log.read(session)] == [1, 2, 3]
        wire.lose(1, dead=True)
        with pytest.raises(UnsureError) as caught:
            log.append(session, [NOTICE])
        assert caught.value.remedy
        wire.mend()
        assert [event.seq for event in log.append(session, [NOTICE])] == [5]


def test_a_listener_notices_that_nothing_comes_through(postgres: Postgres) -> None:
    """A connection that is dead and does not say so: it listens on another, and lost news are told
    as such.
    """
    import psycopg

    heard: list[Any] = []

    def tell(text: str = "") -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))

    url = postgres.url()
    with Wire(postgres.port, APPEND) as wire:
        there = through(wire, url)
        notices = Notices(lambda: psycopg.connect(there, autocommit=True), tell, "us", 0.3)
        notices.begin(heard.append)
        until(lambda: {} in heard)
        wire.hush()
        heard.clear()
        until(lambda: {} in heard)
        tell('{"session": "s"}')
        until(lambda: {"session": "s"} in heard)
        notices.end()


class Mending(EventLog):
    """A log whose wire is whole again as soon as an append has given up."""

    def __init__(self, url: str, wire: Wire) -> None:
        super().__init__(url)
        self._wire = wire

    def append(self, *args: Any, **kwargs: Any) -> list[Event]:
        """See EventLog."""
        try:
            return super().append(*args, **kwargs)
        except UnsureError:
            self._wire.mend()
            raise


async def breaks(home: Path, url: str, wire: Wire, number: int, *, dead: bool) -> bool:
    """A run of which one append's answer is lost, and what comes after; False if it was none."""
    machine = Working(home, lambda path: Mending(url, wire))
    wire.lose(number, dead=dead)
    with suppress(UnsureError):
        await machine.ask("hi")
    wire.mend()
    hit = wire.lost.is_set()
    await machine.goes_on()
    events = machine.log.read(machine.session)
    await machine.close()
    kinds = Counter(event.type for event in events)
    questions = [event.data["text"] for event in events if event.type == "user_message"]
    assert questions in (["hi", "again"], ["again"])
    assert kinds["run_started"] == kinds["run_finished"] == len(questions)
    for name in ("tool_call", "tool_started", "tool_result", "message"):
        own = [
            e.data.get("call_id") or (e.data["step"], e.data["text"])
            for e in events
            if e.type == name
        ]
        assert len(own) == len(set(own)), name
    assert machine.saved <= 1
    return hit


@pytest.mark.parametrize(("dead", "numbers"), [(False, range(1, 30)), (True, (1, 3, 5))])
def test_no_lost_answer_doubles_anything(
    tmp_path: Path, postgres: Postgres, dead: bool, numbers: range
) -> None:
    """Whichever append of a run it is, and whether the server can be asked or not."""
    url = postgres.url()
    with Wire(postgres.port, APPEND) as wire:
        hits = 0
        for number in numbers:
            home = tmp_path / str(number)
            home.mkdir()
            hit = asyncio.run(breaks(home, through(wire, url), wire, number, dead=dead))
            hits += hit
            if not hit:
                break
    assert hits >= 3
    assert check(url) == []


def test_all_connections_are_taken(postgres: Postgres) -> None:
    """It says so, and works as soon as one is free."""
    with closing(EventLog(postgres.url())) as log:
        session = log.create_session(model="m").id
        pool = log._db._pool  # type: ignore[attr-defined]
        with ExitStack() as stack:
            for _ in range(pool.max_size):
                stack.enter_context(pool.connection())
            with pytest.raises(StoreError) as caught:
                log.append(session, [NOTICE])
            assert caught.value.code == "store_busy"
        assert log.append(session, [NOTICE])[0].seq == 1
