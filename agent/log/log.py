"""The event log: append-only, the same for every store.

A session is a row of settings and events numbered from 1. A follower gets the stored events, then
the appended ones: those of this process at once, others as soon as the store reports them.
"""

from __future__ import annotations

import asyncio
import copy
import json
import secrets
import string
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from searchloop.agent.errors import ConfigError, Conflict, StoreError
from searchloop.agent.log.attachments import AttachmentStore, delete_files
from searchloop.agent.log.contract import (
    STEPS,
    Batch,
    Database,
    Heard,
    Pending,
    RunDeltas,
    batch_of,
    count_used,
    rows_of,
    used,
)
from searchloop.agent.log.events import Event, event_in, event_of
from searchloop.agent.log.leases import Leases, no_session
from searchloop.agent.log.session import Session
from searchloop.agent.log.sqlite import SqliteDatabase
from searchloop.agent.settings import DATABASES
from searchloop.agent.text import column_text, like_pattern, object_in, to_json

P = ParamSpec("P")
T = TypeVar("T")

_COLUMNS = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id) AS running, settings"
)
# An id is an argument of commands: with a first dash it would be an option.
_LETTERS = string.ascii_letters + string.digits
_CHANGEABLE = frozenset({"title", "model", "mode", "search", "search_path", "workspace"})
_PINNED = '%"pinned":true%'  # as `to_json` writes it into settings
_OWNER = "SELECT owner FROM sessions WHERE id = ?"
_KNOWN = 10_000  # sessions of a person that are remembered
# Seconds without news after which a follower reads the store, and one that notifies.
_POLL, _POLL_NOTIFIED = 2.0, 20.0
_PAGE = 500  # events that a follower reads at a time


