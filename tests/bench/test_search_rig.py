"""The rig for the search backend measures the program that users start."""

from __future__ import annotations

import asyncio

from bench.fake_engines import ENGINES
from bench.search import backend


def test_the_rig_measures_a_real_backend() -> None:
    """The program that users start asks one engine, and none when asked the same again."""

    async def run() -> None:
        with backend() as (well, started):
            assert started > 0
            load = await well.load(2, 0.3)
            assert load.requests > 0
            assert load.upstream >= load.requests  # a busy machine has a second engine asked
            assert len((await well.ask("spell"))["results"]) == 4
            await well.load(1, 0.1, "once")
            assert (await well.load(1, 0.1, "once")).upstream == 0
            assert await well.at_once(8, "together") <= len(ENGINES)

    asyncio.run(run())
