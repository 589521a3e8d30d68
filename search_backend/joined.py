"""Equal work asked for at the same moment is done once, and all get what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.outcome: T | None = None


class Joined(Generic[T]):
    """Work by key. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight[T]] = {}

    def run(self, key: Hashable, work: Callable[[], T], seconds: float) -> T:
        """What `work` gives, or equal work that is under way.

        Whoever joins waits at most `seconds`, and works alone when the other took longer or failed.
        """
        with self._lock:
            flight = self._flights.get(key)
            first = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
        if not first:
            flight.landed.wait(seconds)
            return work() if flight.outcome is None else flight.outcome
        try:
            flight.outcome = work()
            return flight.outcome
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