class EventLog:
    """A person's sessions and their events. Every method may be called from any thread."""

    def __init__(self, where: Path | str) -> None:
        """Opens the store at a path or at a `postgresql://` address; see `open_store`."""
        self._person, self._mine = "", set[str]()  # sessions that are known to be this person's
        self._db = open_store(where)
        self.where = self._db.where
        self.leases, self.attachments = Leases(self._db), AttachmentStore(self._db, self.owns)
        self._followers = Followers()
        self._hearing: list[Heard] = []

    def of_person(self, name: str) -> Self:
        """Returns this log as a person sees it: nobody else's session is there."""
        log = copy.copy(self)
        log._person, log._mine = name, set()
        log.leases, log.attachments = Leases(self._db, name), AttachmentStore(self._db, log.owns)
        return log

    def owns(self, session_id: str, *, writing: bool = False) -> bool:
        """Returns False for a session that does not exist, or is somebody else's: decided here."""
        if session_id not in self._mine:
            rows = rows_of(self._db, _OWNER, (session_id,))
            if writing and not rows:  # a writer notices that the store was replaced
                with self._db.transaction() as db:
                    rows = db.execute(_OWNER, (session_id,)).fetchall()
            if not rows or rows[0][0] != self._person:
                return False
            if len(self._mine) >= _KNOWN:
                self._mine.clear()
            self._mine.add(session_id)
        return True

    def people_running(self) -> list[str]:
        """Returns the names of those who have a run, in any process."""
        query = "SELECT DISTINCT owner FROM sessions WHERE id IN (SELECT session FROM runs)"
        return [row[0] for row in rows_of(self._db, query)]

    def create_session(
        self,
        *,
        model: str,
        mode: str = "ask",
        search: str = "off",
        workspace: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Session:
        """Makes an empty session with an id that nobody can guess."""
        session, now = "".join(secrets.choice(_LETTERS) for _ in range(24)), time.time()
        kept = to_json({k: v for k, v in (settings or {}).items() if v is not None})
        with self._db.transaction() as db:
            db.execute(
                "INSERT INTO sessions (id, title, model, mode, search, search_path, workspace,"
                " created, updated, settings, owner) VALUES (?, '', ?, ?, ?, 'off', ?, ?, ?, ?, ?)",
                (
                    *(session, *map(column_text, (model, mode, search, workspace))),
                    *(now, now, kept, self._person),
                ),
            )
        self._mine.add(session)
        return self.session(session)

    def session(self, session_id: str) -> Session:
        """Returns a session. Raises Conflict('no_session') when it does not exist."""
        query = f"SELECT {_COLUMNS} FROM sessions WHERE id = ? AND owner = ?"
        row = self._one(query, (session_id, self._person))
        if row is None:
            raise no_session(session_id)
        return _session(row)

    def sessions(self, q: str | None = None, limit: int = 200) -> list[Session]:
        """Lists sessions, newest first, and every pinned one; `q` searches titles and questions."""
        where, values = "WHERE owner = ?", [self._person]
        if q:
            like = self._db.like
            where = f"""{where} AND (title {like} OR EXISTS (SELECT 1 FROM events
                WHERE session = sessions.id AND type = 'user_message'
                AND {self._db.text_of_data} {like}))"""
            values += [like_pattern(q)] * 2
        query = f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated DESC LIMIT {int(limit)}"
        found = [_session(row) for row in rows_of(self._db, query, values)]
        if q or len(found) < limit:
            return found
        older = "AND settings LIKE ? AND updated < ? ORDER BY updated DESC"
        query = f"SELECT {_COLUMNS} FROM sessions {where} {older}"
        pinned = rows_of(self._db, query, [*values, _PINNED, found[-1].updated])
        return found + [_session(row) for row in pinned]

    def update_session(
        self, session_id: str, settings: Mapping[str, Any] | None = None, /, **changes: str | None
    ) -> Session:
        """Changes the columns in `_CHANGEABLE`, and `settings` key by key; None removes a key."""
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise ValueError(f"a session has no {sorted(unknown)}")
        if not self.owns(session_id):
            raise no_session(session_id)
        with self._db.transaction() as db:
            for name, value in changes.items():
                query = f"UPDATE sessions SET {name} = ? WHERE id = ?"
                db.execute(query, (column_text(value), session_id))
            if settings:
                # An UPDATE, which locks the row until the end of the transaction.
                query = "UPDATE sessions SET id = id WHERE id = ? RETURNING settings"
                row = db.execute(query, (session_id,)).fetchone() or ("{}",)
                merged = {**json.loads(row[0]), **settings}
                kept = to_json({k: v for k, v in merged.items() if v is not None})
                db.execute("UPDATE sessions SET settings = ? WHERE id = ?", (kept, session_id))
        return self.session(session_id)

    def delete_session(self, session_id: str) -> None:
        """Deletes the session, its events, files and run; no power cut brings them back."""
        if not self.owns(session_id):
            return
        with self._db.transaction(durable=True) as db:
            delete_files(db, session_id)
            for table in ("events", "deltas", "runs", "signals"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))
            done = db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        self._followers.push(session_id, None)
        if done.rowcount:
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
        """Appends in one transaction and notifies the followers; `durable` survives a power cut.

        Raises Conflict: 'fenced' once another process has the run, 'moved' if `after` is not last.
        """
        batch = batch_of(session_id, events, durable=durable, fence=fence, after=after)
        mine = self.owns(session_id, writing=True)
        [last] = self._db.append([batch]) if mine else [None]
        if last is None:
            if self.last_seq(session_id) is None:
                raise no_session(session_id)
            if after is not None:
                raise Conflict("moved", "Something else came first.")
            raise self._fenced(session_id)
        if self._person:
            count_used(self._db, self._person, events)
        return self._published(batch, last)

    def append_deltas(self, deltas: Sequence[RunDeltas]) -> list[list[Event] | Conflict]:
        """Appends deltas of several runs at once; returns the events of each, or why it may not."""
        own = [each for each in deltas if self.owns(each.session)]
        batches = [batch_of(each.session, each.events, fence=each.fence) for each in own]
        done = {
            each.session: self._fenced(each.session)
            if last is None
            else self._published(each, last)
            for each, last in zip(batches, self._db.append(batches) if batches else (), strict=True)
        }
        return [
            done[each.session] if each.session in done else self._fenced(each.session)
            for each in deltas
        ]

    def _published(self, batch: Batch, last: int) -> list[Event]:
        stored = batch.events(last)
        self._publish(batch, stored)
        return stored

    def _publish(self, batch: Batch, stored: list[Event]) -> None:
        self._followers.push(batch.session, stored)

    def _fenced(self, session_id: str) -> Conflict:
        what = "Another process goes on with this run."
        return Conflict("fenced", what, "Nothing is lost; read the log.")

    def read(self, session_id: str, after: int = 0, limit: int = -1) -> list[Event]:
        """Returns the events with a number above `after`, in order; at most `limit` of them."""
        if not self.owns(session_id):
            return []
        parts = " UNION ALL ".join(
            f"SELECT seq, type, data, at, {checksum} FROM {table} WHERE session = ? AND seq > ?"
            for table, checksum in (("events", "checksum"), ("deltas", "NULL"))
        )
        cut = f" LIMIT {int(limit)}" if limit >= 0 else ""
        rows = rows_of(self._db, f"{parts} ORDER BY seq{cut}", (session_id, after) * 2)
        return [event_in(session_id, *row) for row in rows]

    def used(self, person: str | None = None) -> list[dict[str, Any]]:
        """Returns what each person used on each day, or one of them; counts, never content."""
        return used(self._db, person)

    def last_event(self, session_id: str) -> Event:
        """Returns the newest event, the `run_finished` after a run. Raises Conflict if none."""
        events = self.read(session_id, (self.last_seq(session_id) or 0) - 1)
        if not events:
            raise no_session(session_id)
        return events[-1]

    def last_seq(self, session_id: str) -> int | None:
        """Returns the number of the newest event, None when the session is gone."""
        query = "SELECT last_seq FROM sessions WHERE id = ? AND owner = ?"
        row = self._one(query, (session_id, self._person))
        return None if row is None else int(row[0])

    def under_way(self, session_id: str) -> bool:
        """Returns True while a run is active: its lease outlives `run_finished` by a moment."""
        held = self.leases.held(session_id)
        newest = self.read(session_id, (self.last_seq(session_id) or 1) - 1)[-1:]
        ended = [e.data.get("run_id") for e in newest if e.type == "run_finished"]
        return bool(held) and held[0].run_id not in ended

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls `work`, which writes at most once, here or on a thread if the store would block."""
        done = self._tried(work, *args, **kwargs)
        return done[0] if done else await asyncio.to_thread(work, *args, **kwargs)

    def at_once(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Calls `work`, or returns None when it would have to wait."""
        return next(iter(self._tried(work, *args, **kwargs)), None)

    def _tried(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> list[T]:
        """Returns the result of `work`, or an empty list when it would have to wait."""
        if self._db.quick:
            try:
                with self._db.at_once():
                    return [work(*args, **kwargs)]
            except StoreError as error:
                if error.code != "locked":
                    raise
        return []

    async def follow(self, session_id: str, after: int = 0) -> AsyncGenerator[list[Event], None]:
        """Yields batches of events above `after`, stored, then live, until the session is gone."""
        poll = _POLL if self._db.quick else _POLL_NOTIFIED
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

    def hear(self, heard: Heard | None = None) -> Callable[[], None]:
        """Listens to other processes; calls `heard` on a thread until the result is called."""
        if heard is not None:
            self._hearing.append(heard)
        self._db.listen(self._heard, lambda: bool(self._followers))
        return lambda: self._hearing.remove(heard) if heard in self._hearing else None

    def _heard(self, news: Mapping[str, Any]) -> None:
        for heard in tuple(self._hearing):
            heard(news)
        self._followers.receive(news)

    def close(self) -> None:
        """Closes the store."""
        self._db.close()

    @property
    def trouble(self) -> StoreError | None:
        """The reason why the store can only be read, or None."""
        return self._db.trouble

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        return next(iter(rows_of(self._db, query, values)), None)


def _session(row: Sequence[Any]) -> Session:
    return Session(*(*row[:-2], bool(row[-2]), object_in(row[-1]) or {}))


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
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.wait()
        except TimeoutError:
            return True
        self._waiting.clear()
        lagging, self._lagging = self._lagging, False
        return lagging


class Followers:
    """The followers of each session in this process."""

    def __init__(self) -> None:
        self._groups: dict[str, set[Follower]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def of(self, session_id: str) -> tuple[Follower, ...]:
        """Returns the followers of one session."""
        return tuple(self._groups.get(session_id, ()))

    def join(self, session_id: str) -> Follower:
        """Adds a follower whose reader is on the running event loop."""
        follower = Follower(asyncio.get_running_loop())
        self._groups.setdefault(session_id, set()).add(follower)
        return follower

    def leave(self, session_id: str, follower: Follower) -> None:
        """Removes a follower."""
        group = self._groups.get(session_id, set())
        group.discard(follower)
        if not group:
            self._groups.pop(session_id, None)

    def push(self, session_id: str | None, events: list[Event] | None) -> None:
        """Passes new events on to a session's followers; None is for every session or event."""
        for session in (session_id,) if session_id else tuple(self._groups):
            for follower in self.of(session):
                follower.push(events)

    def receive(self, news: Mapping[str, Any]) -> None:
        """Receives news of another process: events, or a session to read from the store."""
        given, last = news.get("events") or [], news.get("last", 0)
        first = last - len(given) + 1
        if given:
            events = [event_of(seq, e[0], e[1], news["at"]) for seq, e in enumerate(given, first)]
            self.push(str(news.get("session")), events)
        elif not news or "session" in news:  # some may be lost; or too long for a notification
            self.push(news.get("session"), None)


def open_store(where: Path | str) -> Database:
    """Opens, makes or migrates the store at a path or address. Raises StoreError, ConfigError."""
    if not str(where).startswith(DATABASES):
        return SqliteDatabase(Path(where), STEPS)
    try:
        module = import_module("searchloop.agent.log.postgres")
    except ImportError as error:
        what = f"SEARCHLOOP_DATABASE_URL needs a driver that is not installed ({error})."
        raise ConfigError("no_driver", what, "pip install 'searchloop[postgres]'") from error
    store: Database = module.PostgresDatabase(str(where), STEPS)
    return store
