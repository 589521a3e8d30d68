"""Writes runs to the log: deltas in batches, everything else when the loop gets to it.

A call that changes something is in the log before it begins, and the results of a step before the
model is asked again. `BatchWriter` puts what all runs say in one moment into one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import asdict
from typing import Any, cast

from searchloop.agent.errors import AgentError, UnsureError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending, Write
from searchloop.agent.log.events import Event
from searchloop.agent.types import (
    Notice,
    PageOpened,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)


class Recorder:
    """The emitter of one run. `said` is the text since the last message, for a stop or a crash."""

    def __init__(
        self, writer: BatchWriter, session_id: str, path: str, fence: int | None = None
    ) -> None:
        self._writer, self._session, self._fence = writer, session_id, fence
        self.path = path
        self._pieces: list[str] = []
        self._events: list[tuple[Pending, bool]] = []  # and whether each must outlive a power cut
        self._kind: type[TextDelta] | type[ThinkingDelta] = TextDelta
        self._failed: Exception | None = None
        self._calls: set[str] = set()  # begun and not answered yet
        self._effects: set[str] = set()
        self.said: list[str] = []
        self.searches = 0
        self.pages = 0
        self.engine: str | None = None
        self.usage = Usage()
        self.last, self.at = 0, 0.0  # number and time of the newest event that is stored

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        if self._failed:
            raise self._failed
        kind = type(event)
        if kind is not self._kind:
            self._gather()
            self._kind = kind
        self._pieces.append(event.text)
        self._writer.want(self)

    def _gather(self) -> None:
        """Makes one event of the pieces so far."""
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._kind is TextDelta:
            self.said.append(text)
        name = "text_delta" if self._kind is TextDelta else "thinking_delta"
        self._events.append(((name, {"text": text}), False))

    def take(self) -> Write | None:
        """Returns what is to be written; None for nothing, or after a failure."""
        self._gather()
        if self._failed or not self._events:
            return None
        events = [event for event, _ in self._events]
        durable = any(durable for _, durable in self._events)
        return Write(self._session, events, self._fence, durable)

    def took(self, write: Write, result: object) -> None:
        """Hears that a write is over; `finish` repeats one that failed."""
        if isinstance(result, Exception):
            self._failed = result  # the next delta or event raises it
        else:
            del self._events[: len(write.events)]
            newest = cast("list[Event]", result)[-1]
            self.last, self.at = newest.seq, newest.at

    async def _stored(self) -> None:
        """Waits until everything is in the log."""
        while self._events and not self._failed:
            await asyncio.shield(self._writer.soon(self))
        if self._failed:
            raise self._failed

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        if self._failed:
            raise self._failed
        self._gather()  # one write for the last pieces and what follows them
        if type == "message":
            self.said.clear()
            self.usage = Usage(**data["usage"])
        self._count(type, data)
        durable, last = self._followed(type, data)
        self._events.append(((type, data), durable))
        if durable or last:
            await self._stored()
        else:
            self._writer.soon(self)

    def _followed(self, type: str, data: Mapping[str, Any]) -> tuple[bool, bool]:
        """Returns whether an event must outlive a power cut, and whether it ends the step's calls.

        Calls that change something and approvals must; a flush costs more than a second look-up.
        """
        call = data.get("call_id")
        if type == "tool_call":
            self._calls.add(data["call_id"])
        elif type == "tool_result":
            self._calls.discard(data["call_id"])
        elif type == "tool_started":
            self._effects.add(data["call_id"])
        durable = type in ("approval_requested", "approval_decided") or call in self._effects
        return durable, type == "tool_result" and not self._calls

    def _count(self, type: str, data: Mapping[str, Any]) -> None:
        """Counts pages that were read and searches; notes the engine that answered."""
        if type == "page_opened":
            self.pages += data["status"] == "ok"
        elif type == "search_finished":
            way, _, engine = data["by"].partition(":")
            self.searches += 1
            if way == "local":
                empty = (a["engine"] for a in data["attempts"] if a["status"] == "empty")
                self.engine = engine or self.engine or next(empty, None)

    async def activity(self, event: StreamEvent) -> None:
        if told := told_of(event, self.path):
            await self.event(*told)

    def remember(self, written: Iterable[Pending], usage: Usage) -> None:
        """Restores the counts of a resumed run."""
        self.usage = usage
        for type, data in written:
            self._count(type, data)

    async def stop(self) -> None:
        """Writes the events so far; another process goes on with the run, and says the rest."""
        self._pieces.clear()
        with suppress(AgentError):
            await self._stored()

    async def drop(self) -> None:
        """Forgets what is not in the log, once nothing is being written."""
        await self._writer.quiet()
        self._events.clear()

    def partial(self) -> str:
        """Returns the text since the last message: an answer that broke off."""
        self._gather()
        return "".join(self.said)

    def path_taken(self) -> str:
        """Returns the search path, with the engine that answered: none where none did."""
        local = self.searches and self.path.startswith("local")
        return with_engine("local", self.engine) if local else self.path

    async def finish(self, events: list[Pending]) -> None:
        """Writes the last events of the run in one durable append, after any that failed before."""
        self._gather()
        await self._writer.quiet()
        if isinstance(self._failed, UnsureError):  # written again it might be there twice
            raise self._failed
        self._failed = None
        self._events += [(event, True) for event in events]
        await self._stored()


def told_of(event: StreamEvent, path: str) -> tuple[str, dict[str, Any]] | None:
    """Returns type and data of the event for what a provider did by itself, None for the rest."""
    if isinstance(event, SearchStarted):
        return "search_started", {"query": event.query, "by": path}
    if isinstance(event, SearchFinished):
        return "search_finished", {**asdict(event), "by": path, "attempts": []}
    if isinstance(event, PageOpened):
        return "page_opened", asdict(event)
    return ("notice", asdict(event)) if isinstance(event, Notice) else None


def with_engine(path: str, engine: str | None) -> str:
    """Returns a search path with the engine that answered."""
    return f"local:{engine}" if engine and path.startswith("local") else path


GAP = 0.05  # seconds between two writes of deltas, at the least

Taken = Sequence[tuple[Recorder, Write]]


class BatchWriter:
    """Writes what the runs of one loop say: of one moment, in one transaction."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._wanting: dict[Recorder, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due: asyncio.Future[None] | None = None  # of the next write, if somebody needs it
        self._writing: asyncio.Task[None] | None = None  # of a store that blocks
        self._next = 0.0

    def want(self, run: Recorder) -> None:
        """Has this run's deltas written, at once or in a moment."""
        self._wanting[run] = None
        if not (self._timer or self._due or self._writing):
            loop = asyncio.get_running_loop()
            wait = self._next - loop.time()
            if wait > 0:
                self._timer = loop.call_later(wait, self._go, context=Context())
            else:
                self._go()

    def soon(self, run: Recorder) -> asyncio.Future[None]:
        """Has this run's events written with those of others that speak now; returns the end."""
        self._wanting[run] = None
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.create_future()
            if self._writing is None:
                loop.call_soon(self._go, context=Context())
        return self._due

    async def quiet(self) -> None:
        """Waits until nothing is being written."""
        while self._writing:
            await asyncio.shield(self._writing)

    def _go(self) -> None:
        if self._writing:
            return
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer, self._next = None, loop.time() + GAP
        runs, self._wanting = self._wanting, {}
        due, self._due = self._due, None
        taken = [(run, write) for run in runs if (write := run.take())]
        results: Sequence[object] | None = []
        try:
            if taken:
                results = self.log.at_once(self.log.append_all, [write for _, write in taken])
        except Exception as error:
            results = [error] * len(taken)
        if results is None:
            self._writing = loop.create_task(self._write(taken, due), context=Context())
        else:
            _report(taken, results, due)

    async def _write(self, taken: Taken, due: asyncio.Future[None] | None) -> None:
        """Writes on a thread; what comes meanwhile makes the next write."""
        results: Sequence[object] = [None] * len(taken)
        try:
            results = await asyncio.to_thread(self.log.append_all, [write for _, write in taken])
        except Exception as error:
            results = [error] * len(taken)
        finally:
            self._writing = None
            _report(taken, results, due)
        if self._due:
            self._go()
        elif self._wanting:
            self.want(next(iter(self._wanting)))


def _report(taken: Taken, results: Sequence[object], due: asyncio.Future[None] | None) -> None:
    """Tells each run how its write ended, and who waits that it is over."""
    for (run, write), own in zip(taken, results, strict=True):
        run.took(write, own)
    if due and not due.done():
        due.set_result(None)
