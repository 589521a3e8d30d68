"""Opening a store's file: made private, in WAL mode, and brought up to date."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from agent.private_file import sync_folder
from agent.store.contract import Steps
from agent.store.faults import fault, newer, sqlite_errors
from agent.store.renewal import finish

_TRIES = 50


def open_database(path: Path | str, steps: Steps = ()) -> sqlite3.Connection:
    """A connection in autocommit mode; with `steps` the file is made and brought up to date.

    Step n (statements) brings a file from version n to n + 1. Raises StoreError when the folder
    cannot be written or the file is newer than this program.
    """
    with sqlite_errors(path):
        if steps:
            _prepare(Path(path))
        db = connect(path)
        try:
            if steps:
                _bring(db, path, steps)
        except BaseException:
            db.close()
            raise
        return db


def connect(path: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    """A connection that knows what our statements use. Nothing is read or made yet."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10, uri=uri)
    # Goes on at one pace for every process of the machine, whatever becomes of the date.
    db.create_function("boot_seconds", 0, time.monotonic)
    return db


def legible(text: bytes) -> str:
    """Text of a damaged file, as far as it can be read."""
    return text.decode("utf-8", "replace")


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
    finish(path)
    fresh = not path.exists()
    if not fresh and not path.stat().st_size and _rest(path):  # SQLite would throw that away
        raise fault("damaged", path, "the file is empty, and its log of changes is not")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if fresh:  # what SQLite keeps in it is of no use without its name
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _rest(path: Path) -> int:
    """The size of the log of changes beside a file."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0
