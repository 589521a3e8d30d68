"""Stop wins at every moment: before a question is stored, while it is answered, and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import Event
from searchloop.agent.log.leases import LEASE, holder
from searchloop.agent.log.session import Session
from searchloop.agent.run.runner import Runner
from searchloop.agent.tools import Tool, ToolSource, tool
from tests.agent.scripted import Hold, Scripted, abandon, call, calls, reached, says, settings
from tests.waiting import eventually

P = ParamSpec("P")
T = TypeVar("T")
Stop = Callable[[], Any]


class Silent(ToolSource):
    """Everything that can be slow: tools, search backend, store, and a tool that runs.

    `hold` says which; `reached` is set there, and what is held goes on with `free` or never does.
    """

    def __init__(self, hold: str) -> None:
        self.hold = hold
        self.reached, self.free = asyncio.Event(), asyncio.Event()

    async def at(self, moment: str) -> None:
        """Holds whatever comes to this moment first."""
        if moment == self.hold:
            self.hold = ""
            self.reached.set()
            await self.free.wait()

    async def tools(self, session: Session) -> Sequence[Tool]:
        """One that lingers."""
        await self.at("tools")

        @tool
        async def linger() -> str:
            """Takes long."""
            await self.at("tool")
            return "done"

        return [linger]

    async def ask(self, path: str, payload: Any = None) -> dict[str, Any]:
        """See Backend."""
        await self.at(path)
        return {"engines": [], "results": [], "attempts": [], "status": "empty", "query": "x"}


WRITTEN = ("run_started", "run_finished")


class Slow(EventLog):
    """A log that does what it is asked, and says so late."""

    def __init__(self, where: Path | str, silent: Silent) -> None:
        super().__init__(where)
        self._silent, self._loop = silent, asyncio.get_running_loop()

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See EventLog."""
        done = await super().aside(work, *args, **kwargs)
        await self._silent.at(getattr(work, "__name__", ""))
        return done

    def at_once(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """See EventLog. What may be held goes to a thread."""
        return None if self._silent.hold in WRITTEN else super().at_once(work, *args, **kwargs)

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        done = super().append_all(writes)
        if self._silent.hold in {kind for write in writes for kind, _ in write.events}:
            held = self._silent.at(self._silent.hold)
            asyncio.run_coroutine_threadsafe(held, self._loop).result()
        return done


@pytest.mark.parametrize("hold", ["", "run_started"])
async def test_a_start_may_be_cancelled_at_any_moment(
    store: Path | str, tmp_path: Path, hold: str
) -> None:
    """Who asked may go away at any moment, also while a store that blocks writes: nothing of the
    question is kept, or its run has an end."""
    silent, last = Silent(hold), list[str]()
    log = Slow(store, silent)
    runner = Runner(settings(tmp_path), log, silent, providers=[Scripted([says("Yes.")] * 30)])
    for moments in range(0, 30, 1 if isinstance(store, Path) else 3):
        silent.hold = hold
        session = log.create_session(model="scripted:one").id
        asking = asyncio.create_task(runner.start(session, "When is high water?"))
        for _ in range(moments):
            await asyncio.sleep(0)
        asking.cancel()
        silent.free.set()
        await asyncio.wait([asking])
        await runner.recover()  # a claim may come too late, from a thread
        await runner.wait(session)
        await eventually(lambda chat=session: not log.under_way(chat))
        last += [event.type for event in log.read(session)[-1:]]
    assert len(last) < 30
    assert last or not isinstance(store, Path)  # a server is not as quick
    assert set(last) <= {"run_finished"}
    await runner.aclose()
    log.close()


ASKED = ("tools", "claim", "/api/engines", "update_session", "run_started")
ANSWERED = ("model", "talking", "tool", "/api/web-search")
NEVER_FREE = ("tools", "/api/engines", "tool", "/api/web-search")
STEPS = {
    "talking": lambda: [[*says("High wa")[:1], Hold()]],
    "tool": lambda: [calls(call("linger"))],
    "/api/web-search": lambda: [calls(call("web_search", query="tides"))],
}


class Stage:
    """A question on its way to a moment, and those who can stop it."""

    def __init__(self, home: Path, store: Path | str, moment: str) -> None:
        self.moment, self.silent = moment, Silent(moment)
        self.log, self.other_log = Slow(store, self.silent), EventLog(store)
        steps = STEPS[moment]() if moment in STEPS else [[Hold()]]
        self.hold = next((i for s in steps for i in s if isinstance(i, Hold)), None)
        self.model = Scripted(steps)
        own = settings(home)
        self.runner = Runner(
            own, self.log, self.silent, providers=[self.model], bring=[self.silent]
        )
        self.other = Runner(own, self.other_log, Silent(""), providers=[Scripted([])])
        self.session = self.log.create_session(model="scripted:one", search="local").id

    async def come(self) -> asyncio.Task[str]:
        """Asks, and waits for the moment."""
        asking = asyncio.create_task(self.runner.start(self.session, "When is high water?"))
        if self.moment in ("model", "talking"):
            assert self.hold
            await reached(self.hold)
        else:
            await asyncio.wait_for(self.silent.reached.wait(), 20)
        return asking

    def ends(self) -> list[Any]:
        """The data of each `run_finished`."""
        events = self.log.read(self.session)
        return [event.data for event in events if event.type == "run_finished"]

    async def stop(self, who: str) -> list[bool]:
        """What each stop said. Another process's is met at the next beat and seen at the next look
        at the store: both come at once here, again and again."""

        async def hurried() -> None:
            while True:
                await self.runner._leases._once()
                self.other_log._followers.push(None, None)
                await asyncio.sleep(0.01)

        stopper = self.other if who == "other" else self.runner
        stops = [stopper.cancel(self.session) for _ in range(1 + (who == "this twice"))]
        beats = asyncio.create_task(hurried()) if who == "other" else None
        told = await asyncio.wait_for(asyncio.gather(*stops), 20)
        if beats:
            beats.cancel()
        return told

    async def close(self) -> None:
        """Ends both."""
        for runner in (self.runner, self.other):
            await runner.aclose()
        self.log.close()
        self.other_log.close()


@pytest.mark.parametrize("who", ["this", "this twice", "other"])
@pytest.mark.parametrize("moment", [*ASKED, *ANSWERED])
async def test_stop_wins(tmp_path: Path, store: Path | str, moment: str, who: str) -> None:
    """Wherever the question is, it ends as stopped, once; nothing more is sent; the next works."""

    stage = Stage(tmp_path, store, moment)
    asking = await stage.come()
    stops = asyncio.create_task(stage.stop(who))
    if moment not in NEVER_FREE:
        for _ in range(4):  # the stop comes first
            await asyncio.sleep(0)
        stage.silent.free.set()
    assert set(await stops) == {True}
    assert await asyncio.wait_for(asking, 20)
    await stage.runner.wait(stage.session)
    (end,) = stage.ends()
    assert (end["reason"], end.get("error")) == ("cancelled", None)
    asked = len(stage.model.requests)  # a stop from elsewhere comes with the next beat
    assert asked == (moment in ANSWERED) or (who == "other" and moment not in NEVER_FREE)
    assert stage.log.leases.held(stage.session) == []
    stage.silent.hold = ""
    stage.silent.free.set()
    stage.model.steps = [says("High water is at 07:40.")]
    await stage.runner.start(stage.session, "And now?")
    await stage.runner.wait(stage.session)
    assert stage.ends()[-1]["answer"] == "High water is at 07:40."
    await stage.close()


@pytest.mark.parametrize("who", ["this", "other"])
@pytest.mark.parametrize("moment", ["tools", "/api/engines"])
async def test_stop_wins_while_a_run_is_taken_over(tmp_path: Path, moment: str, who: str) -> None:
    """A run of a dead process, whose new holder is still getting ready."""

    stage = Stage(tmp_path, tmp_path / "s.sqlite3", moment)
    log, session = stage.other_log, stage.session
    log.leases.claim(session, "r1", holder())
    started = {"run_id": "r1", "model": "scripted:one", "mode": "ask"}
    started |= {"search": "local", "search_path": "local"}
    log.append(session, [("user_message", {"text": "hi"}), ("run_started", started)])
    abandon(log)
    taking = asyncio.create_task(stage.runner.recover())
    await asyncio.wait_for(stage.silent.reached.wait(), 20)
    assert await stage.stop(who) == [True]
    assert await asyncio.wait_for(taking, 20) == 1
    await stage.runner.wait(session)
    assert [end["reason"] for end in stage.ends()] == ["cancelled"]
    assert (stage.model.requests, log.leases.held(session)) == ([], [])
    await stage.close()


@pytest.mark.parametrize("hand_over", [True, False])
async def test_a_server_that_ends_waits_for_no_start(tmp_path: Path, hand_over: bool) -> None:
    """A question that is just being asked is handed over or ended, however slow its tools are."""

    stage = Stage(tmp_path, tmp_path / "s.sqlite3", "tools")
    asking = await stage.come()
    await asyncio.wait_for(stage.runner.aclose(hand_over=hand_over), 20)
    assert await asking
    ends = [end["reason"] for end in stage.ends()]
    held = [lease.silent > LEASE for lease in stage.other_log.leases.held(stage.session)]
    assert (ends, held) == (([], [True]) if hand_over else (["cancelled"], []))
    assert stage.model.requests == []
    await stage.close()


async def test_who_closes_waits_for_the_end_of_an_answer(tmp_path: Path) -> None:
    """A run that is over is stored and its lease released: the next question is taken at once."""
    silent, model = Silent("run_finished"), Scripted([says("Yes.")])
    log = Slow(tmp_path / "s.sqlite3", silent)
    runner = Runner(settings(tmp_path), log, silent, providers=[model])
    session = log.create_session(model="scripted:one", search="off").id
    await runner.start(session, "Is it?")
    await asyncio.wait_for(silent.reached.wait(), 20)
    closing = asyncio.create_task(runner.aclose())
    for _ in range(20):
        await asyncio.sleep(0)
    silent.free.set()
    await asyncio.wait_for(closing, 20)
    ends = [event.data["reason"] for event in log.read(session) if event.type == "run_finished"]
    assert (ends, log.leases.held(session)) == (["stop"], [])
    log.close()
