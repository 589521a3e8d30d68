"""What a measured process measures of itself: wall time, CPU, its largest memory."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.scenarios import Outcome, Scenario

T = TypeVar("T")


class WrongResult(Exception):
    """A run did not do the work, so its time means nothing."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One piece of work: seconds by the clock, seconds of CPU of the whole process.

    `p99` is the delay in seconds under which 99 of 100 events came, where that was measured.
    """

    wall: float
    cpu: float
    p99: float | None = None


def take(scenario: Scenario, run: Callable[[], T], read: Callable[[T], Outcome]) -> list[Sample]:
    """Does the work once to get warm and then as often as the scenario says.

    What `run` returns is read and checked after the clock has stopped.
    """
    samples = []
    for number in range(scenario.samples + 1):
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        done = run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        outcome = read(done)
        check(scenario, outcome)
        if number:
            samples.append(Sample(wall, cpu, outcome.p99))
    return samples


def check(scenario: Scenario, outcome: Outcome) -> None:
    """Raises WrongResult unless the run came to what the scenario says."""
    if outcome != scenario.outcome():
        raise WrongResult(f"{scenario.name}: {outcome} is not {scenario.outcome()}")


def report(samples: list[Sample]) -> dict[str, Any]:
    """What a measured process prints as its last line."""
    return {"samples": [asdict(s) for s in samples], "peak": peak_memory()}


def peak_memory() -> int:
    """Bytes of resident memory at the most."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Processes started inside run on this core only, where the system can do that."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> tuple[int | None, int | None]:
    """Which cores measured processes and the servers and clients around them get, if any."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[1 % len(usable)]
