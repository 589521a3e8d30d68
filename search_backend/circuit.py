"""A circuit per engine: after a failure it rests, so the next search does not wait for it.

How long depends on the cause. What the server says (Retry-After) is kept to exactly. A rate limit
or a network failure begins with seconds, an empty account or a refused key with an hour: only a
change by the user helps, and that makes a new chain. A late answer, "no results or refused", a
broken answer and a refused request are weaker evidence, so they take two in a row. A rest doubles
with each further failure and ends with one good answer. When it is over, one search carries the
probe and all others go on without the engine until it is back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

# Cause -> first rest and longest rest in seconds.
RESTS: Mapping[str, tuple[float, float]] = {
    "rate": (5.0, 300.0),
    "network": (5.0, 300.0),
    "slow": (5.0, 300.0),
    "blocked": (30.0, 1_800.0),
    "parse": (30.0, 600.0),
    "config": (30.0, 600.0),
    "quota": (3_600.0, 86_400.0),
    "auth": (3_600.0, 86_400.0),
}
DOUBTFUL = frozenset({"slow", "blocked", "parse", "config"})
DOUBTFUL_BEFORE_REST = 2
# A probe that never reports back must not keep the engine out for ever.
PROBE_SECONDS = 15.0

Admission = Literal["open to all", "probe"]


@dataclass(slots=True)
class _State:
    failures: int = 0
    rest: float = 0.0
    until: float = 0.0
    probing_until: float = 0.0
    reason: str = ""


class Circuits:
    """Which engines rest, and until when. Safe to use from several threads."""

    def __init__(
        self, clock: Callable[[], float], spread: Callable[[], float] = lambda: 1.0
    ) -> None:
        """`clock` gives monotonic seconds; `spread` a factor near 1 for rests that we choose, so
        that many programs do not come back at the same moment."""
        self._clock = clock
        self._spread = spread
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}

    def resting(self, engine: str) -> tuple[float, str] | None:
        """Seconds left and the reason while the engine rests or is being probed, else None."""
        with self._lock:
            state = self._states.get(engine)
            return self._resting(state) if state else None

    def admit(self, engine: str) -> Admission | None:
        """Whether the engine may be asked now; "probe" to one caller after a rest."""
        with self._lock:
            state = self._states.get(engine)
            if state is None or not state.rest:
                return "open to all"
            if self._resting(state):
                return None
            state.probing_until = self._clock() + PROBE_SECONDS
            return "probe"

    def succeeded(self, engine: str) -> None:
        """Close the circuit: the engine answered."""
        with self._lock:
            self._states.pop(engine, None)

    def failed(self, engine: str, kind: str, retry_after: float | None = None) -> None:
        """Count a failure. `retry_after`: seconds the engine itself asked for."""
        first, longest = RESTS.get(kind, RESTS["network"])
        with self._lock:
            state = self._states.setdefault(engine, _State())
            state.failures += 1
            state.reason = kind
            state.probing_until = 0.0
            if retry_after:
                state.rest = rest = retry_after
            elif kind in DOUBTFUL and state.failures < DOUBTFUL_BEFORE_REST:
                return
            else:
                state.rest = min(max(state.rest * 2, first), longest)
                rest = state.rest * self._spread()
            state.until = self._clock() + rest

    def _resting(self, state: _State) -> tuple[float, str] | None:
        now = self._clock()
        if state.until > now:
            return state.until - now, state.reason
        return (0.0, state.reason) if state.probing_until > now else None
