"""How fast a server may talk: a burst is taken as it comes, a flood is slowed down.

Whoever reads a little at a time and waits in between leaves the rest in the pipe, where it stops
the sender and costs us nothing.
"""

from __future__ import annotations

import asyncio
import time

MESSAGES, BYTES = 400.0, 4e6  # a second, on and on
_BURST = 5.0  # seconds' worth that may come at once


class Pace:
    """A bucket for what one connection sends."""

    def __init__(self, messages: float = MESSAGES, size: float = BYTES) -> None:
        self._each, self._byte = 1 / messages, 1 / size
        self._due = 0.0

    async def spend(self, size: int, messages: int = 0) -> None:
        """Counts what came, and waits when it was too much."""
        now = time.monotonic()
        cost = size * self._byte + messages * self._each
        self._due = max(self._due, now - _BURST) + cost
        if self._due > now:
            await asyncio.sleep(self._due - now)
