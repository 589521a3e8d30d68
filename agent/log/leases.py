"""What processes on one store know of each other: who holds which run, and what is new.

One process holds a run, and each holder has a higher fence than the last. It renews its leases
every `BEAT` seconds of the store's clock. After `LEASE` seconds of silence any process may take the
run over; an append compares the fence in its own transaction. A follower gets the events that are
appended, in this process or another.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import Conflict, busy
from searchloop.agent.log.contract import Database, Observer
from searchloop.agent.log.events import Event, event_of
from searchloop.agent.text import to_json

if TYPE_CHECKING:
    from searchloop.agent.log.find import ChatSearch

BEAT = 0.9  # plus the time of a write: a power cut loses less than a second of an answer
LEASE = 4.0
_MINE = "session IN (SELECT id FROM sessions WHERE owner = ?)"
_COLUMNS = "session, run_id, owner, fence, takeovers, turn"


@dataclass(frozen=True, slots=True)
class Lease:
    """A run and its holder. `silent` is the time since the holder's last beat, in seconds."""

    session: str
    run_id: str
    owner: str
    fence: int
    takeovers: int = 0
    turn: Mapping[str, Any] = field(default_factory=dict)
    silent: float = 0.0


class Leases:
    """The runs of a person's sessions in a store. Any thread may call every method."""

    def __init__(self, db: Database, person: str = "") -> None:
        self._db = db
        self._person = person

    def claim(
        self, session_id: str, run_id: str, owner: str, turn: Mapping[str, Any] | None = None
    ) -> Lease:
        """Takes the session for a run; a takeover reads `turn`. Raises Conflict."""
        with self._db.transaction() as db:
            row = db.execute(
                "UPDATE sessions SET fence = fence + 1 WHERE id = ? AND owner = ? RETURNING fence",
                (session_id, self._person),
            ).fetchone()
            if row is None:
                raise no_session(session_id)
            done = db.execute(
                "INSERT INTO runs (session, run_id, owner, beat, turn, fence) VALUES (?, ?, ?, "
                f"{self._db.clock}, ?, ?) ON CONFLICT (session) DO NOTHING",
                (session_id, run_id, owner, to_json(turn or {}), row[0]),
            )
            if done.rowcount == 0:
                raise busy()
        return Lease(session_id, run_id, owner, row[0], turn=turn or {})

    def take_over(self, lease: Lease, owner: str) -> Lease | None:
        """Returns the lease of a new holder with a higher fence; None when another was quicker."""
        with self._db.transaction() as db:
            row = db.execute(
                "UPDATE sessions SET fence = fence + 1 WHERE id = ? AND fence = ? RETURNING fence",
                (lease.session, lease.fence),
            ).fetchone()
            if row is None:
                return None
            done = db.execute(
                f"UPDATE runs SET owner = ?, fence = ?, beat = {self._db.clock}, "
                f"takeovers = takeovers + 1 WHERE session = ? AND fence = ? RETURNING {_COLUMNS}",
                (owner, row[0], lease.session, lease.fence),
            ).fetchone()
            return None if done is None else self._lease(done)

    def beat(self, owner: str) -> dict[str, int]:
        """Renews the leases of `owner`, durably; returns those it has, as session -> fence.

        A run that somebody wants stopped is not among them.
        """
        query = f"UPDATE runs SET beat = {self._db.clock} WHERE owner = ? RETURNING session, fence"
        with self._db.transaction(durable=True) as db:
            rows = db.execute(f"{query}, stop", (owner,)).fetchall()
        return {session: fence for session, fence, stop in rows if not stop}

    def release(self, lease: Lease) -> bool:
        """Ends the lease; False when it was no longer ours."""
        query = "DELETE FROM runs WHERE session = ? AND fence = ?"
        with self._db.transaction() as db:
            return bool(db.execute(query, (lease.session, lease.fence)).rowcount)

    def hand_over(self, lease: Lease) -> None:
        """Gives up the lease of an unfinished run: whoever looks for silent ones next gets it."""
        query = (
            "UPDATE runs SET beat = 0, takeovers = takeovers - 1 WHERE session = ? AND fence = ?"
        )
        with self._db.transaction() as db:
            db.execute(query, (lease.session, lease.fence))

    def held(self, session_id: str | None = None) -> list[Lease]:
        """Returns the leases of all runs, or that of one session."""
        query = f"SELECT {_COLUMNS}, {self._db.clock} - beat FROM runs"
        where, values = f" WHERE {_MINE}", [self._person]
        if session_id:
            where, values = f"{where} AND session = ?", [*values, session_id]
        with self._db.reading() as db:
            rows = db.execute(query + where, values).fetchall()
            return [self._lease(row[:-1], row[-1]) for row in rows]

    def ask_to_stop(self, session_id: str) -> bool:
        """Asks the holder of the session's run to stop it; False when there is no run."""
        query = f"UPDATE runs SET stop = 1 WHERE session = ? AND {_MINE}"
        with self._db.transaction() as db:
            return bool(db.execute(query, (session_id, self._person)).rowcount)

    def _lease(self, row: Sequence[Any], silent: float = 0.0) -> Lease:
        # A beat in the future is from before a restart of this machine.
        age = silent if silent > -1 else math.inf
        session, run_id, owner, fence, takeovers, turn = row
        return Lease(session, run_id, owner, fence, takeovers, json.loads(turn), age)


