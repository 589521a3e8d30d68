"""One reader of a session's log for all who follow it in this process.

The log is followed once and each event encoded once; a follower costs a wake-up and a write. The
latest frames stay in a window: who falls behind it reads the store again and comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent.log import EventLog
from web.frames import Frames
from web.pace import breathe
from web.pipe import Pipe, chunk

_WINDOW = 256  # frames
_PAGE = 512  # events read from the store at a time


class Hub:
    """The live end of one session. Lives on the server's loop, while it has followers."""

    def __init__(self, log: EventLog, session_id: str, frames: Frames, last: int) -> None:
        self._log = log
        self._session = session_id
        self._frames = frames
        self._recent: deque[tuple[int, bytes]] = deque()
        self._joined: dict[int, bytes] = {}
        self._news = asyncio.Event()
        self._attending: dict[Pipe, asyncio.Future[int]] = {}
        self._failure: Exception | None = None
        self.followers = 0
        self.ended = False
        self.floor = last  # everything after this number is in the window
        self.last = self.floor
        self._reader = asyncio.create_task(self._read(), name=f"hub {session_id}")

    def close(self) -> None:
        """Stops reading."""
        self._reader.cancel()

    def since(self, seq: int) -> bytes:
        """The frames after `seq`, which must not lie before `floor`; the same bytes for all."""
        if seq >= self.last:
            return b""
        joined = self._joined.get(seq)
        if joined is None:
            joined = b"".join([data for number, data in self._recent if number > seq])
            self._joined[seq] = joined
        return joined

    async def news(self) -> None:
        """Until something has been appended, or the session is gone (`ended`)."""
        if not self.ended:
            await self._news.wait()
        if self._failure:
            raise self._failure

    async def attend(self, pipe: Pipe) -> int:
        """Writes every frame after `last` to this pipe as it comes; the fastest way to follow.

        Returns the number of the last one written, when the pipe takes no more or the session is
        gone: then go on from there with `since` and `news`.
        """
        if self.ended:
            await self.news()
            return self.last
        left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._attending[pipe] = left
        try:
            return await left
        finally:
            self._attending.pop(pipe, None)

    def _hand_out(self, before: int) -> None:
        """Gives the frames after `before` to those who attend."""
        data = b"" if before < self.floor else self.since(before)
        framed = chunk(data) if data else b""
        for pipe, left in tuple(self._attending.items()):
            if framed and pipe.ready():
                pipe.write(framed)
            else:
                self._leave(pipe, left, before)

    def _leave(self, pipe: Pipe, left: asyncio.Future[int], last: int) -> None:
        del self._attending[pipe]
        if not left.done():
            left.set_result(last)

    async def _read(self) -> None:
        of, recent = self._frames.of, self._recent
        try:
            async with aclosing(self._log.follow(self._session, self.floor)) as batches:
                async for batch in batches:
                    recent.extend((event.seq, of(self._session, event)) for event in batch)
                    while len(recent) > _WINDOW:
                        self.floor = recent.popleft()[0]
                    before, self.last = self.last, batch[-1].seq
                    self._joined.clear()
                    self._hand_out(before)
                    self._wake()
                    await breathe()
        except Exception as error:
            self._failure = error
        finally:
            self.ended = True
            for pipe, left in tuple(self._attending.items()):
                self._leave(pipe, left, self.last)
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news.clear()


class Hubs:
    """The hubs there are, by session."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._frames = Frames()
        self._hubs: dict[str, Hub] = {}

    async def join(self, session_id: str) -> Hub:
        """The session's hub with one follower more."""
        hub = self._live(session_id)
        if hub is None:
            last = await self._log.aside(self._log.last_seq, session_id)
            hub = self._live(session_id)  # another may have come meanwhile
            if hub is None:
                hub = Hub(self._log, session_id, self._frames, last or 0)
                self._hubs[session_id] = hub
        hub.followers += 1
        return hub

    def _live(self, session_id: str) -> Hub | None:
        hub = self._hubs.get(session_id)
        return None if hub is None or hub.ended else hub

    def leave(self, session_id: str, hub: Hub) -> None:
        """One follower less; the last one puts out the light."""
        hub.followers -= 1
        if not hub.followers:
            hub.close()
            if self._hubs.get(session_id) is hub:
                del self._hubs[session_id]

    async def stored(
        self, session_id: str, after: int, most: int
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """What the store holds after this number, `most` events a piece: (last number, bytes).

        It is read a page at a time, so that a long session costs no more memory than a short one.
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
