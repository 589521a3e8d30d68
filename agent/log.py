"""The event log: everything said or done, append-only, whichever store keeps it.

A session is a row of settings and a run of events numbered from 1; nothing else is kept. Appending
a `message` removes the deltas it replaces in the same transaction. Followers get what is stored,
then what is appended: from this process at once, from another one as soon as the store can tell.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import string
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from agent.errors import Conflict, StoreError
from agent.events import Event, event_in
from agent.followers import Followers
from agent.leases import Leases, no_session
from agent.parcel import Parcel, Passing, Pending, parcel
from agent.session import Session
from agent.store import open_store
from agent.store.contract import Batch, Heard, rows_of
from agent.text import column_text, like_pattern, object_in, to_json

P = ParamSpec("P")
T = TypeVar("T")

_COLUMNS = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id) AS running, settings"
)
# Of an id, which is an argument of commands, and taken for an option if it began with a dash.
_LETTERS = string.ascii_letters + string.digits
_CHANGEABLE = frozenset({"title", "model", "mode", "search", "search_path", "workspace"})
_PINNED = '%"pinned":true%'  # how `to_json` writes it into settings
_POLL = 2.0  # how late an event of another process may be noticed if nobody tells, in seconds
_POLL_TOLD = 20.0
_PAGE = 500  # events that a follower reads at a time


class EventLog:
    """Sessions and their events. Every method may be called from any thread."""

    def __init__(self, where: Path | str) -> None:
        """`where` is a file, or an address that begins with `postgresql://`.

        Raises StoreError when the store cannot be used or is newer than this program.
        """
        self._db = open_store(where)
        self.where = self._db.where
        self.leases = Leases(self._db)
        self._followers = Followers()
        self._hearing: list[Heard] = []

    def create_session(
        self,
        *,
        model: str,
        mode: str = "ask",
        search: str = "off",
        workspace: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Session:
        """A new, empty session with an id that cannot be guessed."""
        session, now = "".join(secrets.choice(_LETTERS) for _ in range(24)), time.time()
        kept = to_json({k: v for k, v in (settings or {}).items() if v is not None})
        with self._db.transaction() as db:
            db.execute(
                "INSERT INTO sessions (id, title, model, mode, search, search_path, workspace,"
                " created, updated, settings) VALUES (?, '', ?, ?, ?, 'off', ?, ?, ?, ?)",
                (session, *map(column_text, (model, mode, search, workspace)), now, now, kept),
            )
        return self.session(session)

    def session(self, session_id: str) -> Session:
        """Raises Conflict('no_session') when it does not exist (any more)."""
        row = self._one(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (session_id,))
        if row is None:
            raise no_session(session_id)
        return self._session(row)

    def sessions(self, q: str | None = None, limit: int = 200) -> list[Session]:
        """Newest first, and pinned ones however old; `q` looks in titles and in questions."""
        where, values = "", []
        if q:
            like = self._db.like
            where = f"""WHERE title {like} OR EXISTS (SELECT 1 FROM events
                WHERE session = sessions.id AND type = 'user_message'
                AND {self._db.text_of_data} {like})"""
            values = [like_pattern(q)] * 2
        query = f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated DESC LIMIT {int(limit)}"
        found = [self._session(row) for row in self._all(query, values)]
        if q or len(found) < limit:
            return found
        older = "WHERE settings LIKE ? AND updated < ? ORDER BY updated DESC"
        pinned = self._all(f"SELECT {_COLUMNS} FROM sessions {older}", [_PINNED, found[-1].updated])
        return found + [self._session(row) for row in pinned]

    def update_session(
        self, session_id: str, settings: Mapping[str, Any] | None = None, /, **changes: str | None
    ) -> Session:
        """Changes title, model, mode, search, search_path or workspace.

        `settings` are put over those there are, key by key; None takes a key away.
        """
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise ValueError(f"a session has no {sorted(unknown)}")
        with self._db.transaction() as db:
            for name, value in changes.items():
                query = f"UPDATE sessions SET {name} = ? WHERE id = ?"
                db.execute(query, (column_text(value), session_id))
            if settings:
                query = f"SELECT settings FROM sessions WHERE id = ?{self._db.locking}"
                row = db.execute(query, (session_id,)).fetchone() or ("{}",)
                merged = {**json.loads(row[0]), **settings}
                kept = to_json({k: v for k, v in merged.items() if v is not None})
                db.execute("UPDATE sessions SET settings = ? WHERE id = ?", (kept, session_id))
        return self.session(session_id)

    def delete_session(self, session_id: str) -> None:
        """Removes the session, its events and its run, for good: a power cut brings none back."""
        with self._db.transaction(durable=True) as db:
            for table in ("events", "deltas", "runs", "signals"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))
            db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        self._followers.wake(session_id)
        self._db.tell({"session": session_id})

    def append(
        self,
        session_id: str,
        events: Sequence[Pending],
        *,
        durable: bool = False,
        fence: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        """Appends in one transaction and tells the followers.

        With `durable` the events survive a power cut once this returns, not only a crash. With
        `fence` they are those of a run: Conflict('fenced') once another process has taken it over.
        With `after` they follow that event: Conflict('moved') when another came in between.
        """
        given = parcel(session_id, events, durable=durable, fence=fence, after=after)
        last = self._db.append(given.batch)
        if last is None:
            if self.last_seq(session_id) is None:
                raise no_session(session_id)
            raise _fenced() if after is None else Conflict("moved", "Something else came first.")
        return self._pushed(given, last)

    def append_deltas(self, deltas: Sequence[Passing]) -> list[list[Event] | Conflict]:
        """Appends what runs are saying in one transaction, and tells the followers.

        What became of each: the events, or why its run may not write any more.
        """
        given = [parcel(each.session, each.events, fence=each.fence) for each in deltas]
        lasts = self._db.append_deltas([each.batch for each in given])
        both = zip(given, lasts, strict=True)
        return [_fenced() if last is None else self._pushed(each, last) for each, last in both]

    def _pushed(self, given: Parcel, last: int) -> list[Event]:
        stored = given.events(last)
        self._publish(given.batch, stored)
        return stored

    def _publish(self, batch: Batch, stored: list[Event]) -> None:
        self._followers.push(batch.session, stored)

    def read(self, session_id: str, after: int = 0, limit: int = -1) -> list[Event]:
        """The stored events with a number above `after`, in order; `limit` of them if given."""
        parts = " UNION ALL ".join(
            f"SELECT seq, type, data, at, {checksum} FROM {table} WHERE session = ? AND seq > ?"
            for table, checksum in (("events", "checksum"), ("deltas", "NULL"))
        )
        cut = f" LIMIT {int(limit)}" if limit >= 0 else ""
        rows = self._all(f"{parts} ORDER BY seq{cut}", (session_id, after) * 2)
        return [event_in(session_id, *row) for row in rows]

    def last_event(self, session_id: str) -> Event:
        """The newest event; after a run that is its `run_finished`. Raises Conflict if none."""
        last = self.last_seq(session_id)
        events = self.read(session_id, (last or 0) - 1) if last else []
        if not events:
            raise no_session(session_id)
        return events[-1]

    def last_seq(self, session_id: str) -> int | None:
        """The number of the newest event, or None when the session is gone."""
        row = self._one("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        return None if row is None else int(row[0])

    def under_way(self, session_id: str) -> bool:
        """Whether an answer is; the lease of one whose end is told goes a moment later."""
        held = self.leases.held(session_id)
        newest = self.read(session_id, (self.last_seq(session_id) or 1) - 1)[-1:]
        ended = [e.data.get("run_id") for e in newest if e.type == "run_finished"]
        return bool(held) and held[0].run_id not in ended

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does this work with the log without holding up the loop: here if the store answers at
        once, else on a thread. `work` is one method, or writes at most once."""
        if self._db.quick:
            try:
                with self._db.at_once():
                    return work(*args, **kwargs)
            except StoreError as error:
                if error.code != "locked":
                    raise
        return await asyncio.to_thread(work, *args, **kwargs)

    def at_once(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Does this work, or gives up (None) rather than wait for anybody; for a loop."""
        if not self._db.quick:
            return None
        try:
            with self._db.at_once():
                return work(*args, **kwargs)
        except StoreError as error:
            if error.code == "locked":
                return None
            raise

    async def follow(self, session_id: str, after: int = 0) -> AsyncGenerator[list[Event], None]:
        """Batches of events from `after` on: stored ones, then live ones. Ends when it is deleted.

        A follower that lags loses its queue, not its place: it is read from the store again, a
        page at a time.
        """
        poll = _POLL if self._db.quick else _POLL_TOLD
        last = await self.aside(self.last_seq, session_id)
        if last is None:
            return
        after, behind = min(after, last), True  # a client may know of more than there is
        follower = self._followers.join(session_id)
        try:
            self.hear()
            while True:
                batch = None if behind else follower.take(after)
                if batch is None:
                    batch = await self.aside(self.read, session_id, after, _PAGE)
                    behind = len(batch) == _PAGE
                if batch:
                    after = batch[-1].seq
                    yield batch
                if behind:
                    continue
                behind = await follower.wait(poll)
                if behind:
                    last = await self.aside(self.last_seq, session_id)
                    if last is None:
                        return
                    behind = last > after
        finally:
            self._followers.leave(session_id, follower)

    def hear(self, heard: Heard | None = None) -> None:
        """Listens to other processes from now on; `heard` is told what they tell, on a thread."""
        if heard is not None:
            self._hearing.append(heard)
        self._db.listen(self._heard, lambda: bool(self._followers))

    def _heard(self, news: Mapping[str, Any]) -> None:
        for heard in tuple(self._hearing):
            heard(news)
        self._followers.told(news)

    def close(self) -> None:
        """Closes the store; a reader that is in use closes with its thread."""
        self._db.close()

    @property
    def trouble(self) -> StoreError | None:
        """See Database: why this can only be read."""
        return self._db.trouble

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        return next(iter(self._all(query, values)), None)

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return rows_of(self._db, query, values)

    def _session(self, row: Sequence[Any]) -> Session:
        return Session(*(*row[:-2], bool(row[-2]), object_in(row[-1]) or {}))


def _fenced() -> Conflict:
    return Conflict(
        "fenced", "Another process goes on with this run.", "Nothing is lost; read the log."
    )
