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

from agent.checksum import checksum
from agent.errors import StoreError
from agent.events import DELTAS
from agent.store.contract import Batch, Heard, Steps
from agent.store.faults import corrupt, fault, illegible, sqlite_errors
from agent.store.opening import legible, open_database
from agent.store.rescue import Rescue
from agent.store.watch import Watch

_PATIENCE = 10.0  # seconds to wait for another writer
_PAUSE = 0.005
_RECENT = 64  # sessions that other processes are likely to write to


class SqliteDatabase:
    """See `agent.store.Database`."""

    quick = True
    clock = "boot_seconds()"
    like = "LIKE ? ESCAPE '\\'"
    text_of_data = "iif(json_valid(data), json_extract(data, '$.text'), '')"
    locking = ""

    def __init__(self, path: Path, steps: Steps) -> None:
        self._path = path
        self.where = str(path)
        self._lock = threading.Lock()
        self._own = threading.local()
        self._never = threading.Event()
        self._idle: list[sqlite3.Connection] = []
        self._steps = steps
        self._rescue: Rescue | None = None
        self._lenient = False  # some text is not UTF-8: what can be read of it is
        self._switching = threading.Lock()
        try:
            self._write = self._writer()
        except StoreError as error:
            self._rescue = Rescue(path, steps, error)
        self._watch = Watch(self._changes, self._news)

    def _writer(self) -> sqlite3.Connection:
        db = open_database(self._path, self._steps)
        db.execute("PRAGMA busy_timeout = 0")  # `_begin` does the waiting
        self._file = _identity(self._path)
        return db

    def _same(self) -> None:
        """What is written to a file that has no name any more would be lost with this process: one
        that was replaced is opened anew, one that is gone is not written to.
        """
        now = _identity(self._path)
        if now is None:
            raise fault("file_gone", self.where, "there is no such file")
        if now != self._file:
            old, self._write = self._write, self._writer()
            self._idle = []
            old.close()

    @property
    def trouble(self) -> StoreError | None:
        """See Database."""
        return self._rescue.trouble if self._rescue else None

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Errors in our words; from the first sign of damage on nothing is written any more."""
        try:
            with sqlite_errors(self.where):
                yield
        except StoreError as error:
            if self._rescue is not None and error.code == "damaged":
                raise self._rescue.trouble from error
            if illegible(error.__cause__):
                self._lenient, self._idle = True, []
            if corrupt(error.__cause__):
                self._switch(error)
            raise

    def _switch(self, trouble: StoreError) -> None:
        with self._switching:
            if self._rescue is None:
                self._rescue = Rescue(self._path, self._steps, trouble)
                self._idle = []

    def _come_back(self) -> None:
        """Writes again, if the cause is gone. Raises StoreError while it is not."""
        with self._switching:
            if self._rescue is None:
                return
            self._rescue.check_changed()
            self._write = self._writer()
            self._rescue.close()
            self._rescue, self._idle = None, []

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """See Database; with `durable` it outlives a power cut once it is over."""
        patience = getattr(self._own, "patience", _PATIENCE)
        until = time.monotonic() + patience
        if self._rescue is not None:
            self._come_back()
        with self._noticing():
            if not self._lock.acquire(timeout=patience):
                raise fault("locked", self.where, "waited in vain")
            try:
                self._same()
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
        with self._noticing():
            idle = self._idle
            try:
                db = idle.pop()
            except IndexError:
                db = self._rescue.connect() if self._rescue else open_database(self._path)
                if self._lenient:
                    db.text_factory = legible
            try:
                yield db
            finally:
                if idle is self._idle:
                    idle.append(db)
                else:
                    db.close()

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
        if self._rescue is not None or not self._lock.acquire(timeout=_PAUSE):
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
        if self._rescue is not None and self._rescue.trouble.code == "damaged":
            return self._rescue.told()
        with self.reading() as db:
            rows = db.execute("PRAGMA integrity_check(20)").fetchall()
        found = [line for row in rows for line in row[0].splitlines()]
        return [] if found == ["ok"] else found[:20]

    def close(self) -> None:
        """Closes the connections; a reader that is in use closes with its thread."""
        self._watch.end()
        while self._idle:
            self._idle.pop().close()
        if self._rescue is not None:
            self._rescue.close()
            return
        with self._lock:
            self._write.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from any other of this name; None when there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


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
    session, kept, passing = batch.session, [], []
    for seq, (kind, text) in enumerate(batch.rows, last - len(batch.rows) + 1):
        if kind in DELTAS:
            passing.append((session, seq, kind, text, batch.at))
        else:
            told = checksum(session, seq, kind, text, batch.at)
            kept.append((session, seq, kind, text, batch.at, told))
    if passing:
        db.executemany("INSERT INTO deltas VALUES (?, ?, ?, ?, ?)", passing)
    if kept:
        db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", kept)
    return last
