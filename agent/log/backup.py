"""Backs up, restores and checks a log; a copy is one SQLite file that fits either store."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log.contract import STEPS, AttachmentStore, Database, rows_of
from searchloop.agent.log.events import data_in
from searchloop.agent.log.log import open_store
from searchloop.agent.log.projects import copy_projects
from searchloop.agent.log.sqlite.file import (
    beside,
    check_closed,
    fault,
    finish,
    replace_store,
    sqlite_errors,
)
from searchloop.agent.log.sqlite.repair import ReadOnlyFile
from searchloop.agent.settings.private_files import sync_folder

_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "last_seq, settings, owner"
)
_EVENT = "seq, type, data, at, checksum"
_PAGE = 1000
_DAMAGED = " is damaged"
_INTO = f"INSERT INTO sessions ({_SESSION}) VALUES ({', '.join('?' * 13)})"

_UNFINISHED = "unfinished"  # a table that only an unfinished copy has
_AGAIN = "Name another, or make one with `searchloop sessions backup FILE`."


def backup(where: Path | str, target: Path) -> int:
    """Copies the log to a new file; returns the number of sessions. Raises AgentError."""
    if target.exists():
        raise ConfigError("file_exists", f"{target} exists.", "Name a file that does not.")
    with beside(target) as half:
        _begin_copy(half)
        with closing(open_store(where)) as ours, closing(open_store(half)) as copy:
            done = sum(_copied(ours, copy, row) for row in _sessions(ours))
            copy_projects(ours, copy)
        check_closed(half)
        with closing(open_store(half)) as copy, copy.transaction() as db:
            db.execute(f"DROP TABLE {_UNFINISHED}")
        check_closed(half)
        os.replace(half, target)
    sync_folder(target.parent)
    return done


class Restored(NamedTuple):
    """The result of a restore, in sessions."""

    done: int = 0  # restored from the copy
    kept: int = 0  # not restored: the log has them already
    saved: int = 0  # saved from a damaged store
    gaps: int = 0  # restored or saved with gaps
    aside: Path | None = None  # the new name of the damaged store


def restore(where: Path | str, source: Path | None) -> Restored:
    """Restores the sessions of a copy that the log lacks, and the legible ones of a damaged store.

    The copy's version of a session with gaps wins. Raises ConfigError, StoreError.
    """
    if source is not None and not source.is_file():
        raise ConfigError("no_file", f"There is no file {source}.", "Name a copy.")
    ended = finish(Path(where))
    trouble = _damage(where)
    if trouble is not None:
        return _renewed(Path(where), source, trouble)
    if source is None and not ended:
        words = "The sessions are whole: there is nothing to restore."
        raise ConfigError("not_damaged", words, "Name a copy: searchloop sessions restore FILE")
    with closing(open_store(where)) as ours:
        return _brought(source, ours) if source else Restored(saved=len(_sessions(ours)))


def _damage(where: Path | str) -> StoreError | None:
    """Returns the damage of a store. Raises StoreError for any other trouble."""
    try:
        with closing(open_store(where)) as db:
            if db.trouble is not None:
                raise db.trouble
            found = db.check() or [w for w in _all_wrong(db) if w.endswith(_DAMAGED)]
    except StoreError as error:
        if error.code != "damaged":
            raise
        return error
    return fault("damaged", where, found[0]) if found else None


def _renewed(path: Path, source: Path | None, trouble: StoreError) -> Restored:
    """Makes the new store beside the old one and replaces that when it is complete."""
    with beside(path) as new:
        with closing(open_store(new)) as ours:
            found = _filled(ours, path, source, trouble)
        return found._replace(aside=replace_store(path, new))


def _filled(ours: Database, path: Path, source: Path | None, trouble: StoreError) -> Restored:
    rescue = None
    with suppress(StoreError):  # nothing of it can be read
        rescue = ReadOnlyFile(path, STEPS, trouble)
    if rescue is None or rescue.saved is None:
        return _brought(source, ours) if source else Restored()
    with closing(rescue), closing(open_store(rescue.saved)) as rest:
        saved, _ = _copies(rest, ours, without=rescue.partial)
        found = _brought(source, ours) if source else Restored()
        gaps, _ = _copies(rest, ours)
        return found._replace(saved=saved + gaps, gaps=found.gaps + gaps)


def _brought(source: Path, ours: Database) -> Restored:
    """Restores the sessions of a copy; of a damaged copy the legible ones."""
    with tempfile.TemporaryDirectory() as folder:  # an older copy is migrated there
        copy = Path(folder) / "copy"
        for side in ("", "-wal"):  # the source may be a file copy of a store in use
            if Path(f"{source}{side}").is_file():
                shutil.copy(f"{source}{side}", f"{copy}{side}")
        _check_copy(copy, source)
        trouble = _damage(copy)
        if trouble is None:
            with closing(open_store(copy)) as db:
                return Restored(*_copies(db, ours))
        try:
            rescue = ReadOnlyFile(copy, STEPS, trouble)
        except StoreError as error:
            why = f"{source} cannot be read ({error.__cause__ or error})."
            raise StoreError("damaged", why, _AGAIN) from error
        with closing(rescue), closing(open_store(rescue.saved or copy)) as rest:
            done, _ = _copies(rest, ours, without=rescue.partial)
            gaps, known = _copies(rest, ours)
            return Restored(done + gaps, known - done, gaps=gaps)


def _begin_copy(half: Path) -> None:
    """Makes a file that is marked as unfinished, whatever its name. Raises StoreError."""
    with sqlite_errors(half):
        os.close(os.open(half, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(half)) as db:
            db.execute(f"CREATE TABLE {_UNFINISHED} (x INTEGER)")
            db.commit()


def _check_copy(copy: Path, source: Path) -> None:
    """Raises ConfigError when `copy`, read from `source`, is no copy or an unfinished one."""
    try:
        with closing(sqlite3.connect(copy)) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError:
        return
    if _UNFINISHED in tables:
        raise ConfigError("half_copy", f"{source} is a copy that was never finished.", _AGAIN)
    if "sessions" not in tables:
        raise ConfigError("no_copy", f"{source} is no copy of sessions.", _AGAIN)


def _copies(source: Database, target: Database, without: Collection[str] = ()) -> tuple[int, int]:
    """Copies the sessions that `target` lacks; returns (copied, present already)."""
    copy_projects(source, target)
    known = {row[0] for row in _sessions(target)}
    wanted = [row for row in _sessions(source) if row[0] not in without]
    fresh = [row for row in wanted if row[0] not in known]
    return sum(_copied(source, target, row) for row in fresh), len(wanted) - len(fresh)


def check(where: Path | str) -> list[str]:
    """Returns the faults of a log, a line each; empty if it is whole. Raises StoreError."""
    with closing(open_store(where)) as db:
        try:
            return db.check() or list(_all_wrong(db))
        except StoreError:
            if db.trouble is None:
                raise
            return db.check()


def _all_wrong(db: Database) -> Iterator[str]:
    held = {row[0]: row[1] for row in rows_of(db, "SELECT session, run_id FROM runs")}
    for row in _sessions(db):
        yield from (f"session {row[0]}: {what}" for what in _wrong(db, row, held.get(row[0])))
    strays = "SELECT DISTINCT session FROM events WHERE session NOT IN (SELECT id FROM sessions)"
    yield from (f"events of a session that is gone: {row[0]}" for row in rows_of(db, strays))


def _wrong(db: Database, session: Sequence[Any], held: str | None) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    begun: dict[str, int] = {}
    ended: Counter[str] = Counter()
    last = 0
    for event in _events(db, session[0]):
        last, kind = event[0], event[1]
        kinds[kind] += 1
        data = data_in(session[0], *event)
        if data is None:
            yield f"event {last}{_DAMAGED}"
            continue
        if kind == "run_started":
            begun[data["run_id"]] = last
        elif kind == "run_finished":
            ended[data["run_id"]] += 1
    if last > session[10]:
        yield f"event {last} is beyond its count of {session[10]}"
    if kinds["user_message"] != session[9]:
        yield f"{kinds['user_message']} questions, {session[9]} counted"
    for run, times in ended.items():
        if times > 1:
            yield f"run {run} ended {times} times"
    for run in begun.keys() - ended.keys() - {held}:
        yield f"run {run} never ended"


def _copied(source: Database, target: Database, session: Sequence[Any]) -> int:
    with target.transaction() as db:
        db.execute(_INTO, session)
        for event in _events(source, session[0]):
            if event[0] <= session[10]:
                db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (session[0], *event))
        AttachmentStore(source).copy(session[0], db)
    return 1


def _sessions(db: Database) -> list[Any]:
    return rows_of(db, f"SELECT {_SESSION} FROM sessions ORDER BY created")


def _events(db: Database, session: str) -> Iterator[Any]:
    after = 0
    query = f"SELECT {_EVENT} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := rows_of(db, query, (session, after)):
        yield from rows
        after = rows[-1][0]
