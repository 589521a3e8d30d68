"""Answers and pages that are kept, each with its age and the chats that brought it.

They are in the file of `disk`. What may not be written there, as it is for a temporary chat or its
server forbids it, and what cannot be written now, is in a database in memory. Equal work of several
threads is done once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from searchloop.search_backend.cache.disk import Disk
from searchloop.search_backend.types import NOBODY, Owner, SearchBackendError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
MEMORY_BYTES = 32 * 2**20


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # takes 75 ms to load

    return TypeAdapter(kind)


def restored(kind: type[T], value: Any) -> T:
    """Returns the value of this type whose JSON form is `value`. Raises ValueError for anything
    else."""
    found: T = _reader(kind).validate_python(value)  # type: ignore[arg-type] # types have a hash
    return found


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


class Cache:
    """Values by kind and key. Safe for several threads; it never fails its callers."""

    def __init__(
        self,
        disk: Disk | None = None,
        clock: Callable[[], float] = time.time,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """Without `disk` all is in memory, at most `memory_bytes`; `clock` gives its seconds."""
        self._disk = disk
        self._memory = Disk(None, memory_bytes, clock=clock)

    def get(self, kind: type[T], key: str, chat: Owner = NOBODY) -> tuple[T, float] | None:
        """Returns the newest value of a kind and its age in seconds; None if it is too old, unknown
        or of another version. It is the chat's too."""
        stores = filter(None, (self._disk, self._memory))
        found = [entry for store in stores if (entry := store.get(kind.__name__, key, chat))]
        with suppress(ValueError):
            newest = min(found, key=lambda entry: entry.age)
            return restored(kind, newest.value), newest.age
        return None

    def put(
        self, key: str, value: Any, seconds: float, chat: Owner = NOBODY, *, write: bool = True
    ) -> None:
        """Keeps a dataclass for `seconds`, in memory alone unless `write`."""
        kind, data = type(value).__name__, asdict(value)
        if not (self._disk and write and self._disk.put(kind, key, data, seconds, chat)):
            self._memory.put(kind, key, data, seconds, chat)

    def forget(self, chat: str) -> int:
        """Deletes what only this chat brought; returns the number of entries.

        Raises SearchBackendError where the file can be neither written nor deleted.
        """
        count = self._memory.forget(chat)
        try:
            return count + (self._disk.forget(chat) if self._disk else 0)
        except OSError as error:
            what = f"The cache cannot be changed: {error.strerror}."
            remedy = "Make its folder writable, and delete the chat again."
            raise SearchBackendError("read_only", what, remedy) from error
