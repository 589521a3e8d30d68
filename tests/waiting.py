"""Waiting for a condition, on a thread or on a loop.

The limits are for what never comes: far beyond what the slowest machine needs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

LATE = 20.0  # seconds by which a busy machine may be late


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Until it holds; fails after so many seconds."""
    never, end = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"this never came to hold: {condition}"
        never.wait(0.01)


async def eventually(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """The same for a coroutine, which lets the loop run meanwhile."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.002)
