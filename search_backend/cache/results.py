"""Search answers that are kept, and equal work of several threads done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Generic, TypeVar

from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.types import NOBODY, Owner, SearchAnswer

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.outcome: T | None = None


class SingleFlight(Generic[T]):
    """Joins calls with equal keys that run at the same time. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight[T]] = {}

    def run(self, key: Hashable, work: Callable[[], T], seconds: float) -> T:
        """Returns the result of `work`, or of an equal call that is running.

        A caller that joins waits at most `seconds` and works alone if the other took longer or
        failed.
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


class AnswerCache:
    """The last answers. Safe for several threads."""

    def __init__(self, cache: Cache, scope: str = "") -> None:
        """`cache` keeps them; `scope` separates answers of different settings."""
        self._cache = cache
        self._scope = scope
        self._flights = SingleFlight[SearchAnswer]()

    def get(self, key: Hashable, chat: Owner = NOBODY) -> SearchAnswer | None:
        """Returns the answer, marked as cached and with its age; None if it is too old or gone.

        From now on it is `chat`'s as well.
        """
        if found := self._cache.get(SearchAnswer, self._name(key), chat):
            return replace(found[0], cached=True, age=int(found[1]))
        return None

    def put(
        self, key: Hashable, answer: SearchAnswer, seconds: float, chat: Owner = NOBODY
    ) -> None:
        """Keeps `answer` for `seconds`; the oldest answers make room."""
        self._cache.put(self._name(key), answer, seconds, chat)

    def answer(
        self,
        key: Hashable,
        search: Callable[[], SearchAnswer],
        lifetime: Callable[[SearchAnswer], float],
        *,
        fresh: bool,
        seconds: float,
        chat: Owner = NOBODY,
    ) -> SearchAnswer:
        """Returns a cached answer unless `fresh`, that of an equal running search, or a new one.

        A caller that joins a search waits at most `seconds` for it. A good answer is kept for the
        seconds that `lifetime` returns; a failure is not kept, as the next search may work.
        """
        if not fresh and (known := self.get(key, chat)):
            return known

        def work() -> SearchAnswer:
            # An equal search may have ended between the look above and this one.
            if not fresh and (known := self.get(key, chat)):
                return known
            answer = search()
            if answer.status == "ok":
                self.put(key, answer, lifetime(answer), chat)
            return answer

        answer = self._flights.run((key, chat.temporary), work, seconds)
        if chat.id:  # it may be that of another chat's search, which ran at the same time
            self.get(key, chat)
        return answer

    def _name(self, key: Hashable) -> str:
        return f"{self._scope}\n{key!r}"
