"""Search answers kept in memory and on disk, and equal work of several threads done once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from searchloop.search_backend.cache.chats import Owners
from searchloop.search_backend.cache.disk import Disk
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
        self._clock = clock
        self._disk = disk
        self._scope = scope
        self._most = most
        self._lock = threading.Lock()
        # Key -> until when, since when, what.
        self._answers: OrderedDict[Hashable, tuple[float, float, SearchAnswer]] = OrderedDict()
        self._flights = SingleFlight[SearchAnswer]()
        self._owners = Owners()

    def get(self, key: Hashable, chat: Chat = NO_CHAT) -> SearchAnswer | None:
        """Returns the answer, marked as cached and with its age; None if it is too old or gone.

        From now on it is `chat`'s as well.
        """
        with self._lock:
            now = self._clock()
            until, since, answer = self._answers.get(key) or (0.0, 0.0, None)
            if answer is not None and now < until:
                self._answers.move_to_end(key)
                if self._owners.add(key, chat.id) and self._disk:
                    self._disk.own(KIND, self._name(key), chat)
                return replace(answer, cached=True, age=int(now - since))
            self._answers.pop(key, None)
            self._owners.drop(key)
        entry = self._disk.get(KIND, self._name(key), chat) if self._disk else None
        if entry is None:
            return None
        try:
            answer, seconds = _read(entry.value), float(entry.value["seconds"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # written by another version
        self._hold(key, answer, seconds - entry.age, entry.age, chat)
        return replace(answer, cached=True, age=int(entry.age))

    def put(
        self, key: Hashable, answer: SearchAnswer, seconds: float, chat: Chat = NO_CHAT
    ) -> None:
        """Keeps `answer` for `seconds`; the answers unused for longest make room."""
        self._hold(key, answer, seconds, 0.0, chat)
        if self._disk:
            value = answer.as_json(explain=True) | {"seconds": seconds}
            self._disk.put(KIND, self._name(key), value, seconds, chat)

    def forget(self, chat: str) -> None:
        """Drops the answers in memory that only this chat asked for."""
        with self._lock:
            for key in self._owners.forget(chat):
                self._answers.pop(key, None)
                self._owners.drop(key)

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

    def _hold(
        self, key: Hashable, answer: SearchAnswer, seconds: float, age: float, chat: Chat
    ) -> None:
        if seconds <= 0:
            return
        with self._lock:
            if not self._owners.add(key, chat.id):
                return
            now = self._clock()
            self._answers[key] = (now + seconds, now - age, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._owners.drop(self._answers.popitem(last=False)[0])

    def _name(self, key: Hashable) -> str:
        return f"{self._scope}\n{key!r}"


def _read(value: dict[str, Any]) -> SearchAnswer:
    """Reverses `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    dropped = value.get("filtered")
    return SearchAnswer(
        query=value["query"],
        engine=value["engine"],
        status=value["status"],
        results=tuple(SearchResult(**result) for result in value["results"]),
        attempts=tuple(_attempt(**attempt) for attempt in value["attempts"]),
        filtered=Filtered(**dropped) if dropped else None,
        not_applied=tuple(value.get("not_applied", ())),
        ranking=tuple(Ranking(r["url"], tuple(r["reasons"])) for r in value.get("ranking", ())),
    )


def _attempt(error: dict[str, str] | None = None, **values: Any) -> Attempt:
    return Attempt(**values, error=Problem(**error) if error else None)
