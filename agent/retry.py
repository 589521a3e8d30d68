"""When to try again: at most three tries, with jitter, and never a minute of waiting in all.

A server that names a time is believed; one that names more than is left of the minute is given up
at once, because a person is waiting.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

TRIES = 3
FIRST = 0.5
CAP = 8.0
TOTAL = 60.0


class Delays:
    """The waits of one request; see `next`."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform
        self._failed = 0
        self._waited = 0.0

    def next(self, retry_after: float | None) -> float | None:
        """Seconds to wait before the next try, or None to give up.

        `retry_after` is what the server asked for, in seconds.
        """
        self._failed += 1
        if self._failed >= TRIES:
            return None
        wait = retry_after
        if wait is None:
            wait = self._uniform() * min(CAP, FIRST * 2 ** (self._failed - 1))
        if self._waited + wait > TOTAL:
            return None
        self._waited += wait
        return wait


def delays(uniform: Callable[[], float] = random.random) -> Delays:
    """Fresh waits for one request; `uniform` gives numbers in [0, 1)."""
    return Delays(uniform)


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds until the server wants to be asked again, or None when it does not say.

    Reads `retry-after-ms`, then `retry-after` as seconds or as an HTTP date. `headers` has
    lower-case names; `now` is in seconds since the epoch.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        return seconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None
