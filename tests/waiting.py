"""Waiting for a condition, on a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Until it holds; fails after so many seconds."""
    never, end = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"this never came to hold: {condition}"
        never.wait(0.01)
