"""Makes, migrates and renames the SQLite file; errors come as SQLite and the system raise them."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from searchloop.agent.log.contract import Steps, fault, newer
from searchloop.agent.settings.private_files import sync_folder

_TRIES = 50


def migrated(db: sqlite3.Connection, path: Path, steps: Steps) -> sqlite3.Connection:
    """Brings the tables to the present `steps`; returns the connection, or closes it."""
    try:
        _migrate(db, path, steps)
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, path: Path | str, steps: Steps) -> None:
    _use_wal(db)
    db.execute("PRAGMA synchronous = NORMAL")
    if version(db) < len(steps):
        db.execute("BEGIN IMMEDIATE")
        for step in steps[version(db) :]:  # another process may have done some by now
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {max(version(db), len(steps))}")
        db.execute("COMMIT")
    if version(db) > len(steps):
        raise newer(path, version(db), len(steps), "set SEARCHLOOP_HOME to another folder")


def version(db: sqlite3.Connection) -> int:
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


def prepare(path: Path) -> None:
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

    It keeps its old one until it has the new.
    """
    name = f"{path.name}.damaged-{datetime.now():%Y%m%d-%H%M%S}"
    names = (path.with_name(f"{name}{more}") for more in ("", *(f"-{n}" for n in range(2, 1000))))
    aside = next(each for each in names if not each.exists())
    for side in ("", "-wal"):
        if (old := Path(f"{path}{side}")).exists():
            try:
                os.link(old, f"{aside}{side}")
            except OSError:  # a file system without links
                shutil.copyfile(old, f"{aside}{side}")
    _remove(path, "", *_SIDES)
    sync_folder(path.parent)
    return aside
