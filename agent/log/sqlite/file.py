"""Opens, migrates and renames the SQLite file, and converts every error to StoreError."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from searchloop.agent.errors import StoreError
from searchloop.agent.log.contract import Steps
from searchloop.agent.settings.private_files import sync_folder
from searchloop.agent.text import column_values

# [what, remedy] by code; read at once, as a system without files to spare reads none later.
_WORDS = json.loads(Path(__file__).with_name("failures.json").read_text("utf-8"))
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


def fault(code: str, where: object, why: object) -> StoreError:
    """Makes the error of this code for the store at `where`."""
    what, remedy = _WORDS[code]
    return StoreError(code, f"{what} ({where}: {why}).", remedy)


def newer(where: object, found: int, known: int, way_out: str) -> StoreError:
    """Makes the error for a store that a later version has migrated."""
    what = f"{where} is of a newer searchloop (schema {found}; this one knows {known})."
    return StoreError("newer_store", what, f"Update searchloop, or {way_out}.")


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


_TRIES = 50


def open_database(path: Path, steps: Steps) -> sqlite3.Connection:
    """Makes and migrates the file by `steps`; returns a connection in autocommit mode."""
    with sqlite_errors(path):
        _prepare(path)
        return migrated(connect(path), path, steps)


def migrated(db: sqlite3.Connection, path: Path, steps: Steps) -> sqlite3.Connection:
    """Brings the tables to the present `steps`; returns the connection, or closes it."""
    try:
        _migrate(db, path, steps)
    except BaseException:
        db.close()
        raise
    return db


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


def read_only(path: Path, version: int, trouble: StoreError) -> str:
    """Returns an address to read a file by that cannot be written. Raises `trouble` if none works.

    See "read-only databases" in SQLite's wal.html.
    """
    if trouble.code in ("newer_store", "read_only") and os.path.isfile(path):
        for how in ("mode=ro", *(() if wal_size(path) else ("immutable=1",))):
            address = f"{path.absolute().as_uri()}?{how}"
            with suppress(sqlite3.Error), closing(connect(address, uri=True)) as db:
                if _version(db) >= version:
                    return address
    raise trouble


def _migrate(db: sqlite3.Connection, path: Path | str, steps: Steps) -> None:
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
    """Switches to WAL; where SQLite fails at once, an empty transaction waits for the lock."""
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
    """Makes folder (0700) and file (0600) before SQLite does; its side files copy the mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = not path.exists()
    if not fresh and not path.stat().st_size and wal_size(path):  # SQLite would discard the log
        raise fault("damaged", path, "the file is empty, and its log of changes is not")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if fresh:  # after a power cut the file needs its name
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def wal_size(path: Path) -> int:
    """Returns the size in bytes of a file's write-ahead log, 0 without one."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0


_SIDES = ("-wal", "-shm", "-journal")


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yields the path for a file that will replace `path`; removes it before, and after errors."""
    half = path.with_name(f".{path.name}.half")
    _remove(half, "", *_SIDES)
    try:
        yield half
    except BaseException:
        _remove(half, "", *_SIDES)
        raise


def _remove(path: Path, *sides: str) -> None:
    for side in sides:
        Path(f"{path}{side}").unlink(missing_ok=True)


def check_closed(path: Path) -> None:
    """Raises StoreError when a closed store is not all in its file; removes its side files."""
    if wal_size(path):
        raise fault("disk_full", path, "not all of it could be written")
    _remove(path, *_SIDES)


def set_aside(path: Path) -> Path:
    """Gives a damaged store and its log of changes another name, which it returns.

    It keeps its old one until it has the new. Raises StoreError.
    """
    name = f"{path.name}.damaged-{datetime.now():%Y%m%d-%H%M%S}"
    names = (path.with_name(f"{name}{more}") for more in ("", *(f"-{n}" for n in range(2, 1000))))
    aside = next(each for each in names if not each.exists())
    with sqlite_errors(path):
        for side in ("", "-wal"):
            if (old := Path(f"{path}{side}")).exists():
                try:
                    os.link(old, f"{aside}{side}")
                except OSError:  # a file system without links
                    shutil.copyfile(old, f"{aside}{side}")
        _remove(path, "", *_SIDES)
        sync_folder(path.parent)
    return aside
