"""The event log in one SQLite file: private, WAL, one writer at a time, a reader for each thread.

What a crash of this program leaves is whole without waiting for the disk; what has to outlive a
power cut says so and waits. https://www.sqlite.org/pragma.html#pragma_synchronous
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.events import DELTAS
from agent.private_file import sync_folder
from agent.store.contract import Batch, Heard, Steps
from agent.store.faults import fault, newer, sqlite_errors
from agent.store.watch import Watch

_TRIES = 50
_PATIENCE = 10.0  # seconds to wait for another writer
_PAUSE = 0.005
_RECENT = 64  # sessions that other processes are likely to write to


class SqliteDatabase:
    """See `agent.store.Database`."""

    quick = True
    clock = "boot_seconds()"
    like = "LIKE ? ESCAPE '\\'"
    text_of_data = "json_extract(data, '$.text')"
    locking = ""

    def __init__(self, path: Path, steps: Steps) -> None:
        self._path = path
        self.where = str(path)
        self._lock = threading.Lock()
        self._own = threading.local()
        self._never = threading.Event()
        self._idle: list[sqlite3.Connection] = []
        self._write = open_database(path, steps)
        self._write.execute("PRAGMA busy_timeout = 0")  # `_begin` does the waiting
        self._watch = Watch(self._changes, self._news)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """See Database; with `durable` it outlives a power cut once it is over."""
        patience = getattr(self._own, "patience", _PATIENCE)
        until = time.monotonic() + patience
        with sqlite_errors(self.where):
            if not self._lock.acquire(timeout=patience):
                raise fault("locked", self.where, "waited in vain")
            try:
                with self._begun(durable, until) as db:
                    yield db
            finally:
                self._lock.release()

    @contextmanager
    def _begun(self, durable: bool, until: float) -> Iterator[sqlite3.Connection]:
        db = self._write
        if durable:
            db.execute("PRAGMA synchronous = FULL")
        try:
            self._begin(db, until)
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk may have ended it already
                db.execute("ROLLBACK")
            raise
        finally:
            if durable:
                db.execute("PRAGMA synchronous = NORMAL")

    def _begin(self, db: sqlite3.Connection, until: float) -> None:
        """Waits here and not in SQLite, whose waiting cannot be told to be shorter for one."""
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= until:
                    raise
            self._never.wait(_PAUSE)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See Database."""
        with sqlite_errors(self.where):
            db = self._idle.pop() if self._idle else open_database(self._path)
            try:
                yield db
            finally:
                self._idle.append(db)

    def append(self, batch: Batch) -> int | None:
        """See Database."""
        with self.transaction(durable=batch.durable) as db:
            return _append(db, batch)

    def append_deltas(self, batches: Sequence[Batch]) -> list[int | None]:
        """See Database."""
        with self.transaction() as db:
            return [_append(db, batch) for batch in batches]

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """See Database."""
        self._own.patience = 0
        try:
            yield
        finally:
            del self._own.patience

    @contextmanager
    def errors(self) -> Iterator[None]:
        """See Database."""
        with sqlite_errors(self.where):
            yield

    def tell(self, news: Mapping[str, Any]) -> None:
        """Other processes look for themselves."""

    def listen(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        """See Database."""
        self._watch.begin(heard, wanted)

    def _changes(self) -> int | None:
        """A number that changes when another process commits: this connection's own do not count.

        None when it is in use. https://www.sqlite.org/pragma.html#pragma_data_version
        """
        if not self._lock.acquire(timeout=_PAUSE):
            return None
        try:
            with sqlite_errors(self.where):
                return int(self._write.execute("PRAGMA data_version").fetchone()[0])
        finally:
            self._lock.release()

    def _news(self) -> tuple[dict[str, int], list[str]]:
        """The last events of the sessions that were written to last, and who has signals."""
        recent = f"SELECT id, last_seq FROM sessions ORDER BY updated DESC LIMIT {_RECENT}"
        with self.reading() as db:
            wished = db.execute("SELECT DISTINCT session FROM signals").fetchall()
            return dict(db.execute(recent).fetchall()), [row[0] for row in wished]

    def check(self) -> list[str]:
        """See Database."""
        with self.reading() as db:
            found = [row[0] for row in db.execute("PRAGMA integrity_check(20)").fetchall()]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Closes the connections; a reader that is in use closes with its thread."""
        self._watch.end()
        with self._lock:
            self._write.close()
        while self._idle:
            self._idle.pop().close()


def _append(db: sqlite3.Connection, batch: Batch) -> int | None:
    counts = (len(batch.rows), batch.questions, batch.at)
    row = db.execute(
        "UPDATE sessions SET last_seq = last_seq + ?, messages = messages + ?, updated = ?"
        " WHERE id = ? AND fence = coalesce(?, fence) AND last_seq = coalesce(?, last_seq)"
        " RETURNING last_seq",
        (*counts, batch.session, batch.fence, batch.after),
    ).fetchone()
    if row is None:
        return None
    last = int(row[0])
    if batch.clears:
        db.execute("DELETE FROM deltas WHERE session = ?", (batch.session,))
    for table in ("events", "deltas"):
        rows = [
            (batch.session, seq, kind, text, batch.at)
            for seq, (kind, text) in enumerate(batch.rows, last - len(batch.rows) + 1)
            if (kind in DELTAS) is (table == "deltas")
        ]
        if rows:
            db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", rows)
    return last


def open_database(path: Path | str, steps: Steps = ()) -> sqlite3.Connection:
    """A connection in autocommit mode; with `steps` the file is made and brought up to date.

    Step n (statements) brings a file from version n to n + 1. Raises StoreError when the folder
    cannot be written or the file is newer than this program.
    """
    with sqlite_errors(path):
        if steps:
            _prepare(Path(path))
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            # Goes on at one pace for every process of the machine, whatever becomes of the date.
            db.create_function("boot_seconds", 0, time.monotonic)
            if steps:
                _bring(db, path, steps)
        except BaseException:
            db.close()
            raise
        return db


def _bring(db: sqlite3.Connection, path: Path | str, steps: Steps) -> None:
    _use_wal(db)
    db.execute("PRAGMA synchronous = NORMAL")
    if _version(db) < len(steps):
        db.execute("BEGIN IMMEDIATE")
        for step in steps[_version(db) :]:  # another process may have done some by now
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {max(_version(db), len(steps))}")
        db.execute("COMMIT")
    if _version(db) > len(steps):
        raise newer(path, _version(db), len(steps), "set SEARCHLOOP_HOME to another folder")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _use_wal(db: sqlite3.Connection) -> None:
    """Changes a new file over to WAL, though others may be doing the same.

    For this change SQLite does not wait its turn but fails at once; a transaction does wait, so one
    that does nothing passes the time until the other is done.
    """
    for attempt in range(_TRIES):
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or attempt == _TRIES - 1:
                raise
        db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")


def _prepare(path: Path) -> None:
    """Folder 0700 and file 0600 before SQLite makes its own (its side files copy the mode)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = not path.exists()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if fresh:  # what SQLite keeps in it is of no use without its name
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
