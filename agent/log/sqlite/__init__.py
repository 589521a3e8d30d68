"""The event log in one SQLite file: private, WAL, one writer, a pool of readers.

A commit survives a crash of this program; only a `durable` one waits for the disk. A log in memory
has the same tables, and ends with its program.

Others may import: file.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from searchloop.agent.errors import StoreError
from searchloop.agent.log.contract import Batch, Heard, Steps, fault
from searchloop.agent.log.events import DELTAS, checksum
from searchloop.agent.log.sqlite.file import migrated, prepare, version, wal_size
from searchloop.agent.text import column_values

_PATIENCE = 10.0  # seconds to wait for another writer
_PAUSE = 0.005
_TRIES = 100  # at emptying the write-ahead log
_SMALL = 128 * 2**20  # bytes that are written in about a second
# https://www.sqlite.org/rescode.html, primary codes. Our statements break no constraint and are
# right: such errors are those of a damaged file, or of tables that are not ours.
_SQLITE = {
    getattr(sqlite3, f"SQLITE_{name}"): code
    for code, names in {
        "read_only": "READONLY PERM AUTH",
        "disk_full": "FULL",
        "disk_failed": "IOERR",
        "locked": "BUSY LOCKED",
        "damaged": "CORRUPT NOTADB FORMAT CONSTRAINT MISMATCH ERROR",
    }.items()
    for name in names.split()
}
_SYSTEM = {
    getattr(errno, name): code
    for code, names in {
        "read_only": "EROFS EACCES EPERM ENOENT",
        "not_a_file": "EISDIR",
        "not_a_folder": "EEXIST ENOTDIR",
        "disk_full": "ENOSPC EDQUOT EFBIG",
        "disk_failed": "EIO",
        "too_many_files": "EMFILE ENFILE",
        "no_memory": "ENOMEM",
    }.items()
    for name in names.split()
}


def corrupt(error: object) -> bool:
    """Returns True when SQLite calls the file damaged, or its tables are not ours."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def illegible(error: object) -> bool:
    """Returns True for a text that is not UTF-8, which Python reports without SQLite's code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")


@contextmanager
def sqlite_errors(path: Path | str) -> Iterator[None]:
    """Converts SQLite's and the system's errors to StoreError."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise fault("damaged", path, error) from error
    except sqlite3.Error as error:
        other = sqlite3.SQLITE_CORRUPT if illegible(error) else sqlite3.SQLITE_INTERNAL
        primary = getattr(error, "sqlite_errorcode", other) & 0xFF
        code = _unopened(path) if primary == sqlite3.SQLITE_CANTOPEN else _SQLITE.get(primary)
        raise fault(code or "store_failed", path, error) from error
    except MemoryError as error:
        raise fault("no_memory", path, "out of memory") from error
    except OSError as error:
        raise fault(_SYSTEM.get(error.errno or 0, "store_failed"), path, error) from error


