"""Values of one kind in memory and on disk, each with its age and the chats that brought it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Any, Generic, TypeVar

from searchloop.search_backend.cache.chats import Owners
from searchloop.search_backend.cache.disk import Disk
from searchloop.search_backend.types import Chat

T = TypeVar("T")


class Kept(Generic[T]):
    """At most `most` values, those used last, that weigh `heaviest` together. Safe for several
    threads."""

    def __init__(
        self,
        kind: str,
        clock: Callable[[], float],
        disk: Disk | None,
        read: Callable[[dict[str, Any]], tuple[T, float]],
        most: int,
        weigh: Callable[[T], int] = lambda _value: 0,
        heaviest: float = inf,
    ) -> None:
        """`clock` gives seconds. `read` makes the value and its lifetime of what is on disk; it
        raises KeyError, TypeError, ValueError or AttributeError for what another version wrote."""
        self._kind, self._clock, self._disk, self._read = kind, clock, disk, read
        self._most, self._weigh, self._heaviest = most, weigh, heaviest
        self._lock = threading.Lock()
        # Key -> since when, until when, what.
        self._values: OrderedDict[str, tuple[float, float, T]] = OrderedDict()
        self._owners = Owners()
        self._weight = 0

    def get(self, key: str, chat: Chat) -> tuple[T, float] | None:
        """Returns the value and its age; None if it is too old or unknown. It is the chat's too."""
        with self._lock:
            now = self._clock()
            if found := self._values.get(key):
                since, until, value = found
                if since <= now < until:
                    self._values.move_to_end(key)
                    if self._owners.add(key, chat.id) and self._disk:
                        self._disk.own(self._kind, key, chat)
                    return value, now - since
                self._drop(key)
        entry = self._disk.get(self._kind, key, chat) if self._disk else None
        if entry is None:
            return None
        try:
            value, seconds = self._read(entry.value)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        self._hold(key, value, entry.age, seconds, chat)
        return value, entry.age

    def put(
        self, key: str, value: T, seconds: float, chat: Chat, written: dict[str, Any] | None
    ) -> None:
        """Keeps a value of now for `seconds`; on disk as it is `written`, None for not at all."""
        self._hold(key, value, 0.0, seconds, chat)
        if self._disk and written is not None:
            self._disk.put(self._kind, key, written, seconds, chat)

    def forget(self, chat: str) -> None:
        """Drops the values in memory that only this chat brought."""
        with self._lock:
            for key in self._owners.forget(chat):
                self._drop(str(key))

    def _hold(self, key: str, value: T, age: float, seconds: float, chat: Chat) -> None:
        if seconds <= age or self._weigh(value) > self._heaviest:
            return
        with self._lock:
            if not self._owners.add(key, chat.id):
                return
            since = self._clock() - age
            if key in self._values:
                self._weight -= self._weigh(self._values.pop(key)[2])
            self._values[key] = (since, since + seconds, value)
            self._weight += self._weigh(value)
            while len(self._values) > self._most or self._weight > self._heaviest:
                self._drop(next(iter(self._values)))

    def _drop(self, key: str) -> None:
        self._owners.drop(key)
        if dropped := self._values.pop(key, None):
            self._weight -= self._weigh(dropped[2])
