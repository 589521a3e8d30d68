"""Search answers kept in memory and on disk, and equal work of several threads done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from searchloop.search_backend.cache.disk import Disk
from searchloop.search_backend.cache.kept import Kept
from searchloop.search_backend.types import (
    NO_CHAT,
    Attempt,
    Chat,
    Filtered,
    Problem,
    Ranking,
    SearchAnswer,
    SearchResult,
)

T = TypeVar("T")
MOST_ANSWERS = 512
KIND = "search"


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
    """The last answers, in memory and, with `disk`, in its file. Safe for several threads."""

    def __init__(
        self,
        clock: Callable[[], float],
        disk: Disk | None = None,
        scope: str = "",
        most: int = MOST_ANSWERS,
    ) -> None:
        """`clock` gives monotonic seconds; `scope` separates answers of different settings."""
        self._kept = Kept(KIND, clock, disk, _read, most)
        self._scope = scope
        self._flights = SingleFlight[SearchAnswer]()

    def get(self, key: Hashable, chat: Chat = NO_CHAT) -> SearchAnswer | None:
        """Returns the answer, marked as cached and with its age; None if it is too old or gone.

        From now on it is `chat`'s as well.
        """
        found = self._kept.get(self._name(key), chat)
        return replace(found[0], cached=True, age=int(found[1])) if found else None

    def put(
        self, key: Hashable, answer: SearchAnswer, seconds: float, chat: Chat = NO_CHAT
    ) -> None:
        """Keeps `answer` for `seconds`; the answers unused for longest make room."""
        written = answer.as_json(explain=True) | {"seconds": seconds}
        self._kept.put(self._name(key), answer, seconds, chat, written)

    def forget(self, chat: str) -> None:
        """Drops the answers in memory that only this chat asked for."""
        self._kept.forget(chat)

    def answer(
        self,
        key: Hashable,
        search: Callable[[], SearchAnswer],
        lifetime: Callable[[SearchAnswer], float],
        *,
        fresh: bool,
        seconds: float,
        chat: Chat = NO_CHAT,
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
        self.get(key, chat)  # it may be that of another chat's search, which ran at the same time
        return answer

    def _name(self, key: Hashable) -> str:
        return f"{self._scope}\n{key!r}"


def _read(value: dict[str, Any]) -> tuple[SearchAnswer, float]:
    """Reverses `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    dropped = value.get("filtered")
    answer = SearchAnswer(
        query=value["query"],
        engine=value["engine"],
        status=value["status"],
        results=tuple(SearchResult(**result) for result in value["results"]),
        attempts=tuple(_attempt(**attempt) for attempt in value["attempts"]),
        filtered=Filtered(**dropped) if dropped else None,
        not_applied=tuple(value.get("not_applied", ())),
        ranking=tuple(Ranking(r["url"], tuple(r["reasons"])) for r in value.get("ranking", ())),
    )
    return answer, float(value["seconds"])


def _attempt(error: dict[str, str] | None = None, **values: Any) -> Attempt:
    return Attempt(**values, error=Problem(**error) if error else None)
