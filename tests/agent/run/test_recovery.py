"""After a crash: nothing that was acknowledged is lost, and the session can go on.

A process never takes a lease for an orphan that it is itself just taking or giving back.
"""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import Lease, machine
from searchloop.agent.run.takeover import LeaseRenewal
from searchloop.agent.run.undo import delete_session
from tests.agent.run.test_stop import Silent, Slow
from tests.agent.scripted import House, Scripted, open_house, says, settings

HERE = machine()
_BOOT = HERE.rpartition("/")[2]
NAMESAKES = (  # holders with this machine's name of which we cannot know whether they live
    HERE.replace(_BOOT.partition(":")[0], "00000000-0000-0000-0000-000000000000"),
    f"{HERE}0",
    f"{HERE.partition(':')[0]}:1",
    f"x/{HERE}",
)


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that is over."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def left_behind(house: House, owner: str, *, age: float = 0.0, run: str = "r1") -> None:
    """What a process leaves that dies in the middle of an answer, `age` seconds ago."""
    other = EventLog(house.log.where)
    started = {"run_id": run, "model": "scripted:one", "mode": "ask"}
    started |= {"search": "off", "search_path": "off"}
    other.leases.claim(house.session, run, owner)
    other.append(house.session, [("user_message", {"text": "hi"}), ("run_started", started)])
    other.append(house.session, [("text_delta", {"text": "Half an "})])
    other.append(house.session, [("thinking_delta", {"text": "hm"})])
    other.append(house.session, [("text_delta", {"text": "answer"})])
    other.close()
    db = sqlite3.connect(house.log.where)
    db.execute("UPDATE runs SET beat = ?", (time.monotonic() - age,))
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("owner", "age", "closed"),
    [
        ("HERE/DEAD/x", 0.0, True),
        ("HERE/ALIVE/x", 0.0, False),
        ("HERE/ALIVE/x", 3.0, False),
        ("HERE/ALIVE/x", 4.5, True),
        ("elsewhere/DEAD/x", 0.0, False),
        (f"{platform.node()}/DEAD/x", 0.0, False),  # as named before
        *((f"{other}/DEAD/x", age, age > 4) for other in NAMESAKES for age in (0.0, 3.0, 4.5)),
        ("elsewhere/DEAD/x", 4.5, True),
        ("a/b/DEAD/x", 4.5, True),
    ],
)
async def test_whose_runs_are_taken_over(
    tmp_path: Path, dead: int, owner: str, age: float, closed: bool
) -> None:
    """Those of a process that is gone at once; those of one that is silent for a lease."""

    async with open_house(tmp_path, Scripted([says("Whole.")])) as house:
        real = owner.replace("HERE", HERE).replace("DEAD", str(dead))
        left_behind(house, real.replace("ALIVE", str(os.getppid())), age=age)
        assert await house.runner.recover() == closed
        await house.runner.wait(house.session)
        assert (house.log.leases.held() == []) is closed
        assert (house.kinds()[-1] == "run_finished") is closed
        assert await house.runner.recover() == 0


async def test_the_time_before_a_takeover_counts(tmp_path: Path, dead: int) -> None:
    """What the dead process worked is in the usage; the time until the takeover is not."""
    async with open_house(tmp_path, Scripted([says("Whole.")])) as house:
        left_behind(house, f"{HERE}/{dead}/x")
        with sqlite3.connect(house.log.where) as db:
            db.execute("UPDATE events SET at = at - 1100, checksum = NULL")
            db.execute("UPDATE deltas SET at = at - 1000")
        db.close()
        assert await house.runner.recover() == 1
        await house.runner.wait(house.session)
        assert 100 <= house.log.last_event(house.session).data["usage"]["seconds"] < 900


async def test_a_run_that_kills_its_process_is_given_up(tmp_path: Path, dead: int) -> None:
    """After three takeovers it is closed, with what had come, and the session is free."""

    model = Scripted([])
    async with open_house(tmp_path, model) as house:
        left_behind(house, f"{HERE}/{dead}/x")
        db = sqlite3.connect(house.log.where)
        db.execute("UPDATE runs SET takeovers = 3")
        db.commit()
        db.close()
        assert await house.runner.recover() == 1
        end = house.log.last_event(house.session).data
        assert (end["reason"], end["answer"]) == ("incomplete", "Half an answer")
        assert end["error"]["code"] == "interrupted"
        assert not model.requests
        assert not house.log.session(house.session).running


async def test_a_question_to_a_dead_run_need_not_wait(tmp_path: Path, dead: int) -> None:
    """Whoever asks first closes the dead run, also when nobody called recover before."""

    model = Scripted([says("Whole.")])
    async with open_house(tmp_path, model) as house:
        left_behind(house, f"{HERE}/{dead}/x")
        assert (await house.ask("go on")).data["answer"] == "Whole."
        messages = [m.content for m in model.requests[0].messages]
        assert messages == ["hi", "Half an answer", "go on"]
        ends = [e.data for e in house.log.read(house.session) if e.type == "run_finished"]
        assert ends[0]["error"]["code"] == "interrupted"


async def test_a_full_disk_lets_a_session_be_deleted(tmp_path: Path) -> None:
    """The search backend makes room; it is asked for that also where the session never searched."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    asked = list[str]()

    class Backend:
        async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
            asked.append(path)
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            return {}

    async with open_house(tmp_path, Scripted([says("Tea.")])) as house:
        await house.ask("hi " * 5_000)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
            with pytest.raises(StoreError):
                house.log.delete_session(house.session)
            await delete_session(house.log, settings(tmp_path), Backend(), house.session)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert asked == ["/api/forget"]
        assert house.log.sessions() == []


@pytest.mark.parametrize("moment", ["claim", "release"])
async def test_what_changes_hands_here_is_no_orphan(tmp_path: Path, moment: str) -> None:
    """While the store is slow to answer, a recovery that runs beside it leaves the run alone."""
    slow = Silent("claim" if moment == "claim" else "")
    log = Slow(tmp_path / "s.sqlite3", slow)
    adopted: list[Lease] = []

    async def adopt(lease: Lease) -> None:
        adopted.append(lease)

    keeper = LeaseRenewal(log, lambda session: None, adopt)
    session = log.create_session(model="m:x").id
    if moment == "release":
        held = await keeper.claim(session, "r", {})
        slow.hold = "held"  # the recovery has looked, and is slow to act on it
        recovering = asyncio.create_task(keeper.recover())
        await slow.reached.wait()
        await keeper.release(held)
        slow.free.set()
        await recovering
    else:
        claiming = asyncio.create_task(keeper.claim(session, "r", {}))
        await slow.reached.wait()
        assert await keeper.recover() == 0
        slow.free.set()
        lease = await claiming
        assert (await asyncio.to_thread(log.leases.held, session))[0].fence == lease.fence
    assert adopted == []
    await keeper.aclose()
    log.close()
