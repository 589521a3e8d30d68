"""How fast engines may be asked, how fast they answer, and how often one may be asked in reserve.

All of it is arithmetic on a clock: nothing here waits.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable

LONGEST_WAIT = 6.0
# Requests an exact second apart arrive a little less than a second apart.
MARGIN = 1.05
WINDOW, ENOUGH = 100, 20
HEDGE_SHARE, MOST_HEDGES = 0.05, 3.0


class Buckets:
    """The next moment at which each limited engine may be asked; first come, first served."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def reserve(self, engine: str, rate: float) -> float | None:
        """Seconds to wait for one's turn at `rate` requests a second (0 = no limit).

        None: the queue is longer than LONGEST_WAIT, and no turn was taken.
        """
        if rate <= 0:
            return 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next.get(engine, now), now)
            if turn - now > LONGEST_WAIT:
                return None
            self._next[engine] = turn + MARGIN / rate
            return turn - now


class Latencies:
    """How long healthy answers took, for each engine over its last hundred."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # What came lately, in the order of time and in that of size.
        self._seconds: dict[str, tuple[deque[float], list[float]]] = {}
        self._known: dict[str, float] = {}

    def note(self, engine: str, seconds: float) -> None:
        """A good answer came after `seconds`."""
        with self._lock:
            window, ordered = self._seconds.setdefault(engine, (deque(), []))
            if len(window) == WINDOW:
                del ordered[bisect_left(ordered, window.popleft())]
            window.append(seconds)
            insort(ordered, seconds)
            if len(ordered) >= ENOUGH:
                self._known[engine] = ordered[int(len(ordered) * 0.95)]

    def p95(self, engine: str) -> float | None:
        """The time within which 95 of 100 good answers came; None while too few are known."""
        return self._known.get(engine)

    def usual(self) -> float | None:
        """What the slowest of the engines that are known takes; None while none is."""
        with self._lock:
            return max(self._known.values(), default=None)


class HedgeBudget:
    """Requests in reserve may be one in twenty of all, with a few saved up for a bad moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = 1.0

    def earn(self) -> None:
        """A search was started."""
        with self._lock:
            self._tokens = min(self._tokens + HEDGE_SHARE, MOST_HEDGES)

    def spend(self) -> bool:
        """Whether one more request in reserve may be made; it counts as made."""
        with self._lock:
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True
