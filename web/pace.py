"""How often followers are told: the more there is to do, the more is told at once."""

from __future__ import annotations

import asyncio

_LITTLE = 0.001  # seconds
_SHARE = 2.0  # how many times as long as one turn of the loop takes nothing new is told
_MOST = 0.1


async def breathe() -> None:
    """Lets whoever was just told have the loop, and then waits for as long as that took, twice.

    A loop with little to do turns in less than a millisecond, so one reader sees each word as it
    comes. One that is full gathers, instead of falling behind: what costs is the telling, not how
    much is told.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    turn = loop.time() - began
    if turn > _LITTLE:
        await asyncio.sleep(min(_SHARE * turn, _MOST))
