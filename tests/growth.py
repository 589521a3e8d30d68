"""Compares what some work costs with a text and with a larger one, in one run of one process."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.page_cost import seconds

# Below so many seconds of CPU a measure is noise.
LEAST_SECONDS = 0.02
MOST_GROWTH = 8.0


def grows_too_fast(
    work: Callable[[str], object],
    small: str,
    large: str,
    most: float = MOST_GROWTH,
    clock: Callable[[], float] = time.thread_time,
) -> bool:
    """Returns whether `large` costs more than `most` times as much CPU as `small`.

    `clock` counts the CPU: of this thread, or of the process for work that uses several. It is
    measured again where another process may have cost something. What is quick with `large`
    is not compared: whatever `small` costs, it counts as LEAST_SECONDS at least.
    """
    for _ in range(4):
        whole = seconds(work, large, clock)
        if whole <= most * LEAST_SECONDS:
            return False
        if whole <= most * min(seconds(work, small, clock) for _ in range(2)):
            return False
    return True


def check_growth(
    work: Callable[[str], object],
    text: str,
    *,
    ends: int = 0,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Fails where `text` costs more than eight times as much as a quarter of it.

    `ends` characters at both ends stay, where the cost is in how a text begins or ends.
    """
    inner = len(text) - 2 * ends
    quarter = text[: ends + inner // 4] + text[len(text) - ends :]
    assert not grows_too_fast(work, quarter, text, clock=clock), (
        f"four times {text[:40]!r} costs too much"
    )
