"""The recorder: many deltas become few events, in order, and a failing store is noticed.

Many runs that speak at one moment are one transaction, and none hears the other's trouble.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import Conflict, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import STEPS, Batch, Write
from searchloop.agent.log.events import Event
from searchloop.agent.log.postgres import MOST_BYTES, append_values
from searchloop.agent.log.sqlite import SqliteDatabase
from searchloop.agent.run.recorder import BatchWriter, Recorder
from searchloop.agent.types import (
    PageOpened,
    SearchFinished,
    SearchStarted,
    TextDelta,
    ThinkingDelta,
)
from tests.postgres import Postgres
from tests.waiting import eventually, until


@asynccontextmanager
async def recording(home: Path, path: str = "off") -> AsyncIterator[tuple[Recorder, EventLog, str]]:
    """A recorder on an empty session."""
    log = EventLog(home / "s.sqlite3")
    session = log.create_session(model="m").id
    yield Recorder(BatchWriter(log), session, path), log, session
    log.close()


def brief(events: list[Event]) -> list[tuple[str, str]]:
    """Type and text."""
    return [(e.type, e.data.get("text", "")) for e in events]


async def test_the_first_word_goes_out_at_once(tmp_path: Path) -> None:
    """Nothing waits before the first delta; the next ones come together a moment later."""
    async with recording(tmp_path) as (recorder, log, session):
        for word in ("One", " two", " three"):
            recorder.delta(TextDelta(word))
        assert brief(log.read(session)) == [("text_delta", "One")]
        await eventually(lambda: len(log.read(session)) > 1)
        assert brief(log.read(session)) == [("text_delta", "One"), ("text_delta", " two three")]
        await recorder.finish([])


async def test_order_is_kept(tmp_path: Path) -> None:
    """Thinking, text and events stand in the log in the order in which they came."""
    async with recording(tmp_path) as (recorder, log, session):
        recorder.delta(ThinkingDelta("a"))
        recorder.delta(ThinkingDelta("b"))
        recorder.delta(TextDelta("c"))
        await recorder.event("notice", {})
        recorder.delta(ThinkingDelta("d"))
        await recorder.finish([("run_finished", {})])
        assert brief(log.read(session)) == [
            ("thinking_delta", "a"),
            ("thinking_delta", "b"),
            ("text_delta", "c"),
            ("notice", ""),
            ("thinking_delta", "d"),
            ("run_finished", ""),
        ]


async def test_searches_and_pages_are_counted(tmp_path: Path) -> None:
    """Native and local searches apart; only pages that were read; the engine that answered."""
    async with recording(tmp_path, "native:vendor") as (recorder, _, _):
        await recorder.activity(SearchStarted("x"))
        await recorder.activity(SearchFinished("x", results=None))
        await recorder.activity(PageOpened("https://a.example/"))
        await recorder.activity(PageOpened("https://b.example/", "error"))
        assert (recorder.searches, recorder.pages) == (1, 1)
        assert recorder.path_taken() == "native:vendor"
    async with recording(tmp_path, "local:tin") as (recorder, _, _):
        for by, status in (("local", "error"), ("local:zinc", "ok")):
            data = {"query": "x", "by": by, "status": status, "results": 0, "attempts": []}
            await recorder.event("search_finished", data)
        assert recorder.searches == 2
        assert recorder.path_taken() == "local:zinc"


async def test_a_store_that_fails_ends_the_listening(tmp_path: Path) -> None:
    """The next delta or event after a failed append raises; what was said is still known."""
    async with recording(tmp_path) as (recorder, log, session):
        recorder.delta(TextDelta("One"))
        log.delete_session(session)
        recorder.delta(TextDelta(" two"))
        await eventually(lambda: recorder._failed)
        with pytest.raises(Conflict):
            recorder.delta(TextDelta(" three"))
        with pytest.raises(Conflict):
            await recorder.event("notice", {})
        assert recorder.partial() == "One two"
        with pytest.raises(Conflict):
            await recorder.finish([("run_finished", {})])


class Counting(EventLog):
    """A log that counts how often it was asked to write."""

    writes = 0

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        self.writes += 1
        return super().append_all(writes)


def said(log: EventLog, session: str) -> str:
    """The text in the log."""
    return "".join(event.data["text"] for event in log.read(session))


async def test_what_many_say_at_once_is_written_at_once(store: Path | str) -> None:
    """Fifty runs, twenty words each: every word there, in order, in few transactions."""
    log = Counting(store)
    together = BatchWriter(log)
    sessions = [log.create_session(model="m").id for _ in range(50)]
    runs = [Recorder(together, session, "off") for session in sessions]
    for n in range(20):
        for run in runs:
            run.delta(TextDelta(f"{n} "))
        await asyncio.sleep(0)
    for run in runs:
        await run.finish([("text_delta", {"text": "end"})])
    whole = "".join(f"{n} " for n in range(20)) + "end"
    assert [said(log, session) for session in sessions] == [whole] * 50
    assert log.writes < 100
    log.close()


SIZES = st.lists(st.tuples(st.sampled_from('xé\n"😀'), st.integers(0, 8100)), min_size=1)


@given(SIZES)
def test_a_notification_is_never_too_long(sizes: list[tuple[str, int]]) -> None:
    """However much is said: under PostgreSQL's 8,000 bytes each, and it names the session."""
    texts = [letter * count for letter, count in sizes]
    rows = [("text_delta", json.dumps({"text": text}, ensure_ascii=False)) for text in texts]
    batches = [Batch(f"s{n}", [row], 1.0) for n, row in enumerate(rows)]
    notes = [f"{news}{2**31 - 1}}}" for news in append_values(batches, "p" * 12)["news"]]
    assert max(len(note.encode()) for note in notes) < MOST_BYTES + 64 < 8000
    assert [json.loads(note)["session"] for note in notes] == [batch.session for batch in batches]


