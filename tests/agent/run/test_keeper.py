"""A process never takes a lease for an orphan that it is itself just taking or giving back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import Lease
from searchloop.agent.run.takeover import LeaseRenewal
from searchloop.agent.run.undo import make_plan

P = ParamSpec("P")
T = TypeVar("T")


class Slow(EventLog):
    """A store whose answer to one question takes as long as the test wishes."""

    def __init__(self, where: Path) -> None:
        super().__init__(where)
        self.slow: Callable[..., Any] | None = None
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The work is done at once, and told when the test says so."""
        done = await super().aside(work, *args, **kwargs)
        if work == self.slow:
            self.slow = None
            self.asked.set()
            await self.answer.wait()
        return done


@pytest.mark.parametrize("moment", ["claim", "release"])
async def test_what_changes_hands_here_is_no_orphan(tmp_path: Path, moment: str) -> None:
    """While the store is slow to answer, a recovery that runs beside it leaves the run alone."""
    log = Slow(tmp_path / "s.sqlite3")
    adopted: list[Lease] = []

    async def adopt(lease: Lease) -> None:
        adopted.append(lease)

    keeper = LeaseRenewal(log, lambda session: None, adopt)
    session = log.create_session(model="m:x").id
    if moment == "release":
        held = await keeper.claim(session, "r", {})
        log.slow = log.leases.held  # the recovery has looked, and is slow to act on it
        recovering = asyncio.create_task(keeper.recover())
        await log.asked.wait()
        log.slow, log.asked = None, asyncio.Event()
        await keeper.release(held)
        log.answer.set()
        await recovering
    else:
        log.slow = log.leases.claim
        claiming = asyncio.create_task(keeper.claim(session, "r", {}))
        await log.asked.wait()
        assert await keeper.recover() == 0
        log.answer.set()
        lease = await claiming
        assert (await asyncio.to_thread(log.leases.held, session))[0].fence == lease.fence
    assert adopted == []
    await keeper.aclose()
    log.close()


async def test_two_questions_at_once_are_one_run(tmp_path: Path) -> None:
    """The second is told that the session is busy, however slow the store is with the first."""
    log = Slow(tmp_path / "s.sqlite3")
    keeper = LeaseRenewal.onlooker(log)
    session = log.create_session(model="m:x").id
    log.slow = log.leases.claim
    first = asyncio.create_task(keeper.claim(session, "one", {}))
    await log.asked.wait()
    second = asyncio.create_task(keeper.claim(session, "two", {}))
    await asyncio.sleep(0)
    log.answer.set()
    assert (await first).run_id == "one"
    with pytest.raises(Conflict, match="still answering"):
        await second
    await keeper.aclose()
    log.close()


class Refusing(EventLog):
    """A store that tells when it refused something."""

    def __init__(self, where: Path | str) -> None:
        super().__init__(where)
        self.refused = asyncio.Event()

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See EventLog."""
        try:
            return await super().aside(work, *args, **kwargs)
        except Conflict:
            self.refused.set()
            raise


async def test_what_comes_right_after_an_end_is_not_refused(store: Path | str) -> None:
    """Followers hear of the end before the lease is given up: that is no reason to refuse them."""
    log = Refusing(store)
    first, second = LeaseRenewal.onlooker(log), LeaseRenewal.onlooker(log)
    session = log.create_session(model="m:x").id
    held = await first.claim(session, "one", {})
    log.append(session, [("run_started", {"run_id": "one"})])
    with pytest.raises(Conflict, match="still answering"):
        await second.claim(session, "two", {})
    log.append(session, [("run_finished", {"run_id": "zero"})])
    with pytest.raises(Conflict, match="still answering"):
        make_plan(log, session)
    log.append(session, [("run_finished", {"run_id": "one", "answer": "No list."})])
    with pytest.raises(ConfigError, match="list"):
        make_plan(log, session)
    claiming = asyncio.create_task(second.claim(session, "two", {}))
    log.refused.clear()
    await log.refused.wait()
    assert not claiming.done()
    await first.release(held)
    assert (await claiming).run_id == "two"
    for keeper in (first, second):
        await keeper.aclose()
    log.close()
