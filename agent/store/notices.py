"""What other processes tell through PostgreSQL. https://www.postgresql.org/docs/current/sql-notify.html"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import psycopg

from agent.errors import StoreError
from agent.store.contract import Heard
from agent.store.postgres_append import CHANNEL
from agent.store.postgres_link import Link


class Notices:
    """A thread that listens on a connection of its own, and on a new one when that breaks."""

    def __init__(
        self,
        connected: Callable[[], AbstractContextManager[Link]],
        ring: Callable[[], None],
        process: str,
        patience: float,
    ) -> None:
        """What `process` told is not heard; within `patience` seconds an end is noticed.

        `ring` sends a notification of ours, on another connection: after so many seconds of silence
        it has to be heard within as many, or this connection is dead and does not know it.
        """
        self._connected = connected
        self._ring = ring
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
        while not self._closed.is_set():
            try:
                with self._connected() as db:
                    db.execute(f"LISTEN {CHANNEL}".encode())
                    heard({})
                    rung = False
                    while not self._closed.is_set():
                        notes = list(db.notifies(timeout=self._patience, stop_after=1))
                        for note in notes:
                            self._pass_on(note.payload, heard)
                        if not notes:
                            if rung:
                                break
                            self._ring()
                        rung = not notes
            except (psycopg.Error, StoreError):
                self._closed.wait(0.5)

    def _pass_on(self, payload: str, heard: Heard) -> None:
        try:
            news = json.loads(payload)
        except ValueError:  # somebody else's, on the same channel
            return
        if isinstance(news, dict) and news.get("from") != self._process:
            for each in news.get("news", (news,)):
                heard(each)

    def end(self) -> None:
        """Ends the thread, which need not wait if it can be rung."""
        self._closed.set()
        if self._thread is not None:
            with suppress(StoreError):
                self._ring()
            self._thread.join(self._patience + 1)
