"""What may be wrong with a store, in words that say who must act. Translated here, nowhere else."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from agent.errors import StoreError

_HOME = "or set SEARCHLOOP_HOME to a folder"
_WORDS = {
    "not_a_folder": (
        "A file stands where the data folder should be",
        f"Move that file away, {_HOME}.",
    ),
    "read_only": ("The data folder cannot be written", f"Make it writable, {_HOME} that is."),
    "disk_full": (
        "The disk is full",
        "Free some space and send the message again; nothing that was saved is lost.",
    ),
    "disk_failed": (
        "The disk did not do what it was asked",
        "Look at the system's log; nothing that was saved before is touched.",
    ),
    "too_many_files": (
        "Too many files are open",
        "Close some pages, or raise the limit (`ulimit -n`).",
    ),
    "no_memory": (
        "There is no memory left for the session store",
        "Close other programs, then try again; nothing that was saved is lost.",
    ),
    "not_a_file": (
        "A folder stands where the session store should be",
        f"Move that folder away, {_HOME}.",
    ),
    "file_gone": (
        "The session store was deleted or moved away while it was in use",
        "Put the file back. What is open can be read and exported until searchloop ends; it begins "
        "a new store when it is started again.",
    ),
    "locked": (
        "Another process holds the session store",
        "Close the other searchloop, or try again in a moment.",
    ),
    "damaged": (
        "The session store is damaged",
        "`searchloop sessions restore` sets it aside and brings back what can be read of it, "
        "`searchloop sessions restore FILE` what a copy holds as well.",
    ),
    "store_down": (
        "The session database does not answer",
        "Start it, or correct SEARCHLOOP_DATABASE_URL; runs go on once it is back.",
    ),
    "store_busy": (
        "The session database has no connection to spare",
        "Try again in a moment; if it lasts, look what holds its connections.",
    ),
    "store_refused": (
        "The session database refuses the connection",
        "Correct SEARCHLOOP_DATABASE_URL, or what the database lets its user do.",
    ),
    "store_slow": (
        "The session database took too long, and did nothing",
        "Try again; if it lasts, look what it waits for: locks, long statements, its disk.",
    ),
    "store_read_only": (
        "The session database can only be read at the moment",
        "Chats can be read meanwhile. If it is a standby, name the server that can be written in "
        "SEARCHLOOP_DATABASE_URL; else look at default_transaction_read_only and at its user.",
    ),
    "store_pooler": (
        "A pooler before the session database hands out connections by the transaction",
        "Set pool_mode = session there, or name PostgreSQL itself in SEARCHLOOP_DATABASE_URL: "
        "servers tell each other of events by LISTEN, which needs a connection that stays.",
    ),
    "store_failed": ("The session store failed", "See the log, then try again."),
}
# https://www.sqlite.org/rescode.html, primary codes
_SQLITE = {
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "read_only",
    sqlite3.SQLITE_AUTH: "read_only",
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_IOERR: "disk_failed",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_FORMAT: "damaged",
    sqlite3.SQLITE_CONSTRAINT: "damaged",  # our statements break none
    sqlite3.SQLITE_MISMATCH: "damaged",
    sqlite3.SQLITE_ERROR: "damaged",  # our statements are right: the tables are not ours
}
_SYSTEM = {
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.EISDIR: "not_a_file",
    errno.EEXIST: "not_a_folder",
    errno.ENOTDIR: "not_a_folder",
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "disk_full",
    errno.EIO: "disk_failed",
    errno.EMFILE: "too_many_files",
    errno.ENFILE: "too_many_files",
    errno.ENOMEM: "no_memory",
}


def corrupt(error: object) -> bool:
    """Whether this is SQLite's word for a file that is damaged, or for tables that are not ours."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def illegible(error: object) -> bool:
    """Whether a text in the file is not UTF-8, which Python says without SQLite's code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")


def fault(code: str, where: object, why: object) -> StoreError:
    """The error of this code, about the store at `where`."""
    what, remedy = _WORDS[code]
    return StoreError(code, f"{what} ({where}: {why}).", remedy)


def newer(where: object, found: int, known: int, way_out: str) -> StoreError:
    """A store that a later version has changed."""
    return StoreError(
        "newer_store",
        f"{where} is of a newer searchloop (schema {found}; this one knows {known}).",
        f"Update searchloop, or {way_out}.",
    )


@contextmanager
def sqlite_errors(path: Path | str) -> Iterator[None]:
    """SQLite's and the system's complaints as StoreError."""
    try:
        yield
    except (JSONDecodeError, UnicodeDecodeError) as error:
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
    """Why a file could not be opened, which SQLite does not say and the system does."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return _SYSTEM.get(error.errno or 0, "read_only")
    return "read_only"  # the file is well: its neighbours cannot be made
