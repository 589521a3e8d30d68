"""The protocol of a store of the event log, and its tables (schema.sql).

Its users write SQL that every store understands, with `?` for values.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from searchloop.agent.errors import StoreError
from searchloop.agent.log.events import DELTAS, Event, checksum
from searchloop.agent.log.session import CHOSEN_BY, Session, chosen_by
from searchloop.agent.text import column_text, plain, to_json
from searchloop.agent.types.attachments import Attachment

Steps = Sequence[Sequence[str]]
Heard = Callable[[Mapping[str, Any]], None]
Pending = tuple[str, Mapping[str, Any]]

_log = logging.getLogger(__name__)
_run = logging.getLogger("searchloop.run")
_CLEARING = frozenset({"message", "run_resumed"})  # events that replace the deltas before them


class Write(NamedTuple):
    """Events to append to a session; no power cut loses those of a `durable` write.

    `fence` is the writer's, None without a lease; `after` is what the last number must be now.
    """

    session: str
    events: Sequence[Pending]
    fence: int | None = None
    durable: bool = False
    after: int | None = None


class Batch(NamedTuple):
    """Events of one session that are stored together; they may replace (`clears`) its deltas.

    `fence` is the writer's, None without a lease; `after` is what the last event's number must be.
    """

    session: str
    rows: Sequence[tuple[str, str]]
    at: float
    questions: int = 0
    fence: int | None = None
    after: int | None = None
    clears: int = 0  # the place of the last event that replaces the deltas before it, from 1
    durable: bool = False
    data: Sequence[Mapping[str, Any]] = ()  # of each row, before serialization
    ends: bool = False  # its run, whose lease ends with it

    @property
    def lasting(self) -> Iterator[tuple[int, str, str]]:
        """Yields place, type and text of the rows without deltas that the batch itself replaces."""
        for place, (kind, text) in enumerate(self.rows, 1):
            if place > self.clears or kind not in DELTAS:
                yield place, kind, text

    def events(self, last: int) -> list[Event]:
        """Returns the stored events, of which the last one has this number."""
        both = zip(self.rows, self.data, strict=True)
        first = last - len(self.data) + 1
        return [Event.of(seq, row[0], data, self.at) for seq, (row, data) in enumerate(both, first)]


def batch_of(write: Write) -> Batch:
    """Makes a batch of now; serializes each event once, for the store and for other processes."""
    kinds, texts, data = [kind for kind, _ in write.events], list[str](), list[Mapping[str, Any]]()
    for _, each in write.events:
        try:
            text = to_json(each)
        except (ValueError, TypeError):
            text = to_json(each := plain(each))
        texts.append(text)
        data.append(each)
    return Batch(
        column_text(write.session) or "",
        list(zip(kinds, texts, strict=True)),
        time.time(),
        questions=kinds.count("user_message"),
        fence=write.fence,
        after=write.after,
        clears=max((n for n, kind in enumerate(kinds, 1) if kind in _CLEARING), default=0),
        durable=write.durable,
        data=data,
        ends=write.fence is not None and "run_finished" in kinds,
    )


# [what, remedy] by code; read at once, as a system without files to spare reads none later.
_WORDS = json.loads(Path(__file__).with_name("failures.json").read_text("utf-8"))


def fault(code: str, where: object, why: object) -> StoreError:
    """Makes the error of this code for the store at `where`."""
    what, remedy = _WORDS[code]
    return StoreError(code, f"{what} ({where}: {why}).", remedy)


def newer(where: object, found: int, known: int, way_out: str) -> StoreError:
    """Makes the error for a store that a later version has migrated."""
    what = f"{where} is of a newer searchloop (schema {found}; this one knows {known})."
    return StoreError("newer_store", what, f"Update searchloop, or {way_out}.")


class Observer:
    """Is told what happens in a process, on any thread; it must be quick."""

    def cleaned(self, events: Sequence[Pending]) -> Sequence[Pending]:
        """Returns events as they may be stored."""
        return events

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """Hears that this process appended these events in so many seconds."""

    def lost(self, session_id: str) -> None:
        """Hears that another process has taken over the session's run."""


