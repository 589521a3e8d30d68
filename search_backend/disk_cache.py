"""What is kept between starts: answers and pages in one SQLite file, bounded, and never in the way.

Entries are written some at a time, behind the back of whoever puts them and at the end of the
program. A file that is locked, full, read-only or damaged makes this forget, never fail: a damaged
one is thrown away and begun anew, the rest is left alone for some seconds. Several processes share
the file. Times are seconds since the epoch; an entry of the future is not believed.

Spec: https://www.sqlite.org/pragma.html (auto_vacuum, max_page_count)
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

NAME = "cache.sqlite3"
MOST_ROWS = 20_000
_PAGE = 4_096
_LEAST_BYTES = 256 * 1024
_FULL, _HALF = 0.8, 0.5  # of the whole file, when there is room and after there was none
_SWEEP_EVERY, _LOOK_EVERY = 1_024, 64  # entries
_MOST_WAITING = 512
_WRITE_AFTER = 0.5  # seconds; one transaction for all that came meanwhile costs a fifth each
_WAIT = 0.05  # seconds for another process, or thread, at the same file
_WAIT_TO_WRITE = 5.0
_PAUSE = 5.0
_PACK_FROM = 4_096
# Ids grow, so new entries are side by side at the end: half the pages to write of a table by key.
_VERSION = 2
_SCHEMA = f"""
BEGIN IMMEDIATE; DROP TABLE IF EXISTS entries;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, made REAL NOT NULL, until REAL NOT NULL,
    packed INTEGER NOT NULL, value BLOB NOT NULL);
PRAGMA user_version = {_VERSION}; COMMIT;
"""
_HELD = (
    "SELECT (SELECT COUNT(*) FROM entries), page_count - freelist_count "
    "FROM pragma_page_count, pragma_freelist_count"
)
T = TypeVar("T")
_Waiting = tuple[float, float, dict[str, Any]]  # since when, until when, what

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, and when it was made."""

    made: float
    value: dict[str, Any]


