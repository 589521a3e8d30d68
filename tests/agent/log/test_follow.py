"""Followers of a session on each store: what is there, then what comes, without gap or double."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event, message_data
from searchloop.agent.log.leases import Follower
from searchloop.agent.types import Message, Usage
from tests.waiting import eventually

END = ("notice", {"code": "end"})
SAID = (
    "message",
    message_data(Message("assistant", "x"), step=1, usage=Usage(), stop_reason="stop"),
)
DELTA = ("text_delta", {"text": "x"})
Op = tuple[str, int]


async def follow_to_the_end(log: EventLog, session: str, after: int = 0) -> list[Event]:
    """Everything up to the event END."""
    got: list[Event] = []
    async with aclosing(log.follow(session, after)) as batches:
        async for batch in batches:
            got += batch
            if got[-1].data == END[1]:
                return got
    return got


async def joined(log: EventLog, session: str, count: int = 1) -> None:
    """Until so many follow."""
    await eventually(lambda: len(log._followers.get(session, ())) == count)


def check(got: list[Event], log: EventLog, session: str, after: int = 0) -> None:
    """Numbers grow, nothing that is stored was missed, and no delta came after its message."""
    numbers = [event.seq for event in got]
    assert numbers == sorted(set(numbers))
    missed = [e for e in log.read(session, after) if e.seq not in set(numbers)]
    assert not missed


async def play(ops: list[Op], log: EventLog, other: EventLog, session: str) -> list[Event]:
    """Appends here, on threads and in another process, while one follower reads when let."""
    may_read = asyncio.Event()
    may_read.set()
    got: list[Event] = []

    async def read() -> None:
        async with aclosing(log.follow(session)) as batches:
            async for batch in batches:
                got.extend(batch)
                if got[-1].data == END[1]:
                    return
                await may_read.wait()

    reader = asyncio.create_task(read())
    pending = []
    for kind, count in ops:
        if kind == "here":
            log.append(session, [DELTA] * count)
        elif kind == "message":
            log.append(session, [SAID])
        elif kind == "thread":
            pending.append(asyncio.create_task(asyncio.to_thread(log.append, session, [DELTA])))
        elif kind == "process":
            other.append(session, [("notice", {})] * count)
        elif kind == "stall":
            may_read.clear()
        else:
            may_read.set()
            for _ in range(count):
                await asyncio.sleep(0)
    await asyncio.gather(*pending)
    may_read.set()
    log.append(session, [END])
    await asyncio.wait_for(reader, 60)
    return got


OPS = st.tuples(
    st.sampled_from(["here", "message", "thread", "process", "stall", "read"]), st.integers(1, 120)
)


@given(st.lists(OPS, max_size=12))
def test_no_gap_and_no_double_whoever_appends(ops: list[Op]) -> None:
    """Any interleaving of writers and a reader that lags: each stored event comes exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        log, other = (EventLog(Path(folder) / "s.sqlite3") for _ in range(2))
        session = log.create_session(model="m").id
        got = asyncio.run(play(ops, log, other, session))
        check(got, log, session)
        log.close()
        other.close()


async def test_a_follower_that_lags_holds_little(log: EventLog, session: str) -> None:
    """However much comes, the queue is bounded, and the reader still gets all of it."""
    async with aclosing(log.follow(session)) as batches:
        log.append(session, [("notice", {})])
        assert len(await anext(batches)) == 1
        for _ in range(20):
            log.append(session, [("notice", {})] * 100)
        (follower,) = log._followers[session]
        assert len(follower._queue) <= Follower.LIMIT
        got = 0
        while got < 2000:
            got += len(await anext(batches))
        assert got == 2000


async def test_a_number_from_the_future_is_no_trap(log: EventLog, session: str) -> None:
    """A client that claims to have seen more than there is still gets what comes next."""
    log.append(session, [("notice", {})] * 3)
    reading = asyncio.create_task(follow_to_the_end(log, session, after=999))
    await joined(log, session)
    log.append(session, [END])
    assert [e.seq for e in await asyncio.wait_for(reading, 60)] == [4]


async def test_deleting_ends_its_followers(log: EventLog, session: str) -> None:
    """All followers of the session end, at once, also when another thread deletes it."""
    readers = [asyncio.create_task(follow_to_the_end(log, session)) for _ in range(3)]
    await joined(log, session, 3)
    await asyncio.to_thread(log.delete_session, session)
    assert await asyncio.wait_for(asyncio.gather(*readers), 60) == [[], [], []]
    assert not log._followers
