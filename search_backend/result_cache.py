"""Answers kept for a while, and equal searches at the same moment done once.

`Kept` is the whole of what a store has to offer; another one (on disk, shared) takes its place by
being passed to `Shared`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Protocol

from search_backend.types import SearchAnswer

MOST_ANSWERS = 512


class Store(Protocol):
    """Where answers are kept. Safe to use from several threads."""

    def get(self, key: Hashable) -> SearchAnswer | None:
        """The answer, unless it is too old or gone."""

    def put(self, key: Hashable, answer: SearchAnswer) -> None:
        """Keep it."""


class Kept:
    """The last answers, in memory, for `seconds` each; with 0 seconds it keeps nothing."""

    def __init__(
        self, clock: Callable[[], float], seconds: float, most: int = MOST_ANSWERS
    ) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, tuple[float, SearchAnswer]] = OrderedDict()

    def get(self, key: Hashable) -> SearchAnswer | None:
        """The answer, unless it is too old or gone."""
        with self._lock:
            entry = self._answers.get(key)
            if entry is None:
                return None
            if self._clock() >= entry[0]:
                del self._answers[key]
                return None
            self._answers.move_to_end(key)
            return entry[1]

    def put(self, key: Hashable, answer: SearchAnswer) -> None:
        """Keep it; the answer unused for longest goes when there are too many."""
        if self._seconds <= 0:
            return
        with self._lock:
            self._answers[key] = (self._clock() + self._seconds, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)


class _Flight:
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.answer: SearchAnswer | None = None


class Shared:
    """Searches through a store, equal ones joined while they are under way."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}

    def answer(
        self, key: Hashable, search: Callable[[], SearchAnswer], *, fresh: bool, seconds: float
    ) -> SearchAnswer:
        """The kept answer unless `fresh`, that of an equal search under way, or a new one.

        Whoever joins another's search waits at most `seconds` for it and then searches alone.
        """
        if not fresh and (known := self._store.get(key)):
            return replace(known, cached=True)
        with self._lock:
            flight = self._flights.get(key)
            first = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
        if not first:
            flight.landed.wait(seconds)
            return flight.answer or search()
        try:
            flight.answer = search()
            # A failure is nobody's to keep: the next search may work.
            if flight.answer.status == "ok":
                self._store.put(key, flight.answer)
            return flight.answer
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