class Observers(Observer):
    """Several observers as one. The failure of one is logged and stops no other.

    `redact` removes secrets from what servers and tools say when something failed.
    """

    def __init__(
        self, *observers: Observer, redact: Callable[[str], str] = lambda text: text
    ) -> None:
        self._observers, self._redact = observers, redact

    def cleaned(self, events: Sequence[Pending]) -> Sequence[Pending]:
        return [(kind, _told(kind, data, self._redact)) for kind, data in events]

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        self._each(lambda observer: observer.stored(session_id, events, seconds))

    def lost(self, session_id: str) -> None:
        _run.warning("run_lost", extra={"fields": {"session_id": session_id}})
        self._each(lambda observer: observer.lost(session_id))

    def _each(self, notify: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                notify(observer)
            except Exception:
                _log.exception("%s failed", type(observer).__name__)


# Where the words of a failure stand in an event; in a result only if it is an error.
_FAILURES: Mapping[str, tuple[str, ...]] = {
    "run_finished": ("error",),
    "notice": ("message", "remedy"),
    "search_finished": ("error", "attempts", "notes"),
    "page_opened": ("error", "notes"),
    "tool_result": ("content", "details"),
}


def _told(kind: str, data: Mapping[str, Any], redact: Callable[[str], str]) -> Mapping[str, Any]:
    """Returns an event's data without secrets in the words of a failure."""
    if kind not in _FAILURES or (kind == "tool_result" and not data.get("is_error")):
        return data

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, Mapping):
            return {name: clean(each) for name, each in value.items()}
        return list(map(clean, value)) if isinstance(value, list | tuple) else value

    return {
        name: clean(value) if name in _FAILURES[kind] else value for name, value in data.items()
    }


class Statements(Protocol):
    """An open transaction."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Any:
        """Executes one statement, with `?` for each value; returns a cursor of the DB-API."""


class Database(Protocol):
    """A store. Any thread may call every method; errors are StoreError."""

    where: str  # its place for messages, without a password
    quick: bool  # a statement usually takes less time than handing it to a thread
    clock: str  # SQL for the seconds of the one clock that all processes on this store share
    date: str  # SQL for its time of day, in epoch seconds
    dialect: str  # sqlite or postgres: its own SQL for full-text search

    @property
    def trouble(self) -> StoreError | None:
        """The reason why the store can only be read; None as a rule."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Statements]:
        """Opens a transaction; with `durable` it, and all before it, survives a power cut."""

    def reading(self) -> AbstractContextManager[Statements]:
        """Opens a connection for one SELECT."""

    def append(self, batches: Sequence[Batch]) -> list[int | None]:
        """Stores batches of different sessions in one transaction; returns each one's last number.

        None means not stored: the session is gone, or `fence` or `after` no longer holds.
        """

    def at_once(self) -> AbstractContextManager[None]:
        """In here this thread does not wait for a lock: it gets the error `locked` instead."""

    def listen(self, heard: Heard) -> None:
        """Calls `heard` on a thread with news of other processes, if the store has them.

        Empty news say that some may be lost.
        """

    def leave_nothing(self) -> None:
        """Empties what still holds deleted rows, as far as that is the store's own business."""

    def check(self) -> list[str]:
        """Returns damage of the store itself, a line each."""

    def close(self) -> None:
        """Closes every connection."""


def rows_of(db: Database, query: str, values: Sequence[Any] = ()) -> list[Any]:
    """Returns all rows of a SELECT."""
    with db.reading() as statements:
        return list(statements.execute(query, values).fetchall())


def _steps() -> Iterator[tuple[str, ...]]:
    """Yields the statements of each step of schema.sql."""
    text = Path(__file__).with_name("schema.sql").read_text("utf-8")
    for step in text.split("\n-- Step ")[1:]:
        statements = re.sub("--.*", "", "--" + step).split(";")
        yield tuple(filter(None, map(str.strip, statements)))


STEPS = tuple(_steps())


def forget(db: Statements, session: str) -> None:
    """Removes all that the index of chats knows of a session."""
    rows = "SELECT id FROM found_turns WHERE session = ?"
    db.execute(f"DELETE FROM found_terms WHERE rowid IN ({rows})", (session,))
    for table in ("found_turns", "found_upto"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))


# Events with a usage of their own.
_COUNTED = ("run_finished", "check", "title", "follow_ups")
_COUNTS = ("input_tokens", "output_tokens", "searches", "pages")
_SUMS = ("answers", *_COUNTS, "cost_usd", "unpriced")
_COUNT = (
    f"INSERT INTO used (owner, day, {', '.join(_SUMS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, day) DO UPDATE SET "
    + ", ".join(f"{name} = used.{name} + excluded.{name}" for name in _SUMS)
)


def count_used(db: Database, person: str, events: Sequence[Pending], program: str = "") -> None:
    """Adds what events used to the day of a person and of their program.

    A crash before this loses one count.
    """
    owners = [*filter(None, (person, _owner(person, program)))]
    for kind, data in events:
        usage = data.get("usage") if owners and kind in _COUNTED else None
        if not isinstance(usage, Mapping):
            continue
        counts, cost = [int(usage.get(name) or 0) for name in _COUNTS], usage.get("cost_usd")
        day, answers = time.strftime("%Y-%m-%d", time.gmtime()), int(kind == _COUNTED[0])
        with db.transaction() as open_one:
            for owner in owners:
                row = (owner, day, answers, *counts, cost or 0.0, int(cost is None))
                open_one.execute(_COUNT, row)


def _owner(person: str, program: str) -> str:
    return f"{person}\n{program}" if program else ""  # no name of a person holds a line's end


