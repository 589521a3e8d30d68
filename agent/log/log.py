"""The event log: append-only, the same for every store.

A session is a row of settings and events numbered from 1. A follower gets the stored events, then
the appended ones: those of this process at once, others as soon as the store reports them.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from searchloop.agent.errors import ConfigError, Conflict, StoreError
from searchloop.agent.log.contract import (
    STEPS,
    AttachmentStore,
    Batch,
    Database,
    Observer,
    Pending,
    Write,
    batch_of,
    count_used,
    delete_files,
    forget,
    insert_files,
    insert_session,
    rows_of,
    used,
)
from searchloop.agent.log.events import Event, event_in
from searchloop.agent.log.leases import Leases, SharedStore, no_session
from searchloop.agent.log.projects import ProgramStore, ProjectStore
from searchloop.agent.log.session import (
    CHOSEN_BY,
    COLUMNS,
    PROVISIONAL,
    Session,
    chosen_by,
    session_of,
)
from searchloop.agent.log.sqlite import MemoryDatabase, SqliteDatabase
from searchloop.agent.settings import DATABASES, IN_MEMORY
from searchloop.agent.text import column_text, to_json

if TYPE_CHECKING:
    from searchloop.agent.log.find import ChatSearch, FoundTurn
    from searchloop.agent.types import Mode, Search

P = ParamSpec("P")
T = TypeVar("T")

_SELECT = f"SELECT {COLUMNS} FROM sessions WHERE owner = ?"
_CHANGEABLE = frozenset({"title", "model", "mode", "search", "search_path", "workspace"})
_CHOOSE = f"UPDATE sessions SET settings = ?, {' = ?, '.join(CHOSEN_BY)} = ? WHERE id = ?"
_OWNER = "SELECT owner FROM sessions WHERE id = ?"
_KNOWN = 10_000  # sessions of a person that are remembered
# Seconds without news after which a follower reads the store, and one that notifies.
_POLL, _POLL_NOTIFIED = 1.0, 5.0
_PAGE = 500  # events that a follower reads at a time
UNOBSERVED = Observer()


class EventLog:
    """A person's sessions and their events. Every method may be called from any thread."""

    def __init__(
        self, where: Path | str | SharedStore, person: str = "", observer: Observer = UNOBSERVED
    ) -> None:
        """Opens the store at a path or a `postgresql://` address, or one in memory, `IN_MEMORY`.

        `person` is whose log this is; empty for the holder of the token.
        """
        shared = (
            where if isinstance(where, SharedStore) else SharedStore(open_store(where), observer)
        )
        self._shared, self._db, self._followers = shared, shared.db, shared.followers
        self.person, self.where = person, shared.db.where
        self._mine: dict[str, float] = {}  # sessions of this person, and when each was used here
        self._passed = time.monotonic
        self.leases, self.projects = Leases(self._db, person), ProjectStore(self._db, person)
        self.attachments = AttachmentStore(self._db, self.owns)
        self.programs = ProgramStore(self._db)

    def of_person(self, name: str) -> Self:
        """Returns this log as a person sees it: nobody else's session is there."""
        return type(self)(self._shared, name)

    def owns(self, session_id: str, *, writing: bool = False) -> bool:
        """Returns False for a session that does not exist, or is somebody else's: decided here."""
        if session_id not in self._mine:
            rows = rows_of(self._db, _OWNER, (session_id,))
            if writing and not rows:  # a writer notices that the store was replaced
                with self._db.transaction() as db:
                    rows = db.execute(_OWNER, (session_id,)).fetchall()
            if not rows or rows[0][0] != self.person:
                return False
            if len(self._mine) >= _KNOWN:
                self._mine.clear()
        self._mine[session_id] = self._passed()
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
        session, now = secrets.token_hex(12), time.time()
        rest = (workspace, now, now, 0, False, settings or {})
        made = Session(session, "", model, cast("Mode", mode), cast("Search", search), "off", *rest)
        with self._db.transaction() as db:
            insert_session(db, made, self.person, ())
        self._mine[session] = self._passed()
        return self.session(session)

    def add_session(
        self,
        made: Session,
        events: Sequence[Event],
        files: Sequence[tuple[str, bytes, str]] = (),
        spare_id: str = "",
    ) -> bool:
        """Adds a whole session with its dates; False if it is there. `files` as `insert_files`.

        An id that somebody else has gives way to `spare_id`.
        """
        taken = rows_of(self._db, _OWNER, (made.id,))
        if taken and taken[0][0] != self.person and spare_id:
            made = replace(made, id=spare_id)
            taken = rows_of(self._db, _OWNER, (spare_id,))
        if not taken:
            with self._db.transaction() as db:
                insert_session(db, made, self.person, events)
                insert_files(db, made.id, files)
        return not taken

    def session(self, session_id: str) -> Session:
        """Returns a session. Raises Conflict('no_session') when it does not exist."""
        row = self._one(f"{_SELECT} AND id = ?", (self.person, session_id))
        if row is None:
            raise no_session(session_id)
        return session_of(row)

    def sessions(
        self, limit: int = 200, *, project: str | None = None, archived: bool | None = None
    ) -> list[Session]:
        """Lists sessions, newest first, and every pinned one.

        Of one project, and only those that are archived, or only those that are not.
        """
        held, values = _SELECT, [self.person]
        if archived is not None:
            held += f" AND archived = {int(archived)}"
        if project is not None:
            held += " AND project = ?"
            values.append(column_text(project) or "")
        query = f"{held} ORDER BY updated DESC LIMIT {int(limit)}"
        found = [session_of(row) for row in rows_of(self._db, query, values)]
        if len(found) < limit:
            return found
        query = f"{held} AND pinned = 1 AND updated < ? ORDER BY updated DESC"
        pinned = rows_of(self._db, query, [*values, found[-1].updated])
        return found + [session_of(row) for row in pinned]

    def find(self, query: str, limit: int = 20) -> dict[str, list[FoundTurn]]:
        """Searches questions, answers, sources and titles; see `agent.log.find`."""
        found: dict[str, list[FoundTurn]] = self.chat_search.find(self.person, query, limit)
        return found

    @property
    def chat_search(self) -> ChatSearch:
        """The index of all chats, with its analysis of texts, loaded when it is first used."""
        if self._shared.search is None:
            module = import_module("searchloop.agent.log.find")
            self._shared.search = module.ChatSearch(self._db)
        return cast("ChatSearch", self._shared.search)

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
            # It locks the row until the end of the transaction.
            columns = ", ".join(f"{name} = ?" for name in changes) or "id = id"
            query = f"UPDATE sessions SET {columns} WHERE id = ? RETURNING settings"
            values = (*map(column_text, changes.values()), session_id)
            row = db.execute(query, values).fetchone() or ("{}",)
            if settings:
                merged = {**json.loads(row[0]), **settings}
                merged = {k: v for k, v in merged.items() if v is not None}
                if (kept := to_json(merged)) != row[0]:
                    db.execute(_CHOOSE, (kept, *chosen_by(merged), session_id))
        return self.session(session_id)

    def name_session(self, session_id: str, title: str, data: Mapping[str, Any]) -> None:
        """Gives a session whose title is provisional this one, if any; appends the `title` event.

        A title that the user typed meanwhile stays.
        """
        if not self.owns(session_id):
            raise no_session(session_id)
        query = "UPDATE sessions SET title = ? WHERE id = ? AND provisional = 1 RETURNING id"
        with self._db.transaction() as db:
            values = (column_text(title), session_id)
            done = bool(title and db.execute(query, values).fetchone())
        self.update_session(session_id, {PROVISIONAL: None})
        if done or data.get("usage"):
            self.append(session_id, [("title", {**data, **({"title": title} if done else {})})])

    def delete_session(self, session_id: str) -> None:
        """Deletes the session, its events, files and run; no power cut brings them back."""
        if not self.owns(session_id):
            return
        with self._db.transaction(durable=True) as db:
            delete_files(db, session_id)
            for table in ("events", "deltas", "runs"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))
            forget(db, session_id)
            db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        self._db.leave_nothing()
        self._followers.push(session_id, None)

    def left_over(self, seconds: float) -> list[str]:
        """Returns temporary sessions that nobody runs or follows, unused for so many seconds.

        Skips those used here meanwhile, whatever the date. A store's date may end at milliseconds.
        """
        query = f"""SELECT id FROM sessions WHERE owner = ? AND temporary = 1
            AND updated <= {self._db.date} + 0.001 - ? AND id NOT IN (SELECT session FROM runs)"""
        used, since = self._mine, self._passed() - seconds
        found = [row[0] for row in rows_of(self._db, query, (self.person, seconds))]
        return [s for s in found if s not in self._followers and used.get(s, since) <= since]

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
        [done] = self.append_all([Write(session_id, events, fence, durable, after)])
        if isinstance(done, Conflict):
            raise done
        return done

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """Appends to several sessions at once; returns the events of each, or why it may not."""
        own = {
            write.session: batch_of(
                write._replace(events=self._shared.observer.cleaned(write.events))
            )
            for write in writes
            if self.owns(write.session, writing=True)
        }
        lasts = self._db.append(tuple(own.values())) if own else ()
        stored = {name: last for name, last in zip(own, lasts, strict=True) if last is not None}
        return [
            self._published(own[write.session], stored[write.session])
            if write.session in stored
            else self._refusal(write)
            for write in writes
        ]

    def _published(self, batch: Batch, last: int) -> list[Event]:
        stored = batch.events(last)
        if self.person:
            count_used(self._db, self.person, [(event.type, event.data) for event in stored])
        # Before the followers: one that sees the end of a run may end the program.
        self._shared.observer.stored(batch.session, stored, max(0.0, time.time() - batch.at))
        if batch.session in self._followers:
            self._followers.push(batch.session, stored)
        return stored

    def _refusal(self, write: Write) -> Conflict:
        if self.last_seq(write.session) is None:
            return no_session(write.session)
        if write.after is not None:
            return Conflict("moved", "Something else came first.")
        self._shared.observer.lost(write.session)
        what = "Another process goes on with this run."
        return Conflict("fenced", what, "Nothing is lost; read the log.")

    def count(self, ending: Mapping[str, Any], program: str = "", answers: int = 1) -> None:
        """Counts a run that is in no chat, by its `run_finished`, for its person and program; or
        what was used without an answer."""
        kind = "run_finished" if answers else "check"
        count_used(self._db, self.person, [(kind, ending)], program)

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

    def used(self, person: str | None = None, program: str = "") -> list[dict[str, Any]]:
        """Returns what each person used on each day, one of them, or one's program; no content."""
        return used(self._db, self.person if program else person, program)

    def last_event(self, session_id: str) -> Event:
        """Returns the newest event, the `run_finished` after a run. Raises Conflict if none."""
        events = self.read(session_id, (self.last_seq(session_id) or 0) - 1)
        if not events:
            raise no_session(session_id)
        return events[-1]

    def last_seq(self, session_id: str) -> int | None:
        """Returns the number of the newest event, None when the session is gone."""
        query = "SELECT last_seq FROM sessions WHERE id = ? AND owner = ?"
        row = self._one(query, (session_id, self.person))
        return None if row is None else int(row[0])

    def under_way(self, session_id: str) -> bool:
        """Returns True while a run is active."""
        return bool(self.leases.held(session_id))

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
            self._db.listen(self._followers.receive)
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

    def close(self) -> None:
        """Closes the store."""
        self._db.close()

    @property
    def trouble(self) -> StoreError | None:
        """The reason why the store can only be read, or None."""
        return self._db.trouble

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        return next(iter(rows_of(self._db, query, values)), None)


def open_store(where: Path | str) -> Database:
    """Opens, makes or migrates the store at a path or address. Raises StoreError, ConfigError."""
    if where == IN_MEMORY:
        return MemoryDatabase(STEPS)
    if not str(where).startswith(DATABASES):
        return SqliteDatabase(Path(where), STEPS)
    try:
        module = import_module("searchloop.agent.log.postgres")
    except ImportError as error:
        what = f"SEARCHLOOP_DATABASE_URL needs a driver that is not installed ({error})."
        raise ConfigError("no_driver", what, "pip install 'searchloop[postgres]'") from error
    store: Database = module.PostgresDatabase(str(where), STEPS)
    return store
