"""What all runs of a process are saying at one moment is one transaction.

A run that speaks alone is written at once. When many do, each waits a moment for the others, the
longer the more there is to do: a store is asked a hundred times a second at the most, and a loop
that is full gathers words instead of falling behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import Protocol

from agent.errors import Conflict
from agent.log import EventLog
from agent.parcel import Passing

GAP = 0.01  # seconds between two writes, at the least
_MOST = 0.08
_SHARE = 4.0  # how many times as long as one turn of the loop nothing is written


class Speaker(Protocol):
    """A run that has something to say."""

    def take(self) -> Passing | None:
        """What it says now; None when there is nothing, or something else goes first."""

    def wait_for(self, writing: asyncio.Task[None]) -> None:
        """What was taken is being written, and nothing else of it may be meanwhile."""

    def took(self, given: Passing, error: Exception | None) -> None:
        """What was taken has been written, or why it was not."""


class Together:
    """Use on one loop."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._wanting: dict[Speaker, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._next = 0.0

    def want(self, speaker: Speaker) -> None:
        """Has this one's words written, at once or in a moment."""
        self._wanting[speaker] = None
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
        loop.call_soon(self._turned, loop.time())
        speakers, self._wanting = self._wanting, {}
        taken = [(each, given) for each in speakers if (given := each.take())]
        if not taken:
            return
        words = [passing for _, passing in taken]
        try:
            done = self.log.at_once(self.log.append_deltas, words)
        except Exception as error:
            _tell(taken, error)
            return
        if done is not None:
            _tell(taken, done)
            return
        self._writing = loop.create_task(self._write(taken), context=Context())
        for speaker, _ in taken:
            speaker.wait_for(self._writing)

    def _turned(self, began: float) -> None:
        """The loop has been round once since."""
        turn = asyncio.get_running_loop().time() - began
        self._next = max(self._next, began + min(_SHARE * turn, _MOST))

    async def _write(self, taken: Sequence[tuple[Speaker, Passing]]) -> None:
        """Writes on a thread: a store that lets wait. Who speaks meanwhile goes together next."""
        result: Exception | Sequence[object] = ()
        try:
            given = [passing for _, passing in taken]
            result = await asyncio.to_thread(self.log.append_deltas, given)
        except Exception as error:
            result = error
        finally:
            self._writing = None
            _tell(taken, result)
        if self._wanting:
            self.want(next(iter(self._wanting)))


def _tell(taken: Sequence[tuple[Speaker, Passing]], result: Exception | Sequence[object]) -> None:
    """Each what became of its words; all the same when nothing was written."""
    for place, (speaker, given) in enumerate(taken):
        if isinstance(result, Exception):
            speaker.took(given, result)
        else:
            own = result[place] if place < len(result) else None
            speaker.took(given, own if isinstance(own, Conflict) else None)
