"""The leases of one process: kept alive, given up, taken over from the dead, and their signals.

Everything that is done here may fail because the store does not answer; then it is done again at
the next beat, and nothing is lost meanwhile but time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any
from weakref import WeakValueDictionary

from agent.closing import close_run
from agent.errors import AgentError, Conflict
from agent.leases import BEAT, LEASE, Lease, gone, holder
from agent.log import EventLog

_log = logging.getLogger(__name__)
_AT_ONCE = 16  # runs taken over in one go, so that others get their share
_STOPPING = 15.0  # seconds to wait for another process to stop a run
_LOOKS, _LOOK = 50, 0.02  # times and seconds to wait for the lease of a run that is over
CANCEL = {"kind": "cancel"}


class Keeper:
    """Use on one loop. `stop(session)` ends a run of ours; `adopt(lease)` goes on with one."""

    def __init__(
        self,
        log: EventLog,
        stop: Callable[[str], None],
        adopt: Callable[[Lease], Awaitable[None]],
    ) -> None:
        self._log = log
        self._leases = log.leases
        self._stop = stop
        self._adopt = adopt
        self._name = holder()
        self._held: dict[str, Lease] = {}
        self._changes: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._adopting = False
        self._recovering = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._chores: set[asyncio.Task[Any]] = set()

    @classmethod
    def onlooker(cls, log: EventLog) -> Keeper:
        """One that holds no run itself, to stop those of others."""

        async def nothing(lease: Lease) -> None: ...

        return cls(log, lambda session: None, nothing)

    async def claim(self, session_id: str, run_id: str, turn: Mapping[str, Any]) -> Lease:
        """Takes the session for a run; one that died there is closed first. Raises Conflict.

        The end of a run is told a moment before its lease goes: who asks on it at once waits.
        """
        self._begin()
        for _ in range(_LOOKS):
            try:
                return await self._claim(session_id, run_id, turn)
            except Conflict as conflict:
                under_way = self._log.under_way
                if conflict.code != "busy" or await self._log.aside(under_way, session_id):
                    raise
            await asyncio.sleep(_LOOK)
        return await self._claim(session_id, run_id, turn)

    async def _claim(self, session_id: str, run_id: str, turn: Mapping[str, Any]) -> Lease:
        claim = self._leases.claim
        async with self._changing(session_id):
            try:
                lease = await self._log.aside(claim, session_id, run_id, self._name, turn)
            except Conflict as conflict:
                if conflict.code != "busy" or not await self._buried(session_id):
                    raise
                lease = await self._log.aside(claim, session_id, run_id, self._name, turn)
            self._held[session_id] = lease
        return lease

    async def release(self, lease: Lease) -> None:
        """The run is over."""
        async with self._changing(lease.session):
            self.forget(lease)
            await self._log.aside(self._leases.release, lease)

    def _changing(self, session_id: str) -> asyncio.Lock:
        """Held while a lease changes hands. What is in the store and not among those held is no
        orphan then: somebody here sees to it.
        """
        return self._changes.setdefault(session_id, asyncio.Lock())

    def forget(self, lease: Lease) -> None:
        """We do nothing more for this run; whoever recovers next goes on with it."""
        if self._held.get(lease.session) == lease:
            del self._held[lease.session]

    async def hand_over(self, lease: Lease) -> None:
        """Leaves a run that is not over to another process, at once."""
        self.forget(lease)
        await self._log.aside(self._leases.hand_over, lease)

    async def recover(self) -> int:
        """Goes on with runs whose process is gone, from now on too. Returns how many there were."""
        self._begin()
        self._adopting = True
        return await self._recover()

    async def _buried(self, session_id: str) -> bool:
        lease = await self._taken(session_id)
        if lease is None:
            return False
        await asyncio.to_thread(close_run, self._log, lease)
        return True

    async def cancel(self, session_id: str) -> bool:
        """Stops a run that another process holds, and waits for that; False when there is none."""
        last = await self._log.aside(self._log.last_seq, session_id)
        if not await self._log.aside(self._leases.held, session_id):
            return False
        async with self._changing(session_id):
            lease = await self._taken(session_id)
            if lease is not None:
                await asyncio.to_thread(close_run, self._log, lease, "cancelled")
                return True
        await self._log.aside(self._leases.signal, session_id, CANCEL)
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(_STOPPING),
                aclosing(self._log.follow(session_id, last or 0)) as batches,
            ):
                async for batch in batches:
                    if any(event.type == "run_finished" for event in batch):
                        return True
        return not await self._log.aside(self._leases.held, session_id)

    async def aclose(self) -> None:
        """Stops keeping."""
        tasks = [*self._chores, *([self._beating] if self._beating else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _orphan(self, lease: Lease) -> bool:
        if lease.owner == self._name:
            return lease.session not in self._held
        return lease.silent >= LEASE or gone(lease)

    async def _taken(self, session_id: str) -> Lease | None:
        """The session's run under our lease, if its process is gone and nobody was quicker."""
        for lost in await self._log.aside(self._leases.held, session_id):
            if self._orphan(lost):
                return await self._log.aside(self._leases.take_over, lost, self._name)
        return None

    async def _recover(self) -> int:
        done = 0
        async with self._recovering:
            for lost in await self._log.aside(self._leases.held):
                change = self._changes.get(lost.session)
                if done == _AT_ONCE or (change and change.locked()) or not self._orphan(lost):
                    continue
                lease = await self._log.aside(self._leases.take_over, lost, self._name)
                if lease is not None:
                    self._held[lease.session] = lease
                    await self._adopt(lease)
                    done += 1
        return done

    def _begin(self) -> None:
        if self._beating is None:
            loop = asyncio.get_running_loop()

            def heard(news: Mapping[str, Any]) -> None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._told, news)

            self._log.hear(heard)
            self._beating = asyncio.create_task(self._beat(), name="leases")

    def _told(self, news: Mapping[str, Any]) -> None:
        work: list[Awaitable[Any]] = []
        if news.get("signal") in self._held:
            work.append(self._obey())
        if "orphan" in news and self._adopting:
            work.append(self._recover())
        for each in work:
            task = asyncio.ensure_future(self._quietly(each))
            self._chores.add(task)
            task.add_done_callback(self._chores.discard)

    async def _quietly(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except AgentError as error:
            _log.warning("the session store does not answer: %s", error)

    async def _obey(self) -> None:
        """Does what other processes wish."""
        for signal in await self._log.aside(self._leases.signals, self._name):
            if signal.data == CANCEL and signal.session in self._held:
                self._stop(signal.session)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            await self._quietly(self._once())

    async def _once(self) -> None:
        before = dict(self._held)
        if before:
            ours = await asyncio.to_thread(self._leases.beat, self._name)  # it waits for the disk
            for session, lease in before.items():
                lost = ours.get(session) != lease.fence
                if lost and self._held.get(session) is lease:
                    self._stop(session)  # what it would write is refused
            await self._obey()
        if self._adopting:
            await self._recover()
