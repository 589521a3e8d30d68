"""The recorder: many deltas become few events, in order, and a failing store is noticed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import Conflict, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.events import Event, message_data
from searchloop.agent.observe import begin, current
from searchloop.agent.run.recorder import WINDOW, Recorder
from searchloop.agent.types import (
    Message,
    PageOpened,
    SearchFinished,
    SearchStarted,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from tests.agent.scripted import no_room
from tests.waiting import eventually


@asynccontextmanager
async def recording(home: Path, path: str = "off") -> AsyncIterator[tuple[Recorder, EventLog, str]]:
    """A recorder on an empty session."""
    log = EventLog(home / "s.sqlite3")
    session = log.create_session(model="m").id
    yield Recorder(log, session, path), log, session
    log.close()


def brief(events: list[Event]) -> list[tuple[str, str]]:
    """Type and text."""
    return [(e.type, e.data.get("text", "")) for e in events]


def test_the_first_word_goes_out_at_once(tmp_path: Path) -> None:
    """Nothing waits before the first delta; the next ones come together a moment later."""

    async def scenario() -> None:
        async with recording(tmp_path) as (recorder, log, session):
            for word in ("One", " two", " three"):
                recorder.delta(TextDelta(word))
            assert brief(log.read(session)) == [("text_delta", "One")]
            await eventually(lambda: len(log.read(session)) > 1)
            assert brief(log.read(session)) == [("text_delta", "One"), ("text_delta", " two three")]
            await recorder.finish([])

    asyncio.run(scenario())


def test_order_is_kept(tmp_path: Path) -> None:
    """Thinking, text and events stand in the log in the order in which they came."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_a_fast_stream_costs_few_events(tmp_path: Path) -> None:
    """Twenty thousand deltas are a handful of appends, and no letter is lost."""

    async def scenario() -> None:
        async with recording(tmp_path) as (recorder, log, session):
            for n in range(20_000):
                recorder.delta(TextDelta(str(n % 10)))
                if n % 1000 == 0:
                    await asyncio.sleep(0)
            assert recorder.partial() == "0123456789" * 2000
            events = log.read(session)
            assert "".join(e.data["text"] for e in events) == "0123456789" * 2000
            assert len(events) < 200
            await recorder.finish([])

    asyncio.run(scenario())


class Noting(EventLog):
    """A log that notes during which run each message was appended."""

    def append(self, session_id: str, events: Sequence[Pending], **how: Any) -> list[Event]:
        """See EventLog."""
        if any(kind == "message" for kind, _ in events):
            self.during = current.get()
        return super().append(session_id, events, **how)


def test_what_waits_for_a_batch_is_still_written_by_its_run(tmp_path: Path) -> None:
    """A message that comes while deltas are being written: what is recorded goes along with it."""

    async def scenario(log: Noting, blocking: sqlite3.Connection) -> None:
        session = log.create_session(model="m").id
        running = begin("r", session)
        recorder = Recorder(log, session, "off")
        blocking.execute("BEGIN IMMEDIATE")
        recorder.delta(TextDelta("High "))
        assert recorder._writing
        said = Message("assistant", "High ")
        data = message_data(said, step=1, usage=Usage(), stop_reason="stop")
        told = asyncio.create_task(recorder.event("message", data))
        await asyncio.sleep(0)
        blocking.rollback()
        await told
        await recorder.finish([])
        assert [event.type for event in log.read(session)] == ["message"]
        assert log.during is running

    log = Noting(tmp_path / "s.sqlite3")
    with closing(sqlite3.connect(tmp_path / "s.sqlite3", isolation_level=None)) as blocking:
        asyncio.run(scenario(log, blocking))
    log.close()


def test_what_was_said_since_the_last_message(tmp_path: Path) -> None:
    """`partial` is what an answer that breaks off leaves; a whole message leaves nothing."""

    async def scenario() -> None:
        async with recording(tmp_path) as (recorder, _log, _session):
            recorder.delta(TextDelta("Hello"))
            assert recorder.partial() == "Hello"
            data = message_data(
                Message("assistant", "Hello"), step=1, usage=Usage(7, 2), stop_reason="stop"
            )
            await recorder.event("message", data)
            assert recorder.partial() == ""
            assert recorder.usage == Usage(7, 2)
            recorder.delta(ThinkingDelta("hm"))
            assert recorder.partial() == ""
            await recorder.finish([])

    asyncio.run(scenario())


def test_searches_and_pages_are_counted(tmp_path: Path) -> None:
    """Native and local searches apart; only pages that were read; the engine that answered."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_a_store_that_fails_ends_the_listening(tmp_path: Path) -> None:
    """The next delta or event after a failed append raises; what was said is still known."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_what_found_no_room_is_written_later(tmp_path: Path) -> None:
    """Events that a full disk refused go out, in order, with the end of the run."""

    async def scenario() -> None:
        async with recording(tmp_path) as (recorder, log, session):
            with no_room(tmp_path / "s.sqlite3-wal"):
                await recorder.event("notice", {"text": "x" * 100_000})
                await eventually(lambda: recorder._failed)
                assert log.read(session) == []
                with pytest.raises(StoreError):
                    await recorder.event("notice", {})
            await recorder.finish([("run_finished", {})])
            events = log.read(session)
            assert [(e.type, len(e.data.get("text", ""))) for e in events] == [
                ("notice", 100_000),
                ("run_finished", 0),
            ]

    asyncio.run(scenario())


def test_nothing_ticks_after_the_end(tmp_path: Path) -> None:
    """Once it is finished a recorder writes nothing more."""

    async def scenario() -> None:
        async with recording(tmp_path) as (recorder, log, session):
            recorder.delta(TextDelta("One"))
            recorder.delta(TextDelta(" two"))
            await recorder.finish([("run_finished", {})])
            last = log.last_seq(session)
            await asyncio.sleep(WINDOW * 2)
            assert log.last_seq(session) == last
            assert log.last_event(session).type == "run_finished"

    asyncio.run(scenario())
