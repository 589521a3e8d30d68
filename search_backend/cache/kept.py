"""Answers and pages that are kept in memory, each with its age and the chats that brought it.

Nothing of it outlives the program. Equal work of several threads is done once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from searchloop.search_backend.types import NOBODY, Owner

T = TypeVar("T")
MOST_CHARACTERS = 8_000_000  # of all values together, as Python writes them


class SingleFlight(Generic[T]):
    """Joins calls with equal keys that run at the same time. Safe for several threads."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, Future[T]] = {}

    def run(self, key: Hashable, work: Callable[[], T], seconds: float) -> T:
        """Returns the result of `work`, or of an equal call that is running.

        A caller that joins waits at most `seconds` and works alone if the other took longer or
        failed.
        """
        mine = Future[T]()
        flight = self._flights.setdefault(key, mine)
        if flight is not mine:
            with suppress(CancelledError, TimeoutError):
                return flight.result(seconds)
            return work()
        try:
            mine.set_result(result := work())
            return result
        finally:
            del self._flights[key]
            mine.cancel()  # does nothing to one that has its result


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value, when it came and until when it counts, and the ids of its chats."""

    value: Any
    made: float
    until: float
    size: int
    chats: set[str]


class Cache:
    """Values by type and key; the oldest go first. Safe for several threads."""

    def __init__(self, clock: Callable[[], float] = time.time, most: int = MOST_CHARACTERS) -> None:
        """`clock` gives seconds; `most` are the characters that all values may have together."""
        self._clock, self._most = clock, most
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}  # the newest last
        self._gone = set[str]()  # forgotten chats: what was on its way for them is not kept

    def get(self, kind: type[T], key: str, chat: Owner = NOBODY) -> tuple[T, float] | None:
        """Returns the value of a type and its age in seconds; None if it is too old or unknown. It
        is the chat's too."""
        with self._lock:
            entry, now = self._entries.get((kind.__name__, key)), self._clock()
            if entry is None or not entry.made <= now < entry.until:
                return None
            entry.chats.update({chat.id} - self._gone - {""})
            return entry.value, now - entry.made

    def put(self, key: str, value: Any, seconds: float, chat: Owner = NOBODY) -> None:
        """Keeps a value for `seconds`, unless its chat was forgotten meanwhile."""
        name, now, size = (type(value).__name__, key), self._clock(), len(repr(value))
        with self._lock:
            self._entries.pop(name, None)
            if chat.id not in self._gone and size <= self._most:
                chats = {chat.id} - {""}
                self._entries[name] = _Entry(value, now, now + seconds, size, chats)
            left = self._most - sum(entry.size for entry in self._entries.values())
            for old in [*self._entries] if left < 0 else ():
                if left < 0:
                    left += self._entries.pop(old).size

    def forget(self, chat: str) -> int:
        """Removes what only this chat brought; returns the number of values."""
        with self._lock:
            self._gone.add(chat)
            alone = [name for name, entry in self._entries.items() if entry.chats == {chat}]
            for entry in self._entries.values():
                entry.chats.discard(chat)
            for name in alone:
                del self._entries[name]
            return len(alone)
