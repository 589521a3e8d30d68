"""Copies of a log, and whether it is whole.

A copy is always one SQLite file, whichever store it is made of, and can be brought back into
either. Sessions are copied one by one while others write: each is whole as of some moment.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agent.checksum import data_in
from agent.errors import ConfigError, StoreError
from agent.private_file import sync_folder
from agent.store import open_store
from agent.store.contract import Database, rows_of
from agent.store.faults import fault
from agent.store.renewal import (
    begin_copy,
    beside,
    check_closed,
    check_copy,
    end_copy,
    finish,
    replace_store,
    unreadable,
)
from agent.store.rescue import Rescue
from agent.tables import STEPS

_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "last_seq, settings"
)
_EVENT = "seq, type, data, at, checksum"
_PAGE = 1000
_DAMAGED = " is damaged"
_INTO = f"INSERT INTO sessions ({_SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def backup(where: Path | str, target: Path) -> int:
    """Writes a copy of the log to a new file; returns how many sessions it holds.

    Raises ConfigError when the file exists, StoreError when reading or writing fails.
    """
    if target.exists():
        raise ConfigError("file_exists", f"{target} exists.", "Name a file that does not.")
    with beside(target) as half:
        begin_copy(half)
        with closing(open_store(where)) as ours, closing(open_store(half)) as copy:
            done = sum(_copied(ours, copy, row) for row in _sessions(ours))
        check_closed(half)
        with closing(open_store(half)) as copy:
            end_copy(copy)
        check_closed(half)
        os.replace(half, target)
    sync_folder(target.parent)
    return done


class Restored(NamedTuple):
    """What a restore came to: sessions brought back from the copy, those that were there already,
    those saved from a damaged store, how many of both have gaps, and where that store was put.
    """

    done: int = 0
    kept: int = 0
    saved: int = 0
    gaps: int = 0
    aside: Path | None = None


def restore(where: Path | str, source: Path | None) -> Restored:
    """Brings back the sessions of a copy that are not there.

    A damaged SQLite store is set aside first, and what can be read of it is brought back as well: a
    session with gaps only if the copy has none of it. Raises ConfigError when there is no such
    file, or nothing to restore; StoreError when it is no copy.
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
    """What is wrong inside a file. Raises StoreError for one that cannot be used otherwise."""
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
    """The new store is made beside the old one, and takes its place when it is whole."""
    with beside(path) as new:
        with closing(open_store(new)) as ours:
            found = _filled(ours, path, source, trouble)
        return found._replace(aside=replace_store(path, new))


def _filled(ours: Database, path: Path, source: Path | None, trouble: StoreError) -> Restored:
    rescue = None
    with suppress(StoreError):  # nothing of it can be read
        rescue = Rescue(path, STEPS, trouble)
    if rescue is None or rescue.saved is None:
        return _brought(source, ours) if source else Restored()
    with closing(rescue), closing(open_store(rescue.saved)) as rest:
        saved, _ = _copies(rest, ours, without=rescue.partial)
        found = _brought(source, ours) if source else Restored()
        gaps, _ = _copies(rest, ours)
        return found._replace(saved=saved + gaps, gaps=found.gaps + gaps)


def _brought(source: Path, ours: Database) -> Restored:
    """What a copy holds; one that is damaged as far as it can be read."""
    with tempfile.TemporaryDirectory() as folder:  # an older copy is brought up to date there
        copy = Path(folder) / "copy"
        for side in ("", "-wal"):  # of a store that somebody copied while it was used
            if Path(f"{source}{side}").is_file():
                shutil.copy(f"{source}{side}", f"{copy}{side}")
        check_copy(copy, source)
        trouble = _damage(copy)
        if trouble is None:
            with closing(open_store(copy)) as db:
                return Restored(*_copies(db, ours))
        try:
            rescue = Rescue(copy, STEPS, trouble)
        except StoreError as error:
            raise unreadable(source, error) from error
        with closing(rescue), closing(open_store(rescue.saved or copy)) as rest:
            done, _ = _copies(rest, ours, without=rescue.partial)
            gaps, known = _copies(rest, ours)
            return Restored(done + gaps, known - done, gaps=gaps)


def _copies(source: Database, target: Database, without: Collection[str] = ()) -> tuple[int, int]:
    """Copies the sessions that are not there: (copied, there already)."""
    known = {row[0] for row in _sessions(target)}
    wanted = [row for row in _sessions(source) if row[0] not in without]
    fresh = [row for row in wanted if row[0] not in known]
    return sum(_copied(source, target, row) for row in fresh), len(wanted) - len(fresh)


def check(where: Path | str) -> list[str]:
    """What is wrong with a log, a line each; nothing if it is whole. Raises StoreError."""
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
    return 1


def _sessions(db: Database) -> list[Any]:
    return rows_of(db, f"SELECT {_SESSION} FROM sessions ORDER BY created")


def _events(db: Database, session: str) -> Iterator[Any]:
    after = 0
    query = f"SELECT {_EVENT} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := rows_of(db, query, (session, after)):
        yield from rows
        after = rows[-1][0]