def used(db: Database, person: str | None, program: str = "") -> list[dict[str, Any]]:
    """Returns what each person used on each day, one of them, or a program of one of them.

    The cost is without unpriced answers.
    """
    owner = _owner(person or "", program) or person
    where, values = (" WHERE owner = ?", [owner]) if owner is not None else ("", [])
    query = f"SELECT owner, day, {', '.join(_SUMS)} FROM used{where} ORDER BY day DESC, owner"
    names = ("person", "day", *_SUMS)
    rows = (dict(zip(names, row, strict=True)) for row in rows_of(db, query, values))
    return [row for row in rows if program or "\n" not in row["person"]]


_FILE = "digest, data, pages"
_HELD = "SELECT digest FROM attachments WHERE session = ?"


class AttachedFile(NamedTuple):
    """A file with its content and, for a document, the text of each page."""

    attachment: Attachment
    data: bytes
    texts: tuple[str, ...] = ()


class AttachmentStore:
    """The files of the sessions of a store that somebody `owns`."""

    def __init__(self, db: Database, owns: Callable[[str], bool] = bool) -> None:
        self._db, self._owns = db, owns

    def put(self, session_id: str, files: Iterable[AttachedFile]) -> None:
        """Stores the files of a question; returns once no power cut can lose them."""
        rows = [(f.attachment.digest, f.data, to_json(f.texts)) for f in files]
        if rows:
            with self._db.transaction(durable=True) as db:
                insert_files(db, session_id, rows)

    def data(self, session_id: str, digest: str) -> bytes | None:
        """Returns the content of a file that this session holds, or None."""
        found = self._row("data", session_id, digest)
        return None if found is None else bytes(found[0])

    def texts(self, session_id: str, digest: str) -> list[str]:
        """Returns the text of each page of a document; empty if it is not there."""
        found = self._row("pages", session_id, digest)
        return list(json.loads(found[0])) if found else []

    def copy(self, session_id: str, target: Statements) -> None:
        """Copies the files of a session into another store."""
        for (digest,) in rows_of(self._db, _HELD, (session_id,)):
            row = self._row(_FILE, session_id, digest)
            if row and isinstance(row[1], bytes) and all(isinstance(t, str) for t in row[::2]):
                insert_files(target, session_id, [row])

    def _row(self, columns: str, session_id: str, digest: str) -> Sequence[Any] | None:
        if not self._owns(session_id):
            return None
        query = f"SELECT {columns} FROM files WHERE digest = ? AND digest IN ({_HELD})"
        return next(iter(rows_of(self._db, query, (digest, session_id))), None)


def insert_session(db: Statements, session: Session, owner: str, events: Iterable[Event]) -> None:
    """Adds a session with its dates and its events, inside a transaction."""
    kept = {name: value for name, value in session.settings.items() if value is not None}
    texts = (session.id, session.title, session.model, session.mode, session.search)
    last = 0
    for event in events:
        last = event.seq
        row = (session.id, last, event.type, to_json(event.data), event.at)
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
    counts = (session.created, session.updated, session.messages, last)
    values = (*map(column_text, (*texts, session.workspace)), *counts, to_json(kept), owner)
    db.execute(
        "INSERT INTO sessions (id, title, model, mode, search, workspace, created, updated,"
        f" messages, last_seq, settings, owner, {', '.join(CHOSEN_BY)}, search_path)"
        f" VALUES ({'?, ' * (len(values) + len(CHOSEN_BY))}'off')",
        (*values, *chosen_by(kept)),
    )


def insert_files(db: Statements, session_id: str, rows: Iterable[Sequence[Any]]) -> None:
    """Adds files (digest, data, pages) to a session, inside a transaction."""
    for row in rows:
        # The update locks a row that is there: `delete_files` in another transaction waits for us.
        db.execute(
            f"INSERT INTO files ({_FILE}) VALUES (?, ?, ?)"
            " ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest",
            row,
        )
        db.execute(
            "INSERT INTO attachments (session, digest) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (session_id, row[0]),
        )


def delete_files(db: Statements, session_id: str, digest: str | None = None) -> None:
    """Deletes the files of a session, or one, that no other holds, inside a transaction."""
    held = [row[0] for row in db.execute(_HELD, (session_id,)).fetchall()]
    held = [each for each in held if digest in (None, each)]
    for digest in held:
        db.execute(
            "UPDATE files SET digest = digest WHERE digest = ?", (digest,)
        )  # see `insert_files`
        query = "DELETE FROM attachments WHERE session = ? AND digest = ?"
        db.execute(query, (session_id, digest))
    for digest in held:
        db.execute(
            "DELETE FROM files WHERE digest = ? AND NOT EXISTS"
            " (SELECT 1 FROM attachments WHERE attachments.digest = files.digest)",
            (digest,),
        )
