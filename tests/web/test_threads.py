"""Threads for an event loop: who runs what, what comes back, and when they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.waiting import until
from web.threads import Threads

SECONDS = 90.0


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` comes to on a loop of its own, which must not take for ever."""

    async def bounded() -> Any:
        async with asyncio.timeout(SECONDS):
            return await work()

    return asyncio.run(bounded())


def alive(name: str) -> list[threading.Thread]:
    """The threads of the pool with this name."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_one_after_the_other_takes_one_thread() -> None:
    """Whoever came back is used again; more are made only for calls at the same moment."""

    async def work() -> set[int]:
        pool = Threads(8, "single")
        return {await pool.run(threading.get_ident) for _ in range(20)}

    used = run(work)
    assert len(used) == 1
    assert threading.get_ident() not in used


def test_the_thread_that_came_back_last_goes_first() -> None:
    """After a rush the few calls that follow stay on a thread that is warm."""

    async def work() -> tuple[set[int], set[int]]:
        pool, together = Threads(4, "rush"), threading.Barrier(4, timeout=SECONDS)

        def meet() -> int:
            together.wait()
            return threading.get_ident()

        rush = await asyncio.gather(*(pool.run(meet) for _ in range(4)))
        return set(rush), {await pool.run(threading.get_ident) for _ in range(8)}

    rush, after = run(work)
    assert len(rush) == 4
    assert len(after) == 1
    assert after < rush


def test_what_finds_no_thread_waits_for_one() -> None:
    """With two threads ten calls are all made, in their order, and never three at once."""
    lock, at_work, most, order = threading.Lock(), 0, 0, []

    def call(number: int) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
            order.append(number)
        with lock:
            at_work -= 1
        return number

    async def work() -> list[int]:
        pool = Threads(2, "few")
        return await asyncio.gather(*(pool.run(call, n) for n in range(10)))

    assert run(work) == list(range(10))
    assert sorted(order) == list(range(10))
    assert most <= 2


@pytest.mark.parametrize("fault", [ZeroDivisionError, StopIteration, SystemExit])
def test_a_fault_comes_out_where_it_is_waited_for(fault: type[BaseException]) -> None:
    """And the thread goes on to the next call."""

    def broken() -> None:
        raise fault

    async def work() -> tuple[BaseException | None, str]:
        pool, failure = Threads(1, "broken"), None
        try:
            await pool.run(broken)
        except (Exception, SystemExit) as error:
            failure = error
        return failure, await pool.run(lambda: "next")

    failure, following = run(work)
    assert isinstance(failure, RuntimeError if fault is StopIteration else fault)
    assert following == "next"


def test_what_nobody_waits_for_is_not_begun() -> None:
    """A cancelled call that is at work ends for nobody; one that waits is left out."""
    made: list[str] = []

    async def work() -> None:
        pool, go, begun = Threads(1, "gone"), threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            go.wait(SECONDS)
            made.append("first")

        running = pool.run(first)
        waiting = pool.run(made.append, "waiting")
        last = pool.run(made.append, "last")
        await asyncio.to_thread(begun.wait, SECONDS)
        running.cancel()
        waiting.cancel()
        go.set()
        await last

    run(work)
    assert made == ["first", "last"]


def test_threads_end_with_their_pool() -> None:
    """Closed, or when nobody has it any more."""

    async def work(name: str, close: bool) -> None:
        pool = Threads(2, name)
        await pool.run(threading.get_ident)
        assert alive(name)
        if close:
            pool.close()
            until(lambda: not alive(name))

    for name, close in (("closed", True), ("dropped", False)):
        run(lambda name=name, close=close: work(name, close))
        until(lambda name=name: not alive(name))