class Disk:
    """The file `home`/cache.sqlite3 with at most `most_bytes`. Safe for several threads."""

    def __init__(
        self,
        home: Path,
        most_bytes: int,
        most_rows: int = MOST_ROWS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """With fewer than 256 KiB nothing is kept and no file is made."""
        self._path = home / NAME
        self._most_bytes = most_bytes if most_bytes >= _LEAST_BYTES else 0
        self._most_rows = most_rows
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._quiet_until = 0.0
        self._puts = 0  # since the last sweep
        self._waiting: dict[bytes, _Waiting] = {}  # by digest of the key
        # Being written; known from here until the file has it.
        self._leaving: dict[bytes, _Waiting] = {}
        self._waiting_lock = threading.Lock()
        self._flushing = threading.Lock()
        self._writer: threading.Timer | None = None
        self._at_exit = _if_alive(self, Disk.close)
        atexit.register(self._at_exit)

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry, unless it is too old, or cannot be had just now."""
        digest = _digest(kind, key)
        with self._waiting_lock:
            known = self._waiting.get(digest) or self._leaving.get(digest)
        select = "SELECT made, until, value, packed FROM entries WHERE key = ?"
        row = known or self._try(lambda file: file.execute(select, (digest,)).fetchone(), None)
        if row is None or not row[0] <= self._clock() < row[1]:
            return None
        try:
            return Entry(row[0], row[2] if known else _unpacked(*row[2:]))
        except (ValueError, zlib.error):  # not as we wrote it
            return None

    def put(self, kind: str, key: str, value: dict[str, Any], seconds: float) -> None:
        """Keep `value`, which is JSON and does not change any more, for `seconds`; one that is too
        large is not kept."""
        if seconds <= 0 or not self._most_bytes:
            return
        now = self._clock()
        with self._waiting_lock:
            self._waiting[_digest(kind, key)] = (now, now + seconds, value)
            if len(self._waiting) > _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            if self._writer is None:
                self._writer = threading.Timer(_WRITE_AFTER, _if_alive(self, Disk.flush))
                self._writer.daemon = True
                self._writer.start()

    def flush(self) -> None:
        """Write what is waiting."""
        with self._flushing:
            with self._waiting_lock:
                self._leaving, self._waiting, self._writer = self._waiting, {}, None
            self._write_down(self._leaving)
            self._leaving = {}

    def _write_down(self, waiting: Mapping[bytes, _Waiting]) -> None:
        rows = []
        for digest, (made, until, value) in waiting.items():
            packed, data = _packed(value)
            if len(data) <= self._most_bytes // 16:
                rows.append((digest, made, until, packed, data))
        if rows:
            # Nobody waits for this, so it may wait longer for one who reads.
            self._try(lambda connection: self._write(connection, rows), None, _WAIT_TO_WRITE)

    def _write(self, connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
        before, self._puts = self._puts, self._puts + len(rows)
        look = before // _LOOK_EVERY < self._puts // _LOOK_EVERY
        # To go through all entries takes as long as to write a hundred.
        if not 0 < before < _SWEEP_EVERY or (look and self._surplus(connection, _FULL)):
            self._sweep(connection, _FULL)
            self._puts = len(rows)
        try:
            _insert(connection, rows)
        except sqlite3.OperationalError as error:
            if "full" not in str(error):
                raise
            self._sweep(connection, _HALF)
            _insert(connection, rows[-_LOOK_EVERY:])

    def clear(self) -> int:
        """Forget everything; how many entries that were. Raises OSError when it cannot be done."""
        self.flush()
        if not self._path.exists():
            return 0

        def empty(connection: sqlite3.Connection) -> int:
            count = connection.execute("DELETE FROM entries").rowcount
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return int(count)

        self._quiet_until = 0.0
        if (count := self._try(empty, -1)) >= 0:
            return count
        with self._lock:
            self._throw_away()
        return 0

    def close(self) -> None:
        """Write what is waiting, and let go of the file."""
        atexit.unregister(self._at_exit)
        self.flush()
        with self._lock:
            self._hang_up()

    def __del__(self) -> None:
        self.close()

    def _try(self, work: Callable[[sqlite3.Connection], T], otherwise: T, wait: float = _WAIT) -> T:
        """What `work` gives; `otherwise` when the file cannot be used, now or for a while."""
        if not self._most_bytes or self._clock() < self._quiet_until:
            return otherwise
        if not self._lock.acquire(timeout=wait):
            return otherwise
        try:
            if self._connection is None:
                self._connection = self._open()
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            self._quiet_until = self._clock() + _PAUSE
            self._hang_up()
            # OperationalError: locked, full, read-only. The file as such may be well.
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(
                error, sqlite3.OperationalError | sqlite3.ProgrammingError
            ):
                with suppress(OSError):
                    self._throw_away()
                self._quiet_until = 0.0
            _log.warning("the cache %s is not used for now: %s", self._path, error)
            return otherwise
        finally:
            self._lock.release()

    def _open(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        elif os.name == "posix" and self._path.stat().st_mode & 0o077:
            self._path.chmod(0o600)
        connection = sqlite3.connect(
            self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in (
                "auto_vacuum = INCREMENTAL",
                "journal_mode = WAL",
                "synchronous = OFF",  # what a crash of the machine takes is asked again
                f"max_page_count = {self._most_bytes // _PAGE}",
                f"journal_size_limit = {_LEAST_BYTES}",
            ):
                connection.execute(f"PRAGMA {setting}")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _sweep(self, connection: sqlite3.Connection, share: float) -> None:
        """Take out what is too old, then the oldest until all fits."""
        connection.execute("DELETE FROM entries WHERE until <= ?", (self._clock(),))
        while surplus := self._surplus(connection, share):
            connection.execute(
                "DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY id LIMIT ?)",
                (surplus,),
            )
        connection.execute("PRAGMA incremental_vacuum")

    def _surplus(self, connection: sqlite3.Connection, share: float) -> int:
        """How many entries are to go, some at a time, till the next ones have room."""
        rows, pages = connection.execute(_HELD).fetchone()
        fits = pages * _PAGE <= self._most_bytes * share
        return 0 if fits and rows <= self._most_rows - _LOOK_EVERY else rows and rows // 10 + 1

    def _hang_up(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _throw_away(self) -> None:
        self._hang_up()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(NAME + suffix).unlink(missing_ok=True)


def _if_alive(disk: Disk, method: Callable[[Disk], None]) -> Callable[[], None]:
    """For a timer and for the end of the program: neither keeps it from going before."""
    known = weakref.ref(disk)

    def call() -> None:
        if (alive := known()) is not None:
            method(alive)

    return call


def _insert(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("REPLACE INTO entries VALUES (NULL, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _digest(kind: str, key: str) -> bytes:
    return hashlib.sha256(f"{kind}\n{key}".encode("utf-8", "surrogatepass")).digest()


def _packed(value: dict[str, Any]) -> tuple[bool, bytes]:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return (True, zlib.compress(data, 1)) if len(data) >= _PACK_FROM else (False, data)


def _unpacked(data: bytes, packed: int) -> dict[str, Any]:
    value = json.loads(zlib.decompress(data) if packed else data)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value
