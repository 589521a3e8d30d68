"""Opening SQLite safely: private files, WAL, a version, and errors that say who must act."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from agent.errors import StoreError

_TRIES = 50


Steps = Sequence[Sequence[str]]


def open_database(path: Path | str, steps: Steps = ()) -> sqlite3.Connection:
    """A connection in autocommit mode; with `steps` the file is made and brought up to date.

    Step n (statements) brings a file from version n to n + 1. Raises StoreError when the folder
    cannot be written or the file is newer than this program.
    """
    with store_errors(path):
        if steps:
            _prepare(Path(path))
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
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
        raise StoreError(
            "newer_store",
            f"{path} is of a newer searchloop (schema {_version(db)}; this one knows "
            f"{len(steps)}).",
            "Update searchloop, or set SEARCHLOOP_HOME to another folder.",
        )


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
            if "locked" not in str(error) or attempt == _TRIES - 1:
                raise
        db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")


def _prepare(path: Path) -> None:
    """Folder 0700 and file 0600 before SQLite makes its own (its side files copy the mode)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


@contextmanager
def store_errors(path: Path | str) -> Iterator[None]:
    """SQLite's and the system's complaints as StoreError, translated here and nowhere else."""
    try:
        yield
    except (sqlite3.Error, OSError, JSONDecodeError, UnicodeDecodeError) as error:
        broken = isinstance(error, sqlite3.IntegrityError | JSONDecodeError | UnicodeDecodeError)
        code, what, remedy = _cause("malformed" if broken else str(error).lower())
        raise StoreError(code, f"{what} ({path}: {error}).", remedy) from error


_CAUSES = (
    (("readonly", "read-only"), "read_only", "The data folder is read-only"),
    (
        ("file exists", "not a directory"),
        "not_a_folder",
        "A file stands where the data folder should be",
    ),
    (
        ("permission", "unable to open", "a directory"),
        "read_only",
        "The data folder cannot be used",
    ),
    (("full", "no space"), "disk_full", "The disk is full"),
    (("locked", "busy"), "locked", "Another process holds the session store"),
    (("malformed", "not a database", "decode"), "damaged", "The session store is damaged"),
)
_REMEDIES = {
    "not_a_folder": "Move that file away, or set SEARCHLOOP_HOME to a folder.",
    "read_only": "Make it writable, or set SEARCHLOOP_HOME to a folder that is.",
    "disk_full": "Free some space and send the message again; nothing that was saved is lost.",
    "locked": "Close the other searchloop, or try again in a moment.",
    "damaged": "Move the file away to start afresh; keep it, most of it can be recovered.",
}


def _cause(text: str) -> tuple[str, str, str]:
    for needles, code, what in _CAUSES:
        if any(needle in text for needle in needles):
            return code, what, _REMEDIES[code]
    return "store_failed", "The session store failed", "See the log, then start again."
