"""A disk that fails at any moment of a run: nothing broken, and all goes on when it works."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchloop.agent.errors import AgentError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import DELTAS, Event
from tests.crash.disk import Disk
from tests.crash.working import Working

CHANGES = ("write", "truncate", "sync")
EVERYTHING = (*CHANGES, "open", "read", "delete", "lock")
READING = {
    "read": sqlite3.SQLITE_IOERR_READ,
    "write": sqlite3.SQLITE_IOERR_WRITE,
    "sync": sqlite3.SQLITE_IOERR_FSYNC,
    "truncate": sqlite3.SQLITE_IOERR_TRUNCATE,
    "delete": sqlite3.SQLITE_IOERR_DELETE,
    "open": sqlite3.SQLITE_CANTOPEN,
    "lock": sqlite3.SQLITE_IOERR_LOCK,
}


@dataclass
class Fault:
    """From the `fatal`th operation of these kinds on, or at that one alone, this code."""

    kinds: tuple[str, ...]
    code: int | None  # None: what says that this kind of operation failed
    lasting: bool
    fatal: int = 0
    met: int = 0
    hit: bool = False

    def __call__(self, kind: str) -> int:
        """See Disk."""
        if kind not in self.kinds:
            return 0
        self.met += 1
        due = self.met >= self.fatal if self.lasting else self.met == self.fatal
        if not (self.fatal and due):
            return 0
        self.hit = True
        return READING[kind] if self.code is None else self.code

    def is_gone(self) -> None:
        """The cause is gone."""
        self.fatal = 0


class NoMoreFiles(Fault):
    """From the `fatal`th operation on this process can open nothing: as the system says it."""

    def __call__(self, kind: str) -> int:
        """See Disk."""
        self.met += 1
        if self.met == self.fatal:
            self.hit = True
            _limit(_TAKEN)
        return 0

    def is_gone(self) -> None:
        """See Fault."""
        super().is_gone()
        _limit(_FILES)


_TAKEN = 3  # by the standard streams; with less even `poll` fails, in every thread
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _limit(files: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


FAULTS = {
    "full": Fault(CHANGES, sqlite3.SQLITE_FULL, True),
    "failing": Fault(EVERYTHING, None, True),
    "failed once": Fault(EVERYTHING, None, False),
    "locked": Fault(("lock",), sqlite3.SQLITE_BUSY, False),
    "read-only": Fault((*CHANGES, "delete"), sqlite3.SQLITE_READONLY, True),
    "too many files": NoMoreFiles((), 0, True),
    "no memory": Fault(EVERYTHING, sqlite3.SQLITE_NOMEM, True),
    "no memory once": Fault(EVERYTHING, sqlite3.SQLITE_NOMEM, False),
}


class Acknowledging(EventLog):
    """A log that keeps what it said was stored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.stored: list[Event] = []

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        done = super().append_all(writes)
        stored = [event for each in done if not isinstance(each, Conflict) for event in each]
        self.stored += [event for event in stored if event.type not in DELTAS]
        return done


async def fails(home: Path, fault: Fault, n: int, said: Callable[[], list[str]]) -> bool:
    """A run in which the nth operation fails, and what comes after; False when n is too large."""
    with Disk(fault):
        machine = Working(home, Acknowledging)
        fault.met, fault.hit, fault.fatal = 0, False, n
        told = None
        try:
            await machine.ask("hi")
        except AgentError as error:
            told = error
        finally:
            fault.is_gone()
        assert told is None or (told.message and told.remedy)
        try:
            await machine.goes_on()
        except AgentError as error:
            raise AssertionError(f"operation {n}: {error}") from error
        log = machine.log
        assert isinstance(log, Acknowledging)
        kept = [event for event in log.read(machine.session) if event.type not in DELTAS]
        assert kept == sorted(log.stored, key=lambda event: event.seq)
        assert machine.saved <= 1
        await machine.close()
    assert check(home / "sessions.sqlite3") == []
    assert not said()
    return fault.hit


def sweep(fault: Fault, step: int, said: Callable[[], list[str]]) -> int:
    """Every `step`th operation of a run fails in turn; how many operations there are."""

    async def one(home: Path, n: int) -> bool:
        async with asyncio.timeout(200):
            return await fails(home, fault, n, said)

    def hit(n: int) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(one(Path(folder), n))

    hit(10**9)  # a run without a fault loads what is loaded late
    n = 1 + step // 2
    while hit(n):
        n += step
    return n


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("full", 47),
        ("failing", 107),
        ("failed once", 107),
        ("locked", 43),
        ("read-only", 61),
        ("too many files", 107),
        ("no memory", 107),
        ("no memory once", 107),
        *(pytest.param(name, 1, marks=pytest.mark.torture) for name in FAULTS),
    ],
)
def test_any_operation_of_a_run_may_fail(
    name: str, step: int, caplog: pytest.LogCaptureFixture
) -> None:
    """For every n: a sentence instead of a traceback, nothing lost, no effect twice, and the next
    question is answered as soon as the cause is gone.
    """

    def tracebacks() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.exc_info]

    assert sweep(FAULTS[name], step, tracebacks) > 25
