"""Answers and pages of some time, each with its age and the chats that brought it.

They are in the file of `disk`. What may not be written there, as it is for a temporary chat or its
server forbids it, and what cannot be written now, is in a database in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from searchloop.search_backend.cache.disk import Disk, Entry
from searchloop.search_backend.types import NOBODY, Owner

MEMORY_BYTES = 32 * 2**20


class Cache:
    """JSON objects by kind and key. Safe for several threads; it never fails its callers."""

    def __init__(
        self,
        disk: Disk | None = None,
        clock: Callable[[], float] = time.time,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """Without `disk` all is in memory, at most `memory_bytes`; `clock` gives its seconds."""
        self._disk = disk
        self._memory = Disk(None, memory_bytes, clock=clock)

    def get(self, kind: str, key: str, chat: Owner = NOBODY) -> Entry | None:
        """Returns the newest entry; None if it is too old or unknown. It is the chat's too."""
        stores = (self._memory, self._disk) if self._disk else (self._memory,)
        found = [entry for store in stores if (entry := store.get(kind, key, chat))]
        return min(found, key=lambda entry: entry.age, default=None)

    def put(
        self,
        kind: str,
        key: str,
        value: dict[str, Any],
        seconds: float,
        chat: Owner = NOBODY,
        *,
        write: bool = True,
    ) -> None:
        """Keeps `value` for `seconds`, in memory alone unless `write`."""
        if self._disk and write and self._disk.put(kind, key, value, seconds, chat):
            self._memory.drop(kind, key)
        else:
            self._memory.put(kind, key, value, seconds, chat)

    def forget(self, chat: str) -> int:
        """Deletes what only this chat brought; returns the number of entries. Raises OSError."""
        return self._memory.forget(chat) + (self._disk.forget(chat) if self._disk else 0)
