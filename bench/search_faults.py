"""`python -m bench.search_faults`: four of five engines ill, whichever is the healthy one.

For each engine and each fault a fresh backend is asked while all are well and then while the other
four have that fault. What counts is the time of a search: the first ones find out who is ill, the
rest should take what the healthy engine takes. Times in ms, one client, engines of 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from bench.fake_engines import ENGINES
from bench.search import CORES, Backend, backend

FAULTS = ("hang", "slow", "fail", "limit", "lie", "cut")
WELL, ILL, FIRST = 25, 25, 3


async def _times(asked: Backend, name: str, count: int) -> list[float]:
    clock = asyncio.get_running_loop().time
    times = []
    for n in range(count):
        began = clock()
        answer = await asked.ask(f"{name} {n}")
        times.append((clock() - began) * 1e3)
        if answer["status"] != "ok":
            raise RuntimeError(f"a search failed: {answer}")
    return times


async def _case(asked: Backend, good: str, fault: str) -> tuple[float, float, float]:
    """The healthy p95, the longest of the first searches with the fault, the p95 after those."""
    well = sorted(await _times(asked, "well", WELL))
    await asked.told("_mood", {name: fault for name in ENGINES if name != good})
    ill = await _times(asked, "ill", ILL)
    later = sorted(ill[FIRST:])
    return well[int(WELL * 0.95)], max(ill[:FIRST]), later[int(len(later) * 0.95)]


def main() -> int:
    """Prints one line a fault: the worst of all places of the healthy engine."""
    parser = argparse.ArgumentParser(prog="python -m bench.search_faults", description=__doc__)
    parser.parse_args()
    if len(CORES) > 1:
        os.sched_setaffinity(0, CORES[1:])
    print(
        f"{'four of five':<14}{'healthy p95':>12}{'first':>8}{'then p95':>10}  aim: twice healthy"
    )
    for fault in FAULTS:
        worst = (0.0, 0.0, 0.0)
        for good in ENGINES:
            with backend() as (asked, _):
                found = asyncio.run(_case(asked, good, fault))
            worst = max(worst, found, key=lambda case: case[2] / max(case[0], 1))
        healthy, first, later = worst
        print(
            f"{fault:<14}{healthy:>12.0f}{first:>8.0f}{later:>10.0f}  {later / healthy:.2f}x",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