def _unopened(path: Path | str) -> str:
    """Asks the system why a file could not be opened: SQLite does not say."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return _SYSTEM.get(error.errno or 0, "read_only")
    return "read_only"  # the file opens: its side files cannot be made


class _Connection(sqlite3.Connection):
    """A connection that also takes texts with half a surrogate pair, which are no UTF-8."""

    def execute(self, query: str, values: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(query, values)
        except UnicodeEncodeError:
            return super().execute(query, column_values(values))


def connect(path: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    """Opens a connection with the function that our statements use; reads and makes nothing."""
    how: Any = {"isolation_level": None, "check_same_thread": False, "timeout": 10, "uri": uri}
    db = sqlite3.connect(path, factory=_Connection, **how)
    # The same clock for every process of the machine; a changed date does not move it.
    db.create_function("boot_seconds", 0, time.monotonic)
    return db


def read_only(path: Path, least: int, trouble: StoreError) -> str:
    """Returns an address to read a file by that cannot be written. Raises `trouble` if none works.

    See "read-only databases" in SQLite's wal.html.
    """
    if trouble.code in ("newer_store", "read_only") and os.path.isfile(path):
        for how in ("mode=ro", *(() if wal_size(path) else ("immutable=1",))):
            address = f"{path.absolute().as_uri()}?{how}"
            with suppress(sqlite3.Error), closing(connect(address, uri=True)) as db:
                if version(db) >= least:
                    return address
    raise trouble


class SqliteDatabase:
    """See `agent.log.contract.Database`."""

    quick = True
    clock = "boot_seconds()"
    date = "(julianday('now') - 2440587.5) * 86400.0"
    dialect = "sqlite"

    def __init__(self, path: Path, steps: Steps) -> None:
        self._path = path
        self.where = str(path)
        self._lock = threading.Lock()
        self._own = threading.local()
        self._never = threading.Event()
        self._idle: list[sqlite3.Connection] = []
        self._steps = steps
        self._file: tuple[int, int] | None = None
        self._read_only = ""  # the address of a file that only allows reading
        self.trouble: StoreError | None = None
        try:
            self._write = self._writer()
        except StoreError as error:
            self._read_only = read_only(path, len(steps), error)
            self._write, self.trouble = connect(self._read_only, uri=True), error

    def _writer(self) -> sqlite3.Connection:
        with sqlite_errors(self._path):
            prepare(self._path)
            db = migrated(connect(self._path), self._path, self._steps)
        db.execute("PRAGMA busy_timeout = 0")  # `_begin` does the waiting
        db.execute("PRAGMA secure_delete = ON")
        self._file = _identity(self._path)
        return db

    def _same(self) -> None:
        """Opens a replaced file anew. Raises StoreError for a deleted one: writes would be lost."""
        now = _identity(self._path)
        if now is None:
            raise fault("file_gone", self.where, "there is no such file")
        if now != self._file:
            old, self._write = self._write, self._writer()
            self._idle = []
            old.close()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Converts errors to StoreError; at the first sign of damage, stops all writing."""
        try:
            with sqlite_errors(self.where):
                yield
        except StoreError as error:
            if corrupt(error.__cause__):
                self.trouble = error
            raise

    def _come_back(self) -> None:
        """Allows writing once the cause of `trouble` is gone. Raises StoreError until then."""
        if self.trouble is None:
            return
        if self.trouble.code == "damaged" and _identity(self._path) == self._file:
            raise self.trouble
        self._write.close()
        self._write = self._writer()
        self.trouble, self._read_only, self._idle = None, "", []

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        patience = getattr(self._own, "patience", _PATIENCE)
        until = time.monotonic() + patience
        with self._noticing():
            if not self._lock.acquire(timeout=patience):
                raise fault("locked", self.where, "waited in vain")
            try:
                self._come_back()
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
        """Waits here, because SQLite's own timeout holds for the whole connection."""
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
        with self._noticing():
            idle = self._idle
            try:
                db = idle.pop()
            except IndexError:
                db = connect(self._read_only or self._path, uri=bool(self._read_only))
            try:
                yield db
            finally:
                if idle is self._idle:
                    idle.append(db)
                else:
                    db.close()

    def append(self, batches: Sequence[Batch]) -> list[int | None]:
        with self.transaction(durable=any(batch.durable for batch in batches)) as db:
            return [_append(db, batch) for batch in batches]

    @contextmanager
    def at_once(self) -> Iterator[None]:
        self._own.patience = 0
        try:
            yield
        finally:
            del self._own.patience

    def listen(self, heard: Heard) -> None:
        """Does nothing: followers look at the store each second."""

    def leave_nothing(self) -> None:
        """Merges the index of words, writes a small file anew, as pages that were split keep
        copies, and empties the log of writes. What is freed in a larger one was overwritten."""
        size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        with self._noticing(), self._lock:
            for _ in range(_TRIES):
                with suppress(sqlite3.OperationalError):  # another process writes
                    self._write.execute("INSERT INTO found_terms(found_terms) VALUES ('optimize')")
                    if self._write.execute(size).fetchone()[0] <= _SMALL:
                        self._write.execute("VACUUM")
                # (0, ...) when nobody was reading from it
                if not self._write.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    return
                self._never.wait(_PAUSE)

    def check(self) -> list[str]:
        with self.reading() as db:
            rows = db.execute("PRAGMA integrity_check(20)").fetchall()
        found = [line for row in rows for line in row[0].splitlines()]
        return [] if found == ["ok"] else found[:20]

    def close(self) -> None:
        """Closes the connections; a reader in use closes when it is given back."""
        while self._idle:
            self._idle.pop().close()
        with self._lock:
            self._write.close()


class MemoryDatabase(SqliteDatabase):
    """A store of one program, which touches no file: its one connection reads and writes."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(Path(":memory:"), steps)
        self._lock = threading.RLock()  # type: ignore[assignment]  # who writes may read, too

    def _writer(self) -> sqlite3.Connection:
        return migrated(connect(self._path), self._path, self._steps)

    def _same(self) -> None:
        """No other program can replace it."""

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._noticing(), self._lock:
            yield self._write


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns device and inode of a file, None when there is none."""
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
    if batch.ends:
        db.execute("DELETE FROM runs WHERE session = ?", (batch.session,))
    first = last - len(batch.rows)
    rows = [(batch.session, first + n, kind, text, batch.at) for n, kind, text in batch.lasting]
    deltas = (row for row in rows if row[2] in DELTAS)
    events = ((*row, checksum(*row)) for row in rows if row[2] not in DELTAS)
    db.executemany("INSERT INTO deltas VALUES (?, ?, ?, ?, ?)", deltas)
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", events)
    return last
