"""Copies of a log, and whether it is whole.

A copy is always one SQLite file, whichever store it is made of, and can be brought back into
either. Sessions are copied one by one while others write: each is whole as of some moment.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.private_file import sync_folder
from agent.store import open_store
from agent.store.contract import Database

_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "last_seq, settings"
)
_PAGE = 1000
_INTO = f"INSERT INTO sessions ({_SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def backup(where: Path | str, target: Path) -> int:
    """Writes a copy of the log to a new file; returns how many sessions it holds.

    Raises ConfigError when the file exists, StoreError when reading or writing fails.
    """
    if target.exists():
        raise ConfigError("file_exists", f"{target} exists.", "Name a file that does not.")
    half = target.with_name(f".{target.name}.half")
    half.unlink(missing_ok=True)
    with closing(open_store(where)) as ours, closing(open_store(half)) as copy:
        done = sum(_copied(ours, copy, row) for row in _sessions(ours))
    for side in ("-wal", "-shm"):
        half.with_name(half.name + side).unlink(missing_ok=True)
    os.replace(half, target)  # SQLite synced it when it was closed
    sync_folder(target.parent)
    return done


def restore(where: Path | str, source: Path) -> tuple[int, int]:
    """Brings back the sessions of a copy that are not there: (brought back, there already).

    Raises ConfigError when there is no such file, StoreError when it is no copy.
    """
    if not source.is_file():
        raise ConfigError("no_file", f"There is no file {source}.", "Name a copy.")
    done = there = 0
    with tempfile.TemporaryDirectory() as folder:  # an older copy is brought up to date there
        shutil.copy(source, Path(folder) / "copy")
        with (
            closing(open_store(Path(folder) / "copy")) as copy,
            closing(open_store(where)) as ours,
        ):
            known = {row[0] for row in _sessions(ours)}
            for row in _sessions(copy):
                if row[0] in known:
                    there += 1
                else:
                    done += _copied(copy, ours, row)
    return done, there


def check(where: Path | str) -> list[str]:
    """What is wrong with a log, a line each; nothing if it is whole. Raises StoreError."""
    with closing(open_store(where)) as db:
        found = db.check()
        if found:
            return found
        held = {row[0]: row[1] for row in _rows(db, "SELECT session, run_id FROM runs")}
        for row in _sessions(db):
            found += [f"session {row[0]}: {what}" for what in _wrong(db, row, held.get(row[0]))]
        strays = (
            "SELECT DISTINCT session FROM events WHERE session NOT IN (SELECT id FROM sessions)"
        )
        found += [f"events of a session that is gone: {row[0]}" for row in _rows(db, strays)]
    return found


def _wrong(db: Database, session: Sequence[Any], held: str | None) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    begun: dict[str, int] = {}
    ended: Counter[str] = Counter()
    last = 0
    for seq, kind, text in _events(db, session[0]):
        last = seq
        kinds[kind] += 1
        try:
            data = json.loads(text)
        except ValueError:
            yield f"event {seq} is damaged"
            continue
        if kind == "run_started":
            begun[data["run_id"]] = seq
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
        for seq, kind, text, at in _events(source, session[0], "seq, type, data, at"):
            if seq <= session[10]:
                db.execute(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?)", (session[0], seq, kind, text, at)
                )
    return 1


def _sessions(db: Database) -> list[Any]:
    return _rows(db, f"SELECT {_SESSION} FROM sessions ORDER BY created")


def _events(db: Database, session: str, what: str = "seq, type, data") -> Iterator[Any]:
    after = 0
    query = f"SELECT {what} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := _rows(db, query, (session, after)):
        yield from rows
        after = rows[-1][0]


def _rows(db: Database, query: str, values: Sequence[Any] = ()) -> list[Any]:
    with db.reading() as statements:
        return statements.execute(query, values).fetchall()
