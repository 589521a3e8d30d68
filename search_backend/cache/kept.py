"""Answers and pages of some time, each with its age and the chats that brought it.

They are in the file of `disk`. What may not be written there, as it is for a temporary chat or its
server forbids it, and what cannot be written now, is in a database in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar

from searchloop.search_backend.cache.disk import Disk
from searchloop.search_backend.types import NOBODY, Owner, SearchBackendError, restored

T = TypeVar("T")
MEMORY_BYTES = 32 * 2**20


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
        stores = (self._memory, self._disk) if self._disk else (self._memory,)
        found = [entry for store in stores if (entry := store.get(kind.__name__, key, chat))]
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            newest = min(found, key=lambda entry: entry.age)
            return restored(kind, newest.value), newest.age
        return None

    def put(
        self, key: str, value: Any, seconds: float, chat: Owner = NOBODY, *, write: bool = True
    ) -> None:
        """Keeps a dataclass for `seconds`, in memory alone unless `write`."""
        kind, data = type(value).__name__, asdict(value)
        if self._disk and write and self._disk.put(kind, key, data, seconds, chat):
            self._memory.drop(kind, key)
        else:
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