@pytest.mark.integration
async def test_a_burst_reaches_another_process(postgres: Postgres) -> None:
    """Small and large words of a hundred sessions: the other process's followers get them all, and
    PostgreSQL's queue is empty afterwards."""
    url = postgres.url()
    ours, theirs = EventLog(url), EventLog(url)
    sessions = [ours.create_session(model="m").id for _ in range(100)]
    texts = ["x" * (9000 if n % 10 == 0 else 300) for n in range(100)]
    got: dict[str, str] = dict.fromkeys(sessions, "")

    async def read(session: str) -> None:
        async for batch in theirs.follow(session):
            got[session] += "".join(event.data["text"] for event in batch)
            if len(got[session]) >= 3 * 300 and got[session].endswith("."):
                return

    readers = [asyncio.create_task(read(session)) for session in sessions]
    await asyncio.to_thread(until, lambda: len(theirs._followers) == 100)
    for end in ("", "", "."):
        both = zip(sessions, texts, strict=True)
        words = [Write(s, [("text_delta", {"text": t + end})]) for s, t in both]
        await asyncio.to_thread(ours.append_all, words)
    await asyncio.wait_for(asyncio.gather(*readers), 60)
    assert list(got.values()) == [t * 3 + "." for t in texts]
    with theirs._db.reading() as db:
        assert db.execute("SELECT pg_notification_queue_usage()").fetchone()[0] < 0.01
    ours.close()
    theirs.close()


class Waiting(SqliteDatabase):
    """A store that has to be asked on a thread, as PostgreSQL does, and can be down."""

    quick = False
    down = False

    def _begin(self, db: sqlite3.Connection, until: float) -> None:
        if self.down:
            raise sqlite3.OperationalError("down")
        super()._begin(db, until)


async def test_a_store_that_stays_away_ends_the_run_with_an_error(tmp_path: Path) -> None:
    """The last append fails as well: that is an error for the run's keeper, not an endless try; and
    when the store is back, everything is written once."""
    log, store = EventLog(tmp_path / "s.sqlite3"), Waiting(tmp_path / "s.sqlite3", STEPS)
    session = log.create_session(model="m").id
    log._db.close()
    log._db = store
    recorder = Recorder(BatchWriter(log), session, "off")
    store.down = True
    recorder.delta(TextDelta("half"))
    with pytest.raises(StoreError):
        await asyncio.wait_for(recorder.finish([("run_finished", {"text": "."})]), 60)
    store.down = False
    await asyncio.wait_for(recorder.finish([]), 60)
    assert said(log, session) == "half."
    log.close()
