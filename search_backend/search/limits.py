"""Limits of each engine: a token bucket for its rate and a circuit breaker for its failures.

Both only compute on a clock; nothing here waits. After a failure an engine rests, so the next
search does not wait for it. Retry-After is kept to exactly. Otherwise the cause decides: a rate
limit or a network failure begins with seconds; an empty account or a refused key with an hour,
because only the user can help. Weaker evidence ("no results or refused", a broken answer, a refused
request) takes two failures in a row. A rest doubles with each further failure and ends with one
good answer. Failures that were under way together count as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from searchloop.search_backend.plugin.answers import LONGEST_RETRY

LONGEST_WAIT = 6.0
# Requests an exact second apart arrive a little less than a second apart.
MARGIN = 1.05
# Cause -> first rest and longest rest in seconds.
RESTS: Mapping[str, tuple[float, float]] = {
    "rate": (5.0, 300.0),
    "network": (5.0, 300.0),
    "blocked": (30.0, 1_800.0),
    "parse": (30.0, 600.0),
    "config": (30.0, 600.0),
    "quota": (3_600.0, 86_400.0),
    "auth": (3_600.0, 86_400.0),
}
DOUBTFUL = frozenset({"blocked", "parse", "config"})
DOUBTFUL_BEFORE_REST = 2


class TokenBuckets:
    """Rate limits of engines: each caller reserves the next free moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def reserve(self, engine: str, rate: float, most: float = LONGEST_WAIT) -> float | None:
        """Seconds until the caller's turn at `rate` requests a second (0 = no limit).

        None: the queue is longer than `most` seconds, and no turn was taken.
        """
        if rate <= 0:
            return 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next.get(engine, now), now)
            if turn - now > most:
                return None
            self._next[engine] = turn + MARGIN / rate
            return turn - now


@dataclass(slots=True)
class _State:
    failures: int = 0
    rest: float = 0.0
    until: float = 0.0
    reason: str = ""


class CircuitBreakers:
    """Rests of engines after failures. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}

    def resting(self, engine: str) -> tuple[float, str] | None:
        """Seconds left and the reason while the engine rests, else None."""
        with self._lock:
            state, now = self._states.get(engine), self._clock()
            return (state.until - now, state.reason) if state and state.until > now else None

    def succeeded(self, engine: str) -> None:
        """Close the circuit: the engine answered."""
        with self._lock:
            self._states.pop(engine, None)

    def failed(self, engine: str, kind: str, retry_after: float | None = None) -> None:
        """Count a failure. `retry_after`: seconds the engine itself asked for."""
        first, longest = RESTS.get(kind, RESTS["network"])
        with self._lock:
            state = self._states.setdefault(engine, _State())
            now, told = self._clock(), retry_after is not None
            if state.until > now and not told:
                return
            state.failures += 1
            state.reason = kind
            if isinstance(retry_after, int | float) and 0 < retry_after <= LONGEST_RETRY:
                state.rest = retry_after
            elif kind in DOUBTFUL and state.failures < DOUBTFUL_BEFORE_REST:
                return
            else:
                state.rest = min(max(state.rest * 2, first), longest)
            state.until = now + state.rest
