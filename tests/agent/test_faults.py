"""A store that fails at any operation of a run: nothing broken, and all goes on when it works."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.backend import LocalBackend
from agent.errors import AgentError, StoreError
from agent.leases import Leases
from agent.log import EventLog
from agent.runner import Runner
from agent.store.sqlite import SqliteDatabase
from agent.tables import STEPS
from agent.tools import tool
from agent.types import Request, StreamEvent
from agent.upkeep import check
from tests.agent.scripted import (
    MODEL,
    Scripted,
    SearchApp,
    call,
    calls,
    check_calls_are_answered,
    found,
    says,
    settings,
)


class Failing(SqliteDatabase):
    """A store whose operations fail from the `fatal`th on, or that one alone, with this code."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, STEPS)
        self.done = self.failed = 0
        self.fatal, self.code, self.lasting = 0, sqlite3.SQLITE_FULL, True

    def _meet(self) -> None:
        self.done += 1
        if self.fatal and (self.done >= self.fatal if self.lasting else self.done == self.fatal):
            self.failed += 1
            error = sqlite3.OperationalError("as told")
            error.sqlite_errorcode = self.code
            raise error

    def _begin(self, db: sqlite3.Connection, until: float) -> None:
        self._meet()
        super()._begin(db, until)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See SqliteDatabase."""
        with super().reading() as db:
            self._meet()
            yield db


class Thinking(Scripted):
    """A model that searches, saves and answers, and knows from the transcript where it is."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See Scripted."""
        messages = list(request.messages)
        last = max(i for i, m in enumerate(messages) if m.role == "user")
        results = sum(m.role == "tool" for m in messages[last:])
        search = calls(call("web_search", 1, query="tides"))
        again = "again" in messages[last].content
        steps = [says("More.")] if again else [search, calls(call("save", 2)), says("Whole.")]
        self._steps = [steps[min(results, len(steps) - 1)]]
        async for event in super().stream(request):
            yield event


class Ground:
    """A runner on a store that can fail."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.db = Failing(home / "sessions.sqlite3")
        self.log = EventLog(home / "sessions.sqlite3")
        self.log.close()
        self.log._db, self.log.leases = self.db, Leases(self.db)
        self.model = Thinking([])
        self.saved = 0
        backend = LocalBackend(SearchApp({"/api/web-search": found("https://tides.example/")}))
        own = settings(home)
        self.runner = Runner(own, self.log, backend, [self._save()], providers=[self.model])
        self.session = self.log.create_session(model=MODEL, search="local").id

    def _save(self) -> Any:
        @tool(effect="write")
        async def save() -> str:
            """Keep it."""
            self.saved += 1
            return "kept"

        return save

    async def ask(self, text: str) -> None:
        """One question, to the end of its run."""
        await self.runner.start(self.session, text, mode="agent", approve="auto")
        await self.runner.wait(self.session)

    async def close(self) -> None:
        """The end."""
        await self.runner.aclose()
        self.log.close()


async def fails_at(home: Path, n: int, code: int, *, lasting: bool) -> bool:
    """A run in which the nth operation fails, and what comes after; False when n is too large."""
    ground = Ground(home)
    db = ground.db
    db.done, db.fatal, db.code, db.lasting = 0, n, code, lasting
    said = ("no", "failure")
    try:
        await ground.ask("hi")
    except StoreError as error:
        said = (error.message, error.remedy)
    assert all(said)
    hit, db.fatal = bool(db.failed), 0
    await ground.runner.recover()
    await ground.runner.wait(ground.session)
    try:
        await ground.ask("again")
    except AgentError as error:
        raise AssertionError(f"operation {n}, code {code}: {error}") from error
    assert ground.log.last_event(ground.session).data["answer"] == "More."
    for request in ground.model.requests:
        check_calls_are_answered(list(request.messages))
    assert ground.saved <= 1
    await ground.close()
    assert check(home / "sessions.sqlite3") == []
    return hit


@pytest.mark.parametrize(
    ("code", "lasting"),
    [
        (sqlite3.SQLITE_FULL, True),
        pytest.param(sqlite3.SQLITE_IOERR, True, marks=pytest.mark.torture),
        (sqlite3.SQLITE_IOERR, False),
        (sqlite3.SQLITE_BUSY, False),
        pytest.param(sqlite3.SQLITE_READONLY, True, marks=pytest.mark.torture),
    ],
)
def test_any_operation_of_a_run_may_fail(code: int, lasting: bool) -> None:
    """For every n: a sentence instead of a traceback, no effect twice, and a whole store."""

    async def sweep() -> None:
        n = 1
        while True:
            with tempfile.TemporaryDirectory() as folder:
                if not await fails_at(Path(folder), n, code, lasting=lasting):
                    break
            n += 1
        assert n > 15

    asyncio.run(sweep())
