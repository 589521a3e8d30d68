"""What other processes tell through PostgreSQL. https://www.postgresql.org/docs/current/sql-notify.html"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from agent.store.contract import Heard
from agent.store.postgres_append import CHANNEL

if TYPE_CHECKING:
    from psycopg import Connection


class Notices:
    """A thread that listens on a connection of its own, and on a new one when that breaks."""

    def __init__(
        self,
        connected: Callable[[], AbstractContextManager[Connection[Any]]],
        process: str,
        patience: float,
    ) -> None:
        """What `process` told is not heard; within `patience` seconds an end is noticed."""
        self._connected = connected
        self._process = process
        self._patience = patience
        self._starting = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, heard: Heard) -> None:
        """Listens from now on; may be called again and again."""
        with self._starting:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._hear, args=(heard,), name="postgres listener", daemon=True
                )
                self._thread.start()

    def _hear(self, heard: Heard) -> None:
        import psycopg

        while not self._closed.is_set():
            try:
                with self._connected() as db:
                    db.execute(f"LISTEN {CHANNEL}".encode())
                    heard({})
                    while not self._closed.is_set():
                        for note in db.notifies(timeout=self._patience, stop_after=1):
                            self._pass_on(note.payload, heard)
            except psycopg.Error:
                self._closed.wait(0.5)

    def _pass_on(self, payload: str, heard: Heard) -> None:
        try:
            news = json.loads(payload)
        except ValueError:  # somebody else's, on the same channel
            return
        if isinstance(news, dict) and news.get("from") != self._process:
            for each in news.get("news", (news,)):
                heard(each)

    def end(self, wake: Callable[[], None]) -> None:
        """Ends the thread; `wake` sends a notification, so that it need not wait."""
        self._closed.set()
        if self._thread is not None:
            wake()
            self._thread.join(self._patience + 1)
