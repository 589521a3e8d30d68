"""Reads a session's log once for all who follow it in this process.

A hub follows the log and encodes each event once; a follower costs a wake-up and a write. The
latest frames stay in a window. A follower that falls behind it reads the store and comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from searchloop.agent.log import EventLog
from searchloop.web.stream.view import FrameCache

_WINDOW = 256  # frames
_PAGE = 512  # events read from the store at a time
_FAST = 0.001  # seconds; a loop that turns faster has little to do
_REST = 2.0  # pause in turns of the loop
_LONGEST_REST = 0.1  # seconds


async def breathe() -> None:
    """Lets the followers have the loop, then pauses for twice as long as that took.

    A loop with little to do turns in less than a millisecond, so one reader sees each word as it
    comes. A full loop gathers events instead of falling behind: a write costs, its size does not.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    turn = loop.time() - began
    if turn > _FAST:
        await asyncio.sleep(min(_REST * turn, _LONGEST_REST))


class Hub:
    """The live end of one session. Lives on the server's loop while it has followers."""

    def __init__(self, log: EventLog, session_id: str, frames: FrameCache, last: int) -> None:
        self._log = log
        self._session = session_id
        self._frames = frames
        self._recent: deque[tuple[int, bytes]] = deque()
        self._joined: dict[int, bytes] = {}
        self._news = asyncio.Event()
        self._failure: Exception | None = None
        self.followers = 0
        self.ended = False
        self.floor = last  # the window holds every event after this number
        self.last = last
        self._reader = asyncio.create_task(self._read(), name=f"hub {session_id}")

    def close(self) -> None:
        """Stops reading."""
        self._reader.cancel()

    def since(self, seq: int) -> bytes:
        """Returns the frames after `seq`, which must not lie before `floor`."""
        if seq >= self.last:
            return b""
        joined = self._joined.get(seq)
        if joined is None:
            joined = b"".join([data for number, data in self._recent if number > seq])
            self._joined[seq] = joined
        return joined

    async def news(self) -> None:
        """Waits until an event was appended or the session is gone (`ended`)."""
        if not self.ended:
            await self._news.wait()
        if self._failure:
            raise self._failure

    async def _read(self) -> None:
        of, recent = self._frames.of, self._recent
        try:
            async with aclosing(self._log.follow(self._session, self.floor)) as batches:
                async for batch in batches:
                    recent.extend((event.seq, of(self._session, event)) for event in batch)
                    while len(recent) > _WINDOW:
                        self.floor = recent.popleft()[0]
                    self.last = batch[-1].seq
                    self._joined.clear()
                    self._wake()
                    await breathe()
        except Exception as error:
            self._failure = error
        finally:
            self.ended = True
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news.clear()


class HubRegistry:
    """The open hubs of this process, by session."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._frames = FrameCache()
        self._hubs: dict[str, Hub] = {}

    async def join(self, session_id: str) -> Hub:
        """Returns the session's hub, opened if need be, and counts one follower more."""
        hub = self._live(session_id)
        if hub is None:
            last = await self._log.aside(self._log.last_seq, session_id)
            hub = self._live(session_id)  # another follower may have opened it meanwhile
            if hub is None:
                hub = Hub(self._log, session_id, self._frames, last or 0)
                self._hubs[session_id] = hub
        hub.followers += 1
        return hub

    def _live(self, session_id: str) -> Hub | None:
        hub = self._hubs.get(session_id)
        return None if hub is None or hub.ended else hub

    def leave(self, session_id: str, hub: Hub) -> None:
        """Counts one follower less. The last one closes the hub."""
        hub.followers -= 1
        if not hub.followers:
            hub.close()
            if self._hubs.get(session_id) is hub:
                del self._hubs[session_id]

    async def stored(
        self, session_id: str, after: int, most: int
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yields (last number, frames) of the events stored after this number, `most` at a time.

        It reads the store a page at a time, so a long session needs no more memory than a short
        one.
        """
        of = self._frames.of
        while True:
            events = await self._log.aside(self._log.read, session_id, after, _PAGE)
            for i in range(0, len(events), most):
                piece = events[i : i + most]
                after = piece[-1].seq
                yield after, b"".join([of(session_id, event) for event in piece])
            if len(events) < _PAGE:
                return
