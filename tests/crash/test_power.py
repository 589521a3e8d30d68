"""The power fails at any moment: what was acknowledged is on the disk, and the rest goes on."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import DELTAS, Event
from searchloop.agent.log.leases import BEAT, Leases
from tests.crash.disk import Disk, Op
from tests.crash.power import leave
from tests.crash.working import Working


@dataclass(frozen=True)
class Told:
    """A mark: these events were stored. With `sure` these, and all before, are there to stay."""

    session: str = ""
    events: tuple[Event, ...] = ()
    sure: bool = False


class MarkingLog(EventLog):
    """A log that marks on a disk what it promises, and whose file is tidied up often."""

    def __init__(self, path: Path, disk: Disk) -> None:
        super().__init__(path)
        self._disk = disk
        self.leases = MarkingLeases(self._db, disk)
        self._db._write.execute("PRAGMA wal_autocheckpoint = 25")  # type: ignore[attr-defined]

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        done = super().append_all(writes)
        for write, stored in zip(writes, done, strict=True):
            if not isinstance(stored, Conflict):
                kept = tuple(event for event in stored if event.type not in DELTAS)
                self._disk.mark(Told(write.session, kept, write.durable))
        return done


class MarkingLeases(Leases):
    """Leases whose beat is a promise too."""

    def __init__(self, db: Any, disk: Disk) -> None:
        super().__init__(db)
        self._disk = disk

    def beat(self, owner: str) -> dict[str, int]:
        """See Leases."""
        held = super().beat(owner)
        self._disk.mark(Told(sure=True))
        return held


async def first_life(machine: Working) -> None:
    """Questions with a search, an approval and a saved file, and a long answer between beats."""
    user = asyncio.create_task(machine.says_yes())
    for n in range(3):
        await machine.ask(f"question {n}", approve="ask")
    user.cancel()
    log, beats = machine.log, machine.log.leases.beat
    other = log.create_session(model="m").id
    lease = log.leases.claim(other, "slow run", "somebody")
    log.append(other, [("user_message", {"text": "slow"})], durable=True)
    for n in range(40):
        log.append(other, [("text_delta", {"text": f"{n} " * 200})])
        if n % 8 == 7:
            beats("somebody")
    log.leases.release(lease)
    await machine.close()


@cache
def recorded() -> tuple[str, Sequence[Op]]:
    """The session, and all that the files of two lives of a store were told."""
    with tempfile.TemporaryDirectory() as folder, Disk() as disk:
        home = Path(folder)
        machine = Working(home, lambda path: MarkingLog(path, disk))
        asyncio.run(first_life(machine))
        again = Working(home, lambda path: MarkingLog(path, disk), machine.session)
        asyncio.run(again.ask("again"))
        return machine.session, list(disk.record)


def told(record: Sequence[Op]) -> tuple[dict[str, list[Event]], dict[str, int]]:
    """The events of each session, in order, and the last one that was promised to stay."""
    events: dict[str, list[Event]] = {}
    sure: dict[str, int] = {}
    for note in (op.note for op in record if op.kind == "mark"):
        if note.events:
            events.setdefault(note.session, []).extend(note.events)
        if note.sure:
            sure = {name: stored[-1].seq for name, stored in events.items()}
    return events, sure


def power_fails(cut: int, luck: random.Random) -> None:
    """What is found then is a whole store that ends where a transaction did, and goes on."""
    session, record = recorded()
    everything, sure = told(record)[0], told(record[:cut])[1]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        leave(record[:cut], home, luck)
        log = EventLog(home / "sessions.sqlite3")
        for name, events in everything.items():
            last = log.last_seq(name) or 0
            assert last >= sure.get(name, 0), f"{name}: {last} of {sure[name]} that were promised"
            kept = [e for e in log.read(name) if e.type not in DELTAS]
            assert kept == [e for e in events if e.seq <= last and e.type not in DELTAS]
        there = any(kept.id == session for kept in log.sessions())
        with log._db.transaction() as db:
            db.execute("UPDATE runs SET beat = -1e9")  # the machine was started again
        log.close()
        machine = Working(home, session=session if there else None)
        asyncio.run(lives_on(machine))
        assert machine.saved <= 1
        assert check(home / "sessions.sqlite3") == []


async def lives_on(machine: Working) -> None:
    """The next message is accepted."""
    async with asyncio.timeout(200):
        user = asyncio.create_task(machine.says_yes())
        await machine.goes_on()
        user.cancel()
        await machine.close()


@pytest.mark.parametrize(
    ("seed", "times"),
    [(0, 40), *(pytest.param(n, 100, marks=pytest.mark.torture) for n in range(1, 11))],
)
def test_the_power_fails_at_any_moment(seed: int, times: int) -> None:
    """Of what was written and not synced anything may be gone or torn; of promises, nothing."""
    luck = random.Random(seed)
    length = len(recorded()[1])
    for _ in range(times):
        cut = luck.randrange(length + 1)
        at = luck.getrandbits(32)
        try:
            power_fails(cut, random.Random(at))
        except Exception as error:
            raise AssertionError(f"cut at {cut} of {length}, {at}") from error


def test_an_answer_loses_less_than_a_second() -> None:
    """What a run wrote is promised to stay at each of its holder's beats."""
    assert BEAT < 1
