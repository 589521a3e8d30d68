"""The event log: everything said or done, append-only, in one SQLite file.

A session is a row of settings and a run of events numbered from 1; nothing else is kept. Appending
a `message` removes the deltas it replaces in the same transaction. Followers get what is stored,
then what is appended: from this process at once, from another process within two seconds.
Writes share one connection under a lock; each reader of the moment has one of its own.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.errors import Conflict
from agent.events import Event
from agent.followers import Follower
from agent.session import Session
from agent.store import open_database, store_errors
from agent.tables import STEPS
from agent.text import plain, to_json

Pending = tuple[str, Mapping[str, Any]]

_COLUMNS = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id) AS running, settings"
)
_CHANGEABLE = frozenset({"title", "model", "mode", "search", "search_path", "workspace"})
_POLL = 2.0  # how late an event of another process may be noticed, in seconds


class EventLog:
    """Sessions and their events. Every method may be called from any thread."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._followers: dict[str, set[Follower]] = {}
        self._write = open_database(path, STEPS)

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
        session, now = secrets.token_urlsafe(18), time.time()
        kept = to_json({k: v for k, v in (settings or {}).items() if v is not None})
        with self._transaction() as db:
            db.execute(
                "INSERT INTO sessions VALUES (?, '', ?, ?, ?, 'off', ?, ?, ?, 0, 0, ?)",
                (session, model, mode, search, workspace, now, now, kept),
            )
        return self.session(session)

    def session(self, session_id: str) -> Session:
        """Raises Conflict('no_session') when it does not exist (any more)."""
        row = self._one(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (session_id,))
        if row is None:
            raise _gone(session_id)
        return self._session(row)

    def sessions(self, q: str | None = None, limit: int = 200) -> list[Session]:
        """Newest first; `q` looks in titles and in what the user wrote."""
        where, values = "", []
        if q:
            where = """WHERE title LIKE ?1 ESCAPE '\\' OR EXISTS (SELECT 1 FROM events
                WHERE session = sessions.id AND type = 'user_message'
                AND json_extract(data, '$.text') LIKE ?1 ESCAPE '\\')"""
            values = [_like(q)]
        query = f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated DESC LIMIT {int(limit)}"
        rows = self._all(query, values)
        return [self._session(row) for row in rows]

    def update_session(
        self, session_id: str, settings: Mapping[str, Any] | None = None, /, **changes: str | None
    ) -> Session:
        """Changes title, model, mode, search, search_path or workspace.

        `settings` are put over those there are, key by key; None takes a key away.
        """
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise ValueError(f"a session has no {sorted(unknown)}")
        with self._transaction() as db:
            for name, value in changes.items():
                db.execute(f"UPDATE sessions SET {name} = ? WHERE id = ?", (value, session_id))
            if settings:
                query = "SELECT settings FROM sessions WHERE id = ?"
                row = db.execute(query, (session_id,)).fetchone() or ("{}",)
                merged = {**json.loads(row[0]), **settings}
                kept = to_json({k: v for k, v in merged.items() if v is not None})
                db.execute("UPDATE sessions SET settings = ? WHERE id = ?", (kept, session_id))
        return self.session(session_id)

    def delete_session(self, session_id: str) -> None:
        """Removes the session, its events and its run."""
        with self._transaction() as db:
            for table, key in (("events", "session"), ("runs", "session"), ("sessions", "id")):
                db.execute(f"DELETE FROM {table} WHERE {key} = ?", (session_id,))
        for follower in self._followers.pop(session_id, set()):
            follower.wake()

    def append(
        self, session_id: str, events: Sequence[Pending], *, durable: bool = False
    ) -> list[Event]:
        """Appends in one transaction and tells the followers.

        With `durable` the events survive a power cut once this returns, not only a crash.
        """
        now = time.time()
        asked = sum(kind == "user_message" for kind, _ in events)
        with self._transaction(durable=durable) as db:
            row = db.execute(
                "UPDATE sessions SET last_seq = last_seq + ?, messages = messages + ?, updated = ?"
                " WHERE id = ? RETURNING last_seq",
                (len(events), asked, now, session_id),
            ).fetchone()
            if row is None:
                raise _gone(session_id)
            first = row[0] - len(events) + 1
            stored, rows = [], []
            for seq, (kind, given) in enumerate(events, first):
                data, text = _dump(given)
                stored.append(Event(seq, kind, data, now))
                rows.append((session_id, seq, kind, text, now))
            if any(kind == "message" for kind, _ in events):
                db.execute(
                    "DELETE FROM events WHERE session = ? AND type IN ('text_delta',"
                    " 'thinking_delta')",
                    (session_id,),
                )
            db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        for follower in tuple(self._followers.get(session_id, ())):
            follower.push(stored)
        return stored

    def read(self, session_id: str, after: int = 0) -> list[Event]:
        """The stored events with a number above `after`, in order."""
        rows = self._all(
            "SELECT seq, type, data, at FROM events WHERE session = ? AND seq > ? ORDER BY seq",
            (session_id, after),
        )
        return [self._event(row) for row in rows]

    def last_event(self, session_id: str) -> Event:
        """The newest event; after a run that is its `run_finished`. Raises Conflict if none."""
        row = self._one(
            "SELECT seq, type, data, at FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1",
            (session_id,),
        )
        if row is None:
            raise _gone(session_id)
        return self._event(row)

    def last_seq(self, session_id: str) -> int | None:
        """The number of the newest event, or None when the session is gone."""
        row = self._one("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        return None if row is None else int(row[0])

    async def follow(self, session_id: str, after: int = 0) -> AsyncGenerator[list[Event], None]:
        """Batches of events from `after` on: stored ones, then live ones. Ends when it is deleted.

        A follower that lags loses its queue, not its place: it is read from the store again.
        """
        follower = Follower(asyncio.get_running_loop())
        self._followers.setdefault(session_id, set()).add(follower)
        try:
            after, behind = min(after, self.last_seq(session_id) or 0), True
            while True:
                batch = None if behind else follower.take(after)
                if batch is None:
                    batch = self.read(session_id, after)
                if batch:
                    after = batch[-1].seq
                    yield batch
                behind = await follower.wait(_POLL)
                if behind:
                    last = self.last_seq(session_id)
                    if last is None:
                        return
                    behind = last > after
        finally:
            group = self._followers.get(session_id, set())
            group.discard(follower)
            if not group:
                self._followers.pop(session_id, None)

    def claim(self, session_id: str, run_id: str, owner: str) -> None:
        """Marks the session as being answered; raises Conflict('busy') when it is already."""
        with self._transaction() as db:
            done = db.execute(
                "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)",
                (session_id, run_id, owner, time.time()),
            )
        if done.rowcount == 0:
            what = "This session is still answering."
            raise Conflict("busy", what, "Wait for the answer, or stop it first.")

    def beat(self, owner: str) -> None:
        """Says that the runs of `owner` are alive."""
        with self._transaction() as db:
            db.execute("UPDATE runs SET beat = ? WHERE owner = ?", (time.time(), owner))

    def release(self, session_id: str, run_id: str) -> bool:
        """Ends the claim; False when it was no longer ours."""
        with self._transaction() as db:
            done = db.execute(
                "DELETE FROM runs WHERE session = ? AND run_id = ?", (session_id, run_id)
            )
            return done.rowcount == 1

    def claims(self) -> list[tuple[str, str, str, float]]:
        """Runs that are claimed: (session, run, owner, seconds since the owner was heard of)."""
        now = time.time()
        rows = self._all("SELECT session, run_id, owner, beat FROM runs", ())
        return [(session, run, owner, now - beat) for session, run, owner, beat in rows]

    def close(self) -> None:
        """Closes the connections; a reader that is in use closes with its thread."""
        with self._lock:
            self._write.close()
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        with self._lock, store_errors(self._path):
            db = self._write
            if durable:
                db.execute("PRAGMA synchronous = FULL")
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it already
                    db.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    db.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with store_errors(self._path):
            db = self._idle.pop() if self._idle else open_database(self._path)
            try:
                yield db
            finally:
                self._idle.append(db)

    def _one(self, query: str, values: Sequence[Any]) -> Any:
        with self._reading() as db:
            return db.execute(query, values).fetchone()

    def _all(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._reading() as db:
            return db.execute(query, values).fetchall()

    def _session(self, row: Sequence[Any]) -> Session:
        with store_errors(self._path):
            return Session(*(*row[:-2], bool(row[-2]), json.loads(row[-1])))

    def _event(self, row: Sequence[Any]) -> Event:
        with store_errors(self._path):
            return Event(row[0], row[1], json.loads(row[2]), row[3])


def _dump(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    try:
        return data, to_json(data)
    except (ValueError, TypeError):
        return (data := plain(data)), to_json(data)


def _like(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _gone(session_id: str) -> Conflict:
    return Conflict(
        "no_session",
        f"There is no session {session_id!r}.",
        "It may have been deleted; `searchloop sessions` lists those there are.",
    )
