"""A circuit per engine: after a failure it rests, so the next search does not wait for it.

A network failure or a plain refusal opens the circuit at once. "No results or refused" is weaker
evidence, so it takes two in a row. The rest doubles with each further failure and ends with one
good answer. When it is over the next search is the probe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

FIRST_REST = 30.0
LONGEST_REST = 300.0
DOUBTFUL_BEFORE_REST = 2


@dataclass(slots=True)
class _State:
    failures: int = 0
    rest: float = 0.0
    until: float = 0.0
    reason: str = ""


class Circuits:
    """Which engines rest, and until when. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}

    def resting(self, engine: str) -> tuple[float, str] | None:
        """Seconds left and the reason while the engine rests, else None."""
        with self._lock:
            state = self._states.get(engine)
            left = state.until - self._clock() if state else 0.0
            return (left, state.reason) if state and left > 0 else None

    def succeeded(self, engine: str) -> None:
        """Close the circuit: the engine answered."""
        with self._lock:
            self._states.pop(engine, None)

    def failed(self, engine: str, reason: str, *, doubtful: bool = False) -> None:
        """Count a failure; `doubtful` when an empty answer may be the honest truth."""
        with self._lock:
            state = self._states.setdefault(engine, _State())
            state.failures += 1
            state.reason = reason
            if doubtful and state.failures < DOUBTFUL_BEFORE_REST:
                return
            state.rest = min(state.rest * 2, LONGEST_REST) if state.rest else FIRST_REST
            state.until = self._clock() + state.rest
