"""Renews the leases of one process, and takes over the runs of dead ones.

A step that fails because the store does not answer runs again at the next beat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any
from weakref import WeakValueDictionary

from searchloop.agent.errors import AgentError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.events import message_data, result_data, unfinished
from searchloop.agent.log.leases import BEAT, LEASE, Lease, gone, holder
from searchloop.agent.run.resume import Past, unknown_outcome
from searchloop.agent.types import Message, RunReason, Usage

_log = logging.getLogger(__name__)
_AT_ONCE = 16  # runs taken over in one go, so that others get their share
_STOPPING = 15.0  # seconds to wait for another process to stop a run


class LeaseRenewal:
    """Renews leases on one loop. `stop(session)` ends a run of ours, `adopt(lease)` resumes one."""

    def __init__(
        self, log: EventLog, stop: Callable[[str], None], adopt: Callable[[Lease], Awaitable[None]]
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

    @classmethod
    def onlooker(cls, log: EventLog) -> LeaseRenewal:
        """Makes one without runs of its own, to stop those of other processes."""

        async def nothing(lease: Lease) -> None: ...

        return cls(log, lambda session: None, nothing)

    async def claim(self, session_id: str, run_id: str, turn: Mapping[str, Any]) -> Lease:
        """Claims the session for a run; closes one whose process is gone. Raises Conflict."""
        self._begin()
        claim = self._leases.claim
        async with self._changing(session_id):
            try:
                lease = await self._log.aside(claim, session_id, run_id, self._name, turn)
            except Conflict as conflict:
                dead = None if conflict.code != "busy" else await self._taken(session_id)
                if dead is None:
                    raise
                await asyncio.to_thread(close_run, self._log, dead)
                lease = await self._log.aside(claim, session_id, run_id, self._name, turn)
            self._held[session_id] = lease
        return lease

    async def release(self, lease: Lease) -> None:
        """Releases the lease of a run that has stored no end."""
        async with self._changing(lease.session):
            self.forget(lease)
            await self._log.aside(self._leases.release, lease)

    def _changing(self, session_id: str) -> asyncio.Lock:
        """Returns the lock for a change of a lease: meanwhile one not in `_held` is no orphan."""
        return self._changes.setdefault(session_id, asyncio.Lock())

    def forget(self, lease: Lease) -> None:
        """Stops renewing the lease of this run; the next process that recovers resumes it."""
        if self._held.get(lease.session) == lease:
            del self._held[lease.session]

    async def recover(self) -> int:
        """Resumes runs whose process is gone, now and from now on. Returns their number now."""
        self._begin()
        self._adopting = True
        return await self._recover()

    async def cancel(self, session_id: str) -> bool:
        """Stops a run of another process and waits for its end. Returns False if there is none."""
        last = await self._log.aside(self._log.last_seq, session_id)
        if not await self._log.aside(self._leases.held, session_id):
            return False
        async with self._changing(session_id):
            lease = await self._taken(session_id)
            if lease is not None:
                await asyncio.to_thread(close_run, self._log, lease, "cancelled")
                return True
        await self._log.aside(self._leases.ask_to_stop, session_id)
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
        """Stops renewing."""
        if self._beating:
            self._beating.cancel()
            await asyncio.wait([self._beating])

    def _orphan(self, lease: Lease) -> bool:
        if lease.owner == self._name:
            return lease.session not in self._held
        return lease.silent >= LEASE or gone(lease)

    async def _taken(self, session_id: str) -> Lease | None:
        """Takes over the session's run if its process is gone. Returns our lease, or None."""
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
            self._beating = asyncio.create_task(self._beat(), name="leases")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            try:
                await self._once()
            except AgentError as error:
                _log.warning("the session store does not answer: %s", error)

    async def _once(self) -> None:
        """Renews the leases; stops runs that are no longer ours, or that somebody wants stopped."""
        before = dict(self._held)
        if before:
            ours = await asyncio.to_thread(self._leases.beat, self._name)  # it waits for the disk
            for session, lease in before.items():
                lost = ours.get(session) != lease.fence
                if lost and self._held.get(session) is lease:
                    self._stop(session)
        if self._adopting:
            await self._recover()


_INTERRUPTED = {
    "code": "interrupted",
    "message": "searchloop stopped before the answer was finished.",
    "remedy": "What came is kept. Send the question again.",
}


def close_run(
    log: EventLog, lease: Lease, reason: RunReason = "incomplete", error: AgentError | None = None
) -> None:
    """Ends a run whose process is gone, as its holder, and releases the lease."""
    events = log.read(lease.session)
    past = Past.of(events, lease.run_id)
    if past and not past.finished:
        lost = [c for m in past.transcript for c in m.tool_calls if c.id in past.begun]
        unknown = [unknown_outcome(call) for call in lost if call.id not in past.results]
        said = unfinished(events)
        finished = {
            "run_id": lease.run_id,
            "reason": reason,
            "answer": said,
            "citations": [],
            "sources": [],
            "usage": past.usage.as_dict(),
            "search_path": log.session(lease.session).search_path,
            "model": past.started["model"],
            "session_id": lease.session,
        }
        if reason != "cancelled":
            finished["error"] = error.as_dict() if error else _INTERRUPTED
        ending: list[Pending] = [
            *(("tool_result", result_data(result)) for result in unknown),
            *partial_message(said, past.usage),
            ("run_finished", finished),
        ]
        log.append(lease.session, ending, durable=True, fence=lease.fence)
    log.leases.release(lease)


def partial_message(text: str, usage: Usage) -> list[Pending]:
    """Returns an answer that broke off as a message event; none for an empty one."""
    message = Message("assistant", text)
    data = message_data(message, step=0, usage=usage, stop_reason=None, partial=True)
    return [("message", data)] if text else []
