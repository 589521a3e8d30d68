"""Answers kept for a while, and equal searches at the same moment done once.

`Store` is the whole of what a store has to offer. `Kept` is one in memory; `OnDisk` has another
one before it and keeps a copy of everything for the next start.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Protocol

from search_backend.disk_cache import Disk
from search_backend.joined import Joined
from search_backend.types import Attempt, Filtered, Problem, SearchAnswer, SearchResult

MOST_ANSWERS = 512
KIND = "search"


class Store(Protocol):
    """Where answers are kept. Safe to use from several threads."""

    def get(self, key: Hashable) -> tuple[SearchAnswer, float] | None:
        """The answer and its age in seconds, unless it is too old or gone."""

    def put(self, key: Hashable, answer: SearchAnswer, seconds: float, age: float = 0.0) -> None:
        """Keep it for `seconds` from now; it is `age` seconds old already."""


class Kept:
    """The last answers, in memory."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_ANSWERS) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        # Key -> until when, since when, what.
        self._answers: OrderedDict[Hashable, tuple[float, float, SearchAnswer]] = OrderedDict()

    def get(self, key: Hashable) -> tuple[SearchAnswer, float] | None:
        """The answer and its age, unless it is too old or gone."""
        with self._lock:
            entry = self._answers.get(key)
            if entry is None:
                return None
            now = self._clock()
            if now >= entry[0]:
                del self._answers[key]
                return None
            self._answers.move_to_end(key)
            return entry[2], now - entry[1]

    def put(self, key: Hashable, answer: SearchAnswer, seconds: float, age: float = 0.0) -> None:
        """Keep it; the answer unused for longest goes when there are too many."""
        if seconds <= 0:
            return
        with self._lock:
            now = self._clock()
            self._answers[key] = (now + seconds, now - age, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)


class OnDisk:
    """A store on disk behind one in memory. `scope` sets apart answers of other settings."""

    def __init__(self, front: Store, disk: Disk, scope: str, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._front = front
        self._disk = disk
        self._scope = scope
        self._clock = clock

    def get(self, key: Hashable) -> tuple[SearchAnswer, float] | None:
        """From memory, else from the disk, and then from memory the next time."""
        if known := self._front.get(key):
            return known
        entry = self._disk.get(KIND, self._name(key))
        if entry is None:
            return None
        age = self._clock() - entry.made
        try:
            answer, seconds = _read(entry.value), float(entry.value["seconds"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # written by another version
        self._front.put(key, answer, seconds - age, age)
        return answer, age

    def put(self, key: Hashable, answer: SearchAnswer, seconds: float, age: float = 0.0) -> None:
        """Into both."""
        self._front.put(key, answer, seconds, age)
        self._disk.put(KIND, self._name(key), answer.as_json() | {"seconds": seconds}, seconds)

    def _name(self, key: Hashable) -> str:
        return f"{self._scope}\n{key!r}"


class Shared:
    """Searches through a store, equal ones joined while they are under way."""

    def __init__(
        self, front: Kept, behind: Store | None, keep: Callable[[SearchAnswer], float]
    ) -> None:
        """`behind` is the store that has `front` before it; `keep` says for how many seconds an
        answer may be given again."""
        self._front = front
        self._store: Store = behind or front
        self._keep = keep
        self._joined = Joined[SearchAnswer]()

    def known(self, key: Hashable) -> SearchAnswer | None:
        """The answer in memory, marked as kept."""
        return _marked(self._front.get(key))

    def answer(
        self, key: Hashable, search: Callable[[], SearchAnswer], *, fresh: bool, seconds: float
    ) -> SearchAnswer:
        """The kept answer unless `fresh`, that of an equal search under way, or a new one.

        Whoever joins another's search waits at most `seconds` for it and then searches alone.
        """
        if not fresh and (known := _marked(self._store.get(key))):
            return known

        def work() -> SearchAnswer:
            # An equal search may have ended between the look above and this one.
            if not fresh and (known := self.known(key)):
                return known
            answer = search()
            # A failure is nobody's to keep: the next search may work.
            if answer.status == "ok":
                self._store.put(key, answer, self._keep(answer))
            return answer

        return self._joined.run(key, work, seconds)


def _marked(found: tuple[SearchAnswer, float] | None) -> SearchAnswer | None:
    return replace(found[0], cached=True, age=int(found[1])) if found else None


def _read(value: dict[str, Any]) -> SearchAnswer:
    """The reverse of `as_json`. Raises KeyError, TypeError, ValueError for anything else."""
    attempts = tuple(
        Attempt(
            **{**attempt, "error": Problem(**error) if (error := attempt.get("error")) else None}
        )
        for attempt in value["attempts"]
    )
    dropped = value.get("filtered")
    return SearchAnswer(
        query=value["query"],
        engine=value["engine"],
        status=value["status"],
        results=tuple(SearchResult(**result) for result in value["results"]),
        attempts=attempts,
        filtered=Filtered(**dropped) if dropped else None,
        not_applied=tuple(value.get("not_applied", ())),
    )
