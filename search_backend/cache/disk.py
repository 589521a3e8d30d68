"""A bounded SQLite file, or database in memory, of answers and pages. It never fails its callers.

A file that is locked, full or read-only is left alone for some seconds; a damaged one is deleted
and begun anew. Several processes may share it. Entries whose time lies in the future are ignored.

Spec: https://www.sqlite.org/pragma.html (auto_vacuum)
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from searchloop.search_backend.cache.chats import CHAT_TABLES, leave_nothing, mark, unmark
from searchloop.search_backend.types import NOBODY, Owner

NAME = "cache.sqlite3"
MOST_ROWS = 20_000
_PAGE = 4_096
_LEAST_BYTES = 256 * 1024
_FULL = 0.8  # of the whole file: one entry more, and there is still room
_SWEEP_EVERY = 64  # entries
_WAIT = 0.05  # seconds for another process, or thread, at the same file
_PAUSE = 5.0
_TRIES = 20  # at forgetting, each of which waits a little
_PACK_FROM = 4_096
# Ids grow, so new entries are side by side at the end: half the pages to write of a table by key.
_VERSION = 3
_SCHEMA = f"""
BEGIN IMMEDIATE; DROP TABLE IF EXISTS entries;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, made REAL NOT NULL, until REAL NOT NULL,
    packed INTEGER NOT NULL, value BLOB NOT NULL);
{"; ".join(CHAT_TABLES)};
PRAGMA user_version = {_VERSION}; COMMIT;
"""
_PAGES = "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """A JSON object, and its age in seconds."""

    age: float
    value: dict[str, Any]


class Disk:
    """The file `home`/cache.sqlite3, in memory without a `home`, with at most `most_bytes`. Safe
    for several threads."""

    def __init__(
        self,
        home: Path | None,
        most_bytes: int,
        most_rows: int = MOST_ROWS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """With fewer than 256 KiB nothing is stored and no file is made."""
        self._path = home / NAME if home else None
        self._most_bytes = most_bytes if most_bytes >= _LEAST_BYTES else 0
        self._most_rows = most_rows
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._quiet_until = 0.0
        self._puts = 0

    def get(self, kind: str, key: str, chat: Owner = NOBODY) -> Entry | None:
        """Returns the entry; None if it is too old or cannot be read now. It is the chat's too."""
        select = "SELECT made, until, packed, value FROM entries WHERE key = ?"
        digest = _digest(kind, key)
        owner = self._owner(chat)

        def find(connection: sqlite3.Connection) -> Any:
            row = connection.execute(select, (digest,)).fetchone()
            if row and owner:
                mark(connection, digest.hex(), owner)
            return row

        row = self._try(find, None)
        now = self._clock()
        if row is None or not row[0] <= now < row[1]:
            return None
        try:
            return Entry(now - row[0], _unpacked(*row[2:]))
        except (ValueError, zlib.error):  # not as we wrote it
            return None

    def put(
        self, kind: str, key: str, value: dict[str, Any], seconds: float, chat: Owner = NOBODY
    ) -> bool:
        """Stores `value` as JSON for `seconds`, and says whether it did: not a value larger than
        1/16 of the file, nor in a file what is asked for a temporary chat."""
        packed, data = _packed(value)
        if seconds <= 0 or len(data) > self._most_bytes // 16 or (chat.temporary and self._path):
            return False
        now = self._clock()
        row = (_digest(kind, key), now, now + seconds, packed, data)
        return self._try(lambda connection: self._write(connection, row, chat), False)

    def _owner(self, chat: Owner) -> str:
        """Returns the id under which a chat owns an entry; "" for one that may own none here."""
        return "" if chat.temporary and self._path else chat.id

    def _write(self, connection: sqlite3.Connection, row: tuple[Any, ...], chat: Owner) -> bool:
        if self._puts % _SWEEP_EVERY == 0 or not self._has_room(connection):
            self._sweep(connection)
        self._puts += 1
        connection.execute("REPLACE INTO entries VALUES (NULL, ?, ?, ?, ?, ?)", row)
        # In this order: a chat that is forgotten in between takes the entry with it.
        if (owner := self._owner(chat)) and not mark(connection, row[0].hex(), owner):
            connection.execute("DELETE FROM entries WHERE key = ?", row[:1])
        return True

    def forget(self, chat: str) -> int:
        """Deletes the entries of this chat alone, or the file if it cannot be used; returns their
        number. Raises OSError."""

        def empty(connection: sqlite3.Connection) -> int:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                alone = [(bytes.fromhex(item),) for item in unmark(connection, chat)]
                connection.executemany("DELETE FROM entries WHERE key = ?", alone)
            leave_nothing(connection)
            return len(alone)

        return self._emptied(empty, _TRIES if self._exists() else 1)

    def _exists(self) -> bool:
        return self._path is None or self._path.exists()

    def clear(self) -> int:
        """Deletes all entries and returns their number. Raises OSError."""

        def empty(connection: sqlite3.Connection) -> int:
            count = connection.execute("DELETE FROM entries").rowcount
            connection.execute("DELETE FROM chats WHERE item != ''")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return int(count)

        return self._emptied(empty, 1 if self._exists() else 0)

    def _emptied(self, empty: Callable[[sqlite3.Connection], int], tries: int) -> int:
        """Returns the number that `empty` deletes; deletes the file if none of the tries works."""
        for _ in range(tries):
            self._quiet_until = 0.0
            if (count := self._try(empty, -1)) >= 0:
                return count
        with self._lock:
            self._delete()
        return 0

    def close(self) -> None:
        """Closes the file; the next call opens it again."""
        with self._lock:
            self._disconnect()

    def __del__(self) -> None:
        self._disconnect()

    def _try(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Returns the result of `work`, or `otherwise` while the file cannot be used."""
        # For longer only where the clock was set back.
        if not self._most_bytes or 0 < self._quiet_until - self._clock() <= _PAUSE:
            return otherwise
        if not self._lock.acquire(timeout=_WAIT):
            return otherwise
        try:
            if self._connection is None:
                self._connection = self._open()
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            self._quiet_until = self._clock() + _PAUSE
            self._disconnect()
            # OperationalError: locked, full, read-only. The file as such may be well.
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(
                error, sqlite3.OperationalError | sqlite3.ProgrammingError
            ):
                with suppress(OSError):
                    self._delete()
                self._quiet_until = 0.0
            _log.warning("the cache %s is not used for now: %s", self._path, error)
            return otherwise
        finally:
            self._lock.release()

    def _open(self) -> sqlite3.Connection:
        if self._path is None:
            pass
        elif not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        elif os.name == "posix" and self._path.stat().st_mode & 0o077:
            self._path.chmod(0o600)
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in (
                "secure_delete = ON",
                "auto_vacuum = INCREMENTAL",
                "journal_mode = WAL",
                "synchronous = OFF",  # a crash of the machine costs entries, which come again
                f"journal_size_limit = {_LEAST_BYTES}",
            ):
                connection.execute(f"PRAGMA {setting}")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_room(self, connection: sqlite3.Connection) -> bool:
        pages = connection.execute(_PAGES).fetchone()[0]
        return bool(pages * _PAGE <= self._most_bytes * _FULL)

    def _sweep(self, connection: sqlite3.Connection) -> None:
        """Deletes what is too old, then the oldest entries until there is room."""
        connection.execute("DELETE FROM entries WHERE until <= ?", (self._clock(),))
        while rows := connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0]:
            if rows <= self._most_rows - _SWEEP_EVERY and self._has_room(connection):
                break
            connection.execute(
                "DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY id LIMIT ?)",
                (rows // 10 + 1,),
            )
        connection.execute(
            "DELETE FROM chats WHERE item != '' AND"
            " item NOT IN (SELECT lower(hex(key)) FROM entries)"
        )
        connection.execute("PRAGMA incremental_vacuum")

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _delete(self) -> None:
        self._disconnect()
        if self._path is not None:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(NAME + suffix).unlink(missing_ok=True)


def _digest(kind: str, key: str) -> bytes:
    return hashlib.sha256(f"{kind}\n{key}".encode("utf-8", "surrogatepass")).digest()


def _packed(value: dict[str, Any]) -> tuple[bool, bytes]:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return (True, zlib.compress(data, 1)) if len(data) >= _PACK_FROM else (False, data)


def _unpacked(packed: int, data: bytes) -> dict[str, Any]:
    value = json.loads(zlib.decompress(data) if packed else data)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value
