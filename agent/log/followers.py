"""Followers of sessions: each gets the events that are appended, in this process or another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from searchloop.agent.log.contract import Database, Heard, Observer
from searchloop.agent.log.events import Event, event_of

if TYPE_CHECKING:
    from searchloop.agent.log.find import ChatSearch


class Follower:
    """A bounded queue from any thread to one reader on one event loop."""

    LIMIT = 256

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._waiting: asyncio.Event = asyncio.Event()
        self._queue: list[Event] = []
        self._lagging = False

    def push(self, events: list[Event] | None) -> None:
        """Adds new events, or (None) makes the reader read the store; any thread may call this."""
        if threading.get_ident() == self._thread:
            self._put(events)
        else:
            with suppress(RuntimeError):  # the reader's loop is closed: nobody is waiting
                self._loop.call_soon_threadsafe(self._put, events)

    def _put(self, events: list[Event] | None) -> None:
        if events is None or len(self._queue) + len(events) > self.LIMIT:
            self._queue.clear()
            self._lagging = True
        elif not self._lagging:
            self._queue.extend(events)
        self._waiting.set()

    def take(self, after: int) -> list[Event] | None:
        """Returns the queued events after `after`; None if one is missing: read the store then."""
        queue, self._queue = self._queue, []
        fresh = [e for e in queue if e.seq > after]
        whole = all(e.seq == seq for seq, e in enumerate(fresh, after + 1))
        return fresh if whole else None

    async def wait(self, seconds: float) -> bool:
        """Waits for events; True after an overflow or silence: the reader must read the store."""
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.wait()
        except TimeoutError:
            return True
        self._waiting.clear()
        lagging, self._lagging = self._lagging, False
        return lagging


class Followers(dict[str, set[Follower]]):
    """The followers of each session in this process, by the session's id."""

    def join(self, session_id: str) -> Follower:
        """Adds a follower whose reader is on the running event loop."""
        follower = Follower(asyncio.get_running_loop())
        self.setdefault(session_id, set()).add(follower)
        return follower

    def leave(self, session_id: str, follower: Follower) -> None:
        """Removes a follower."""
        group = self.get(session_id, set())
        group.discard(follower)
        if not group:
            self.pop(session_id, None)

    def push(self, session_id: str | None, events: list[Event] | None) -> None:
        """Passes new events on to a session's followers; None is for every session or event."""
        for session in (session_id,) if session_id else tuple(self):
            for follower in tuple(self.get(session, ())):
                follower.push(events)

    def receive(self, news: Mapping[str, Any]) -> None:
        """Receives news of another process: events, or a session to read from the store."""
        given, last = news.get("events") or [], news.get("last", 0)
        first = last - len(given) + 1
        if given:
            events = [event_of(seq, e[0], e[1], news["at"]) for seq, e in enumerate(given, first)]
            self.push(str(news.get("session")), events)
        elif not news or "session" in news:  # some may be lost; or too long for a notification
            self.push(news.get("session"), None)


class SharedStore:
    """What the logs of all persons have in common; `observer` hears what this process appends."""

    def __init__(self, db: Database, observer: Observer) -> None:
        self.db, self.observer = db, observer
        self.followers = Followers()
        self.hearing: list[Heard] = []
        self.search: ChatSearch | None = None

    def heard(self, news: Mapping[str, Any]) -> None:
        """Hears news of other processes."""
        for heard in tuple(self.hearing):
            heard(news)
        self.followers.receive(news)
