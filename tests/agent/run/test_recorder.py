"""The recorder: many deltas become few events, in order, and a failing store is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event, message_data
from searchloop.agent.run.recorder import WINDOW, BatchWriter, Recorder
from searchloop.agent.types import (
    Message,
    PageOpened,
    SearchFinished,
    SearchStarted,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from tests.waiting import eventually


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


async def test_a_fast_stream_costs_few_events(tmp_path: Path) -> None:
    """Twenty thousand deltas are a handful of appends, and no letter is lost."""

    async with recording(tmp_path) as (recorder, log, session):
        for n in range(20_000):
            recorder.delta(TextDelta(str(n % 10)))
            if n % 1000 == 0:
                await asyncio.sleep(0)
        assert recorder.partial() == "0123456789" * 2000
        await recorder.finish([])
        events = log.read(session)
        assert "".join(e.data["text"] for e in events) == "0123456789" * 2000
        assert len(events) < 200


async def test_what_was_said_since_the_last_message(tmp_path: Path) -> None:
    """`partial` is what an answer that breaks off leaves; a whole message leaves nothing."""

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


async def test_nothing_ticks_after_the_end(tmp_path: Path) -> None:
    """Once it is finished a recorder writes nothing more."""

    async with recording(tmp_path) as (recorder, log, session):
        recorder.delta(TextDelta("One"))
        recorder.delta(TextDelta(" two"))
        await recorder.finish([("run_finished", {})])
        last = log.last_seq(session)
        await asyncio.sleep(WINDOW * 2)
        assert log.last_seq(session) == last
        assert log.last_event(session).type == "run_finished"
