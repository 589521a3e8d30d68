"""Looking for what other processes wrote to a file that cannot tell.

Many small looks while somebody wants to know, none at all while nobody does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent.errors import StoreError
from agent.store.contract import Heard

_CALM, _BUSY = 0.05, 0.008  # seconds between looks; one takes a tenth of a millisecond
_BUSY_FOR = 1.0  # seconds after news in which more are likely


class Watch:
    """A thread that looks: `changes` gives a number that is new after a foreign commit (None: not
    now), `news` the last event of each session (as {session: number}) and the sessions with
    signals.
    """

    def __init__(
        self,
        changes: Callable[[], int | None],
        news: Callable[[], tuple[Mapping[str, int], list[str]]],
    ) -> None:
        self._changes = changes
        self._news = news
        self._known: Mapping[str, int] = {}
        self._starting = threading.Lock()
        self._awake = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        """Looks from now on, for as long as news are wanted; may be called again and again."""
        with self._starting:
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(
                    target=self._look, args=(heard, wanted), name="store watch", daemon=True
                )
                self._thread.start()
        self._awake.set()

    def _look(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        seen: int | None = None
        busy = 0.0
        while not self._over.wait(_BUSY if time.monotonic() < busy else _CALM):
            if not wanted():
                self._awake.wait()
                self._awake.clear()
            try:
                now = self._changes()
                if now is None or now == seen:
                    continue
                for news in self._found():
                    heard(news)
                seen, busy = now, time.monotonic() + _BUSY_FOR
            except StoreError:  # whoever uses the store is told; news come once it works again
                continue

    def _found(self) -> Iterator[dict[str, Any]]:
        """Who has something new; everybody (empty news) when it cannot be said who."""
        recent, wished = self._news()
        fresh = [session for session, last in recent.items() if self._known.get(session) != last]
        self._known = recent
        yield from ({"session": session} for session in fresh)
        yield from ({"signal": session} for session in wished)
        if not fresh and not wished:
            yield {}

    def end(self) -> None:
        """Ends the thread."""
        with self._starting:
            self._over.set()
            self._awake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
