"""The rig for the search backend runs, and its fake engines are what they claim to be."""

from __future__ import annotations

import asyncio

from bench.fake_engines import ENGINES, addresses, shaped
from bench.search import backend


def test_the_fakes_overlap_as_described() -> None:
    """Of a hundred results 56 are different pages; every engine has the common six."""
    found = [addresses(engine, "a b") for engine in ENGINES]
    assert [len(one) for one in found] == [20] * 5
    assert len({url for one in found for url in one}) == 56
    assert {"web"} == set(shaped("brave", found[0]))


def test_the_rig_measures_a_real_backend() -> None:
    """The program that users start asks all five engines, and none when asked the same again."""

    async def run() -> None:
        with backend(5) as (five, started):
            assert started > 0
            load = await five.load(2, 0.3)
            assert load.requests > 0
            assert load.upstream == 5 * load.requests
            await five.ask("once")
            assert (await five.load(1, 0.1, "once")).p50 > 0
            assert await five.at_once(8, "together") == 5

    asyncio.run(run())