def no_session(session_id: str) -> Conflict:
    """Makes the error for a session that does not exist."""
    what = f"There is no session {session_id!r}."
    remedy = "It may have been deleted; `searchloop sessions` lists those there are."
    return Conflict("no_session", what, remedy)


@cache
def machine() -> str:
    """Names what gives process numbers their meaning: host, boot and PID namespace.

    Containers share names of hosts, namespaces have equal numbers on two machines, and boots tell
    those apart. Where a part cannot be read, a random one makes the name this process's alone.
    """
    try:
        name = Path("/proc/sys/kernel/hostname").read_text("ascii").strip()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        space = os.stat("/proc/self/ns/pid").st_ino
    except (OSError, ValueError):  # no Linux
        return secrets.token_hex(16)
    return f"{name}/{boot}:{space}"


def holder() -> str:
    """Returns a unique name for a holder in this process: machine, process, random part."""
    return f"{machine()}/{os.getpid()}/{secrets.token_hex(4)}"


def gone(lease: Lease) -> bool:
    """Returns True when the holder is certainly dead; seen from elsewhere, its beat decides."""
    where, pid, _ = lease.owner.rsplit("/", 2)
    if where != machine() or os.name != "posix":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


class Follower:
    """A bounded queue from any thread to one reader on one event loop."""

    LIMIT = 256

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._waiting: asyncio.Event = asyncio.Event()
        self._queue: list[Event] = []
        self._lagging = False

    def push(self, events: list[Event] | None) -> None:
        """Adds new events, or (None) makes the reader read the store; any thread may call this."""
        if threading.get_ident() == self._thread:
            self._put(events)
        else:
            with suppress(RuntimeError):  # the reader's loop is closed: nobody is waiting
                self._loop.call_soon_threadsafe(self._put, events)

    def _put(self, events: list[Event] | None) -> None:
        if events is None or len(self._queue) + len(events) > self.LIMIT:
            self._queue.clear()
            self._lagging = True
        elif not self._lagging:
            self._queue.extend(events)
        self._waiting.set()

    def take(self, after: int) -> list[Event] | None:
        """Returns the queued events after `after`; None if one is missing: read the store then."""
        queue, self._queue = self._queue, []
        fresh = [e for e in queue if e.seq > after]
        whole = all(e.seq == seq for seq, e in enumerate(fresh, after + 1))
        return fresh if whole else None

    async def wait(self, seconds: float) -> bool:
        """Waits for events; True after an overflow or silence: the reader must read the store."""
        late = self._loop.call_later(seconds, self._put, None)
        try:
            await self._waiting.wait()
        finally:
            late.cancel()
        self._waiting.clear()
        lagging, self._lagging = self._lagging, False
        return lagging


class Followers(dict[str, set[Follower]]):
    """The followers of each session in this process, by the session's id."""

    def join(self, session_id: str) -> Follower:
        """Adds a follower whose reader is on the running event loop."""
        follower = Follower(asyncio.get_running_loop())
        self.setdefault(session_id, set()).add(follower)
        return follower

    def leave(self, session_id: str, follower: Follower) -> None:
        """Removes a follower."""
        group = self.get(session_id, set())
        group.discard(follower)
        if not group:
            self.pop(session_id, None)

    def push(self, session_id: str | None, events: list[Event] | None) -> None:
        """Passes new events on to a session's followers; None is for every session or event."""
        for session in (session_id,) if session_id else tuple(self):
            for follower in tuple(self.get(session, ())):
                follower.push(events)

    def receive(self, news: Mapping[str, Any]) -> None:
        """Receives news of another process: events, or a session to read from the store."""
        given, last = news.get("events") or [], news.get("last", 0)
        first = last - len(given) + 1
        events = [event_of(seq, e[0], e[1], news["at"]) for seq, e in enumerate(given, first)]
        # Where the events were too long, a follower reads the store; without a session, all do.
        self.push(news.get("session"), events or None)


class SharedStore:
    """What the logs of all persons have in common; `observer` hears what this process appends."""

    def __init__(self, db: Database, observer: Observer) -> None:
        self.db, self.observer = db, observer
        self.followers = Followers()
        self.search: ChatSearch | None = None
