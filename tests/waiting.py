"""Waiting for a condition, on a thread or on a loop.

The limits are for what never comes: far beyond what the slowest machine needs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LATE = 20.0  # seconds by which a busy machine may be late


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Until it holds; fails after so many seconds."""
    never, end = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"this never came to hold: {condition}"
        never.wait(0.01)


def in_time(work: Callable[[], T], seconds: float) -> T:
    """What `work` gives when it takes less than `seconds`: the least of several tries counts, for a
    busy machine makes work slower now and then and never quicker.
    """
    spent: list[float] = []
    while len(spent) < 10:
        began = time.monotonic()
        given = work()
        spent.append(time.monotonic() - began)
        if spent[-1] < seconds:
            return given
    raise AssertionError(f"not once within {seconds:g} s: {spent}")


def at_cost(work: Callable[[], T], seconds: float) -> T:
    """What `work` gives when it takes less than `seconds` of processor time: again the least of
    several tries, for work costs more beside other work.
    """
    spent: list[float] = []
    while len(spent) < 5:
        began = time.process_time()
        given = work()
        spent.append(time.process_time() - began)
        if spent[-1] < seconds:
            return given
    raise AssertionError(f"not once for less than {seconds:g} s of processor time: {spent}")


async def eventually(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """The same for a coroutine, which lets the loop run meanwhile."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.002)
