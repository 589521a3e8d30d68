"""Followers of a session: a reader that lags loses its queue, not its place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agent.events import Event, event_of


class Follower:
    """A bounded queue between the log and one reader; fed from any thread, read on one loop."""

    LIMIT = 256

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._waiting: asyncio.Event = asyncio.Event()
        self._queue: list[Event] = []
        self._lagging = False

    def push(self, events: list[Event]) -> None:
        """New events, from whatever thread appended them."""
        if threading.get_ident() == self._thread:
            self._put(events)
        else:
            self._call(self._put, events)

    def wake(self) -> None:
        """Makes the reader look at the store."""
        self._call(self._lag)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the reader's loop is closed: nobody is waiting
            self._loop.call_soon_threadsafe(function, *arguments)

    def _lag(self) -> None:
        self._lagging = True
        self._waiting.set()

    def _put(self, events: list[Event]) -> None:
        if len(self._queue) + len(events) > self.LIMIT:
            self._queue.clear()
            self._lagging = True
        if not self._lagging:
            self._queue.extend(events)
        self._waiting.set()

    def take(self, after: int) -> list[Event] | None:
        """What has come since, without what the reader has had from the store.

        None when a number is missing: two threads may push out of order, and another process does
        not push at all. The store knows.
        """
        queue, self._queue = self._queue, []
        fresh = [e for e in queue if e.seq > after]
        whole = all(e.seq == seq for seq, e in enumerate(fresh, after + 1))
        return fresh if whole else None

    async def wait(self, seconds: float) -> bool:
        """True when the store has to be read: the queue overflowed, or nothing came for long."""
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.wait()
        except TimeoutError:
            return True
        self._waiting.clear()
        lagging, self._lagging = self._lagging, False
        return lagging


class Followers:
    """All who follow a session in this process, by session."""

    def __init__(self) -> None:
        self._groups: dict[str, set[Follower]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def of(self, session_id: str) -> tuple[Follower, ...]:
        """Those of one session."""
        return tuple(self._groups.get(session_id, ()))

    def join(self, session_id: str) -> Follower:
        """One more, whose reader is on the loop that runs."""
        follower = Follower(asyncio.get_running_loop())
        self._groups.setdefault(session_id, set()).add(follower)
        return follower

    def leave(self, session_id: str, follower: Follower) -> None:
        """One less."""
        group = self._groups.get(session_id, set())
        group.discard(follower)
        if not group:
            self._groups.pop(session_id, None)

    def push(self, session_id: str, events: list[Event]) -> None:
        """New events, from whatever thread."""
        for follower in self.of(session_id):
            follower.push(events)

    def wake(self, session_id: str | None) -> None:
        """Makes the readers of a session look at the store; of all sessions without one."""
        for session in (session_id,) if session_id else tuple(self._groups):
            for follower in self.of(session):
                follower.wake()

    def told(self, news: Mapping[str, Any]) -> None:
        """What another process tells: its events, or whose readers have to look at the store."""
        given, last = news.get("events") or [], news.get("last", 0)
        first = last - len(given) + 1
        if given:
            events = [event_of(seq, e[0], e[1], news["at"]) for seq, e in enumerate(given, first)]
            self.push(str(news.get("session")), events)
        elif not news or "session" in news:  # some may be lost; too much for a notification
            self.wake(news.get("session"))
