"""PostgreSQL out of reach: nothing is written twice, and it goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import pytest

from searchloop.agent.errors import StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.events import Event
from tests.crash.working import Working, check_once
from tests.postgres import Postgres
from tests.waiting import eventually
from tests.wire import Wire

pytestmark = pytest.mark.integration

APPEND = b"INSERT INTO events"
NOTICE = ("notice", {"text": "x"})


def through(wire: Wire, url: str) -> str:
    """The same address by way of the wire."""
    head, _, name = url.rpartition("/")
    return f"{head.rpartition(':')[0]}:{wire.port}/{name}"


async def breaks(home: Path, url: str, wire: Wire, arm: Callable[[], None]) -> bool:
    """A run in which the wire breaks, and what comes after; False if it did not break.

    Who follows meanwhile from another machine gets each event once, in order, and misses none.
    """
    log = EventLog(url)
    machine = Working(home, lambda path: log)
    other = EventLog(url.replace(f":{wire.port}/", f":{wire.server}/"))
    followed: list[Event] = []
    following = asyncio.create_task(follow(other, machine.session, followed))
    arm()
    with suppress(StoreError):
        await machine.ask("hi")
    wire.mend()
    hit = wire.lost.is_set()
    await machine.goes_on()
    events = machine.log.read(machine.session)
    await machine.close()
    await eventually(lambda: followed and followed[-1].seq == events[-1].seq)
    following.cancel()
    other.close()
    assert [e.seq for e in followed] == sorted({e.seq for e in followed})
    assert [e for e in events if e not in followed] == []
    check_once(events)
    assert machine.saved <= 1
    return hit


async def follow(log: EventLog, session: str, into: list[Event]) -> None:
    """Collects what a follower of the session gets."""
    async for batch in log.follow(session):
        into += batch


def cuts(folder: Path, postgres: Postgres, step: int, *, asks: bool) -> int:
    """How many cuts, one after each `step` bytes of a run, were met."""
    url, done = postgres.url(), 0
    with Wire(postgres.port, APPEND) as wire:
        while True:
            home = folder / str(done)
            home.mkdir()
            arm = partial(wire.cut, step * done + step // 2, asks=asks)
            if not asyncio.run(breaks(home, through(wire, url), wire, arm)):
                break
            done += 1
    assert check(url) == []
    return done


@pytest.mark.parametrize(
    ("asks", "step"),
    [
        (True, 2909),
        (False, 1009),
        pytest.param(True, 61, marks=pytest.mark.torture),
        pytest.param(False, 31, marks=pytest.mark.torture),
    ],
)
def test_a_connection_cut_at_any_byte(
    tmp_path: Path, postgres: Postgres, asks: bool, step: int
) -> None:
    """To the server or from it: no event is lost, doubled or out of order, for nobody."""
    assert cuts(tmp_path, postgres, step, asks=asks) > 5


def test_all_connections_are_taken(postgres: Postgres) -> None:
    """It says so, and works as soon as one is free."""
    with closing(EventLog(postgres.url())) as log:
        session = log.create_session(model="m").id
        links = log._db.connections  # type: ignore[attr-defined]
        links.patience, pool = 0.2, links.pool
        with ExitStack() as stack:
            for _ in range(pool.max_size):
                stack.enter_context(pool.connection())
            with pytest.raises(StoreError) as caught:
                log.append(session, [NOTICE])
            assert caught.value.code == "store_busy"
        assert log.append(session, [NOTICE])[0].seq == 1
