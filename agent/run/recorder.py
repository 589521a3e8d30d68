"""Writes a run to the log: deltas in batches, everything else when the run next waits.

A call that changes something is in the log before it begins, and the results of a step before the
model is asked again. `BatchWriter` puts the deltas of all runs into one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import asdict
from functools import partial
from typing import Any

from searchloop.agent.errors import UnsureError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending, RunDeltas
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

WINDOW = 0.05  # seconds for which deltas are gathered


class Recorder:
    """The emitter of one run. `said` is the text since the last message, for a stop or a crash."""

    def __init__(
        self,
        log: EventLog,
        session_id: str,
        path: str,
        fence: int | None = None,
        batches: BatchWriter | None = None,
    ) -> None:
        self._log = log
        self._batches = batches or BatchWriter(log)
        self._session = session_id
        self._fence = fence
        self.path = path
        self._pieces: list[str] = []
        self._events: list[tuple[Pending, bool]] = []  # and whether each must outlive a power cut
        self._kind: type[TextDelta] | type[ThinkingDelta] = TextDelta
        self._timer: asyncio.TimerHandle | None = None
        self._failed: Exception | None = None
        self._writing: asyncio.Task[None] | None = None
        self._calls: set[str] = set()  # begun and not answered yet
        self._effects: set[str] = set()
        self.said: list[str] = []
        self.searches = 0
        self.pages = 0
        self.engine: str | None = None
        self.usage = Usage()

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        if self._failed:
            raise self._failed
        kind = type(event)
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._pieces.append(event.text)
        if self._timer is None:
            self._batches.want(self)
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._pieces:
            self._batches.want(self)
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._tick)

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

    def _flush(self) -> None:
        """Writes what there is; the next delta or event raises a failure."""
        self._gather()
        if not self._events or self._writing or self._failed:
            return
        count, append = self._append()
        try:
            done = self._log.at_once(append)
        except Exception as error:
            self._failed = error  # `finish` tries once more
            return
        if done is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        else:
            del self._events[:count]

    async def _write(self) -> None:
        """Writes on a thread, in order, until there is nothing more: for a store that blocks."""
        try:
            while self._events:
                count, append = self._append()
                await asyncio.to_thread(append)
                del self._events[:count]
        except Exception as error:
            self._failed = error
        finally:
            self._writing = None

    def _append(self) -> tuple[int, Callable[[], object]]:
        """Returns how many events there are, and the call that appends them."""
        events = [event for event, _ in self._events]
        durable = any(durable for _, durable in self._events)
        append = partial(self._log.append, durable=durable, fence=self._fence)
        return len(events), partial(append, self._session, events)

    def take(self) -> RunDeltas | None:
        """Returns the deltas for a batch; None if there are none, or other events go first."""
        if self._events:
            self._flush()  # what came before the pieces goes before them
            return None
        if self._writing or self._failed:
            return None
        self._gather()
        events = [event for event, _ in self._events]
        return RunDeltas(self._session, events, self._fence) if events else None

    def wait_for(self, writing: asyncio.Task[None]) -> None:
        """Makes other writes of this run wait for the batch."""
        self._writing = writing

    def took(self, given: RunDeltas, error: Exception | None) -> None:
        """Ends the batch; after an error `finish` writes its deltas."""
        self._writing = None
        if error:
            self._failed = error
            return
        del self._events[: len(given.events)]
        if self._events:
            self._flush()

    async def _stored(self) -> None:
        """Waits until everything is in the log."""
        self._flush()
        while self._writing:
            await asyncio.shield(self._writing)
            self._flush()
        if self._failed:
            raise self._failed

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        idle = not self._events
        self._gather()  # one write for the last pieces and what follows them
        if self._failed:
            raise self._failed
        if type == "message":
            self.said.clear()
            self.usage = Usage(**data["usage"])
        elif type == "page_opened":
            self.pages += data["status"] == "ok"
        elif type == "search_finished":
            self._searched(data)
        durable, last = self._followed(type, data)
        self._events.append(((type, data), durable))
        if durable or last:
            await self._stored()
        elif idle:
            asyncio.get_running_loop().call_soon(self._flush)

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

    def _searched(self, data: Mapping[str, Any]) -> None:
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
            if type == "search_finished":
                self._searched(data)
            elif type == "page_opened":
                self.pages += data["status"] == "ok"

    def stop(self) -> None:
        """Writes nothing more; another process goes on with the run."""
        if self._timer:
            self._timer.cancel()
        self._pieces.clear()

    def partial(self) -> str:
        """Returns the text since the last message: an answer that broke off."""
        self._flush()
        return "".join(self.said)

    def path_taken(self) -> str:
        """Returns the search path, with the engine that answered: none where none did."""
        if not self.searches or not self.path.startswith("local"):
            return self.path
        return f"local:{self.engine}" if self.engine else "local"

    async def finish(self, events: list[Pending]) -> None:
        """Writes the last events of the run in one durable append, after any that failed before."""
        if self._timer:
            self._timer.cancel()
        self._gather()
        while self._writing:
            await asyncio.shield(self._writing)
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


GAP = 0.03  # seconds between two writes, at the least

Batch = Sequence[tuple[Recorder, RunDeltas]]


class BatchWriter:
    """Batches the deltas of many runs into one transaction. Use on one loop."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._wanting: dict[Recorder, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._next = 0.0

    def want(self, run: Recorder) -> None:
        """Schedules a write of this run's deltas, at once or in a moment."""
        self._wanting[run] = None
        if self._timer is None and self._writing is None:
            loop = asyncio.get_running_loop()
            wait = self._next - loop.time()
            if wait > 0:
                self._timer = loop.call_later(wait, self._go, context=Context())
            else:
                self._go()

    def _go(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        self._next = loop.time() + GAP
        runs, self._wanting = self._wanting, {}
        taken = [(run, deltas) for run in runs if (deltas := run.take())]
        if not taken:
            return
        results: Sequence[object] | None
        try:
            results = self.log.at_once(self.log.append_deltas, [deltas for _, deltas in taken])
        except Exception as error:
            results = [error] * len(taken)
        if results is not None:
            _report(taken, results)
            return
        self._writing = loop.create_task(self._write(taken), context=Context())
        for run, _ in taken:
            run.wait_for(self._writing)

    async def _write(self, taken: Batch) -> None:
        """Writes on a thread, for a store that blocks; later deltas make the next batch."""
        results: Sequence[object] = [None] * len(taken)
        try:
            deltas = [each for _, each in taken]
            results = await asyncio.to_thread(self.log.append_deltas, deltas)
        except Exception as error:
            results = [error] * len(taken)
        finally:
            self._writing = None
            _report(taken, results)
        if self._wanting:
            self.want(next(iter(self._wanting)))


def _report(taken: Batch, results: Sequence[object]) -> None:
    """Ends the batch for each run, with its own error if it has one."""
    for (run, deltas), own in zip(taken, results, strict=True):
        run.took(deltas, own if isinstance(own, Exception) else None)
