"""From a run to the log: deltas gathered for a moment, everything else as soon as the run waits.

The first delta goes out immediately, later ones in batches, so that a fast stream costs a few dozen
appends a second and a slow one is shown as it comes; those of all runs go together. Events between
which the run waited for nothing are one append, but a call that changes something is in the log
before it begins, and the results of a step before the model is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from agent.errors import UnsureError
from agent.log import EventLog
from agent.parcel import Passing, Pending
from agent.together import Together
from agent.types import (
    Notice,
    PageOpened,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)

WINDOW = 0.03  # seconds for which deltas are gathered


class Recorder:
    """The emitter of one run. Keeps what was said since the last message, for a stop or a crash."""

    def __init__(
        self,
        log: EventLog,
        session_id: str,
        path: str,
        fence: int | None = None,
        together: Together | None = None,
    ) -> None:
        self._log = log
        self._together = together or Together(log)
        self._session = session_id
        self._fence = fence
        self.path = path
        self._pieces: list[str] = []
        self._events: list[Pending] = []
        self._kind: type[TextDelta] | type[ThinkingDelta] = TextDelta
        self._timer: asyncio.TimerHandle | None = None
        self._failed: Exception | None = None
        self._durable = False  # whether something in `_events` must outlive a power cut
        self._writing: asyncio.Task[None] | None = None
        self._calls: set[str] = set()  # begun and not answered yet
        self._effects: set[str] = set()
        self.said: list[str] = []
        self.searches = 0
        self.pages = 0
        self.engine: str | None = None
        self.usage = Usage()

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """See `Emit.delta`."""
        if self._failed:
            raise self._failed
        kind = type(event)
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._pieces.append(event.text)
        if self._timer is None:
            self._together.want(self)
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._pieces:
            self._together.want(self)
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._tick)

    def _gather(self) -> None:
        """The pieces so far become one event."""
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        name = "thinking_delta"
        if self._kind is TextDelta:
            name = "text_delta"
            self.said.append(text)
        self._events.append((name, {"text": text}))

    def _flush(self) -> None:
        """Writes what there is; a failure is raised at the next delta or event, which can end."""
        self._gather()
        if not self._events or self._writing or self._failed:
            return
        events, durable = self._taken()
        try:
            append = partial(self._log.append, durable=durable, fence=self._fence)
            done = self._log.at_once(append, self._session, events)
        except Exception as error:
            self._untake(events, durable)  # `finish` tries once more
            self._failed = error
            return
        if done is None:
            self._untake(events, durable)
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Writes on a thread, in order, until there is nothing more: a store that lets wait."""
        try:
            while self._events and not self._failed:
                events, durable = self._taken()
                try:
                    await asyncio.to_thread(
                        self._log.append, self._session, events, durable=durable, fence=self._fence
                    )
                except Exception as error:
                    self._untake(events, durable)
                    self._failed = error
        finally:
            self._writing = None

    def take(self) -> Passing | None:
        """See `Speaker.take`."""
        if self._events:
            self._flush()  # what came before the pieces goes before them
            return None
        if self._writing or self._failed:
            return None
        self._gather()
        events, _ = self._taken()
        return Passing(self._session, events, self._fence) if events else None

    def wait_for(self, writing: asyncio.Task[None]) -> None:
        """See `Speaker.wait_for`."""
        self._writing = writing

    def took(self, given: Passing, error: Exception | None) -> None:
        """See `Speaker.took`."""
        self._writing = None
        if error:
            self._untake(list(given.events), durable=False)
            self._failed = error
        elif self._events:
            self._flush()

    def _taken(self) -> tuple[list[Pending], bool]:
        events, durable = self._events, self._durable
        self._events, self._durable = [], False
        return events, durable

    def _untake(self, events: list[Pending], durable: bool) -> None:
        self._events = [*events, *self._events]
        self._durable = self._durable or durable

    async def _stored(self) -> None:
        """Until everything is in the log."""
        self._flush()
        while self._writing:
            await asyncio.shield(self._writing)
            self._flush()
        if self._failed:
            raise self._failed

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """See `Emit.event`."""
        if self._pieces:
            self._flush()
        if self._failed:
            raise self._failed
        if type == "message":
            self.said.clear()
            self.usage = Usage(**data["usage"])
        elif type == "page_opened":
            self.pages += data["status"] == "ok"
        elif type == "search_finished":
            self._searched(data)
        self._events.append((type, data))
        durable = self._must_last(type, data)
        self._durable = self._durable or durable
        if durable or self._all_answered(type, data):
            await self._stored()
        elif len(self._events) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _must_last(self, type: str, data: Mapping[str, Any]) -> bool:
        """A call that changes something, and its result, outlive a power cut: it never runs twice.

        To look something up twice does no harm, and waiting for the disk would cost more than most
        such calls. What the user was asked and what they said stay, too.
        """
        if type in ("approval_requested", "approval_decided"):
            return True
        if type == "tool_started":
            self._effects.add(data["call_id"])
        return data.get("call_id") in self._effects

    def _all_answered(self, type: str, data: Mapping[str, Any]) -> bool:
        """Whether this is the last result that the step waited for."""
        if type == "tool_call":
            self._calls.add(data["call_id"])
        elif type == "tool_result":
            self._calls.discard(data["call_id"])
            return not self._calls
        return False

    def _searched(self, data: Mapping[str, Any]) -> None:
        way, _, engine = data["by"].partition(":")
        self.searches += 1
        if way == "local" and data["status"] == "ok":
            self.engine = engine or self.engine

    async def activity(self, event: StreamEvent) -> None:
        """See `Emit.activity`."""
        if isinstance(event, SearchStarted):
            await self.event("search_started", {"query": event.query, "by": self.path})
        elif isinstance(event, SearchFinished):
            data: dict[str, Any] = {
                "query": event.query,
                "by": self.path,
                "status": event.status,
                "results": event.results,
                "attempts": [],
            }
            await self.event("search_finished", {**data, "error": event.error})
        elif isinstance(event, PageOpened):
            await self.event("page_opened", {"url": event.url, "status": event.status})
        elif isinstance(event, Notice):
            await self.event("notice", asdict(event))

    def remember(self, written: Iterable[Pending], usage: Usage) -> None:
        """Takes over the counts of a run that goes on."""
        self.usage = usage
        for type, data in written:
            if type == "search_finished":
                self._searched(data)
            elif type == "page_opened":
                self.pages += data["status"] == "ok"

    def stop(self) -> None:
        """No more is written; the run is not over."""
        if self._timer:
            self._timer.cancel()
        self._pieces.clear()

    def partial(self) -> str:
        """What was said since the last message: all there is of an answer that broke off."""
        self._flush()
        return "".join(self.said)

    def path_taken(self) -> str:
        """The search path with the engine that answered, where one did."""
        return (
            f"local:{self.engine}" if self.engine and self.path.startswith("local") else self.path
        )

    async def finish(self, events: list[Pending]) -> None:
        """The last events of the run, in one durable append. Tries again what failed before."""
        if self._timer:
            self._timer.cancel()
        self._gather()
        while self._writing:
            await asyncio.shield(self._writing)
        if isinstance(self._failed, UnsureError):  # written again it might be there twice
            raise self._failed
        self._failed = None
        self._events += events
        self._durable = True
        await self._stored()
