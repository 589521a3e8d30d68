"""Reads a store that cannot be written, and copies the legible rows of a damaged one."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from searchloop.agent.errors import StoreError
from searchloop.agent.log.contract import Steps, insert_files
from searchloop.agent.log.events import data_in
from searchloop.agent.log.sqlite.file import (
    connect,
    legible,
    open_database,
    sqlite_errors,
    wal_size,
)
from searchloop.agent.types import Usage

_FAR = 1 << 31  # beyond any number that a row has
_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, last_seq,"
    " settings, fence"
)
_INTO = f"INSERT OR IGNORE INTO sessions ({_SESSION}, owner) VALUES ({', '.join('?' * 14)})"
_SESSIONS = f"SELECT rowid, {_SESSION}, %s FROM sessions NOT INDEXED WHERE rowid > ? ORDER BY rowid"
_NOBODY = "\n"  # is no name, so what is saved with it is shown to nobody
_FILES = (
    "SELECT digest, data, pages FROM files"
    " WHERE digest IN (SELECT digest FROM attachments WHERE session = ?)"
)
_EVENTS = "SELECT seq, type, data, at, %s FROM events WHERE session = ? AND seq > ? ORDER BY seq"
_LOST = {
    "code": "damaged",
    "message": "The end of this answer was in a part of the store that cannot be read.",
    "remedy": "Send the question again.",
}


class _Salvage:
    """Copies the legible rows of a file into a new store; `partial` are the sessions with gaps."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        self._source = source
        self._target = target
        self._gap = False
        self.partial: set[str] = set()

    def run(self) -> None:
        """Copies every session that has a row or events."""
        owner, checksum = (
            self._column("owner", "sessions", "''"),
            self._column("checksum", "events"),
        )
        rows = {row[1]: row[1:] for row in self._found(_SESSIONS % owner, ())}
        lost = _NOBODY if any(row[-1] for row in rows.values()) else ""
        with suppress(sqlite3.Error):  # an earlier version had none
            for project in self._source.execute("SELECT * FROM projects"):
                self._project(project)
        for session in {*rows, *self._named()}:
            self._gap = False
            events = list(self._found(_EVENTS % checksum, (session,)))
            kept = [event for event in events if data_in(session, *event) is not None]
            if self._gap or len(kept) < len(events) or session not in rows:
                self.partial.add(session)
            with suppress(sqlite3.Error):  # a row that breaks the rules of its table
                self._store(rows.get(session) or _guessed(session, kept, lost), kept)

    def _project(self, row: Sequence[Any]) -> None:
        with suppress(sqlite3.Error), self._target:
            self._target.execute("INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?)", row)
            insert_files(self._target, row[0], self._source.execute(_FILES, (row[0],)))

    def _column(self, name: str, table: str, instead: str = "NULL") -> str:
        """Returns a column that earlier versions lack, or an expression in its place."""
        with suppress(sqlite3.Error):
            self._source.execute(f"SELECT {name} FROM {table} LIMIT 0")
            return name
        return instead

    def _found(self, query: str, values: tuple[str, ...]) -> Iterator[Any]:
        """Yields the rows whose first column is above 0; skips damaged ones."""
        at, step = 0, 1
        while at <= _FAR:
            try:
                for row in self._source.execute(query, (*values, at)):
                    if row[0] <= at:
                        raise sqlite3.DatabaseError("rows out of order")
                    at, step = row[0], 1
                    yield row
            except (sqlite3.Error, TypeError, OverflowError):
                self._gap = True
                at, step = at + step, step * 2
            else:
                return

    def _named(self) -> set[str]:
        """Returns the sessions that have events, from both ends up to the damage."""
        names: set[str] = set()
        for query, name in (
            ("SELECT min(session) FROM events WHERE session > ?", ""),
            ("SELECT max(session) FROM events WHERE session < ?", "\U0010ffff"),
        ):
            with suppress(sqlite3.Error):
                while found := self._source.execute(query, (name,)).fetchone()[0]:
                    name = str(found)
                    if name in names:
                        break
                    names.add(name)
        return names

    def _store(self, row: Sequence[Any], events: Sequence[Any]) -> None:
        events = [*events, *_endings(row, events)]
        questions = sum(event[1] == "user_message" for event in events)
        last = max([row[10], *(event[0] for event in events)])
        with self._target:
            self._target.execute(_INTO, (*row[:9], questions, last, *row[11:]))
            every = ((row[0], *event) for event in events)
            self._target.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", every)
        with suppress(sqlite3.Error), self._target:  # an earlier version had none
            insert_files(self._target, row[0], self._source.execute(_FILES, (row[0],)))


def _guessed(session: str, events: Sequence[Any], owner: str) -> tuple[Any, ...]:
    """Makes the row of a lost session from its events."""
    said: dict[str, Any] = {}
    for _, kind, text, *_ in events:
        if kind in ("user_message", "run_started"):
            said = {**json.loads(text), **said}
    title, times = str(said.get("text", ""))[:60], [event[3] for event in events] or [0.0]
    words = (said.get("model") or "", said.get("mode") or "ask", said.get("search") or "off", "off")
    return (session, title, *words, None, min(times), max(times), 0, 0, "{}", 0, owner)


def _endings(session: Sequence[Any], events: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields a `run_finished` for each run without one: no process can resume a run with gaps."""
    begun: dict[str, Any] = {}
    for _, kind, text, *_ in events:
        if kind == "run_started":
            data = json.loads(text)
            begun[str(data.get("run_id"))] = data.get("model")
        elif kind == "run_finished":
            begun.pop(str(json.loads(text).get("run_id")), None)
    for number, (run, model) in enumerate(begun.items(), 1):
        end: dict[str, Any] = {"run_id": run, "reason": "incomplete", "answer": ""}
        end |= {"citations": [], "sources": []}
        end |= {"session_id": session[0], "search_path": session[5], "model": model}
        end |= {"usage": Usage().as_dict(), "error": _LOST}
        yield events[-1][0] + number, "run_finished", json.dumps(end), events[-1][3], None


class ReadOnlyFile:
    """A store that can only be read, because of `trouble`; `partial` are the sessions with gaps."""

    def __init__(self, path: Path, steps: Steps, trouble: StoreError) -> None:
        """Raises `trouble` when nothing can be read either."""
        self._path = path
        self._seen = _state(path)
        self._scratch: Path | None = None
        self.trouble = trouble
        self.partial: frozenset[str] = frozenset()
        self.saved: Path | None = None  # a whole store of what could be saved
        if not os.path.isfile(path) or not self._seen[1]:
            raise trouble
        try:
            damaged = trouble.code == "damaged"
            self._address = self._salvaged(steps) if damaged else self._readable(steps)
        except (OSError, sqlite3.Error, StoreError):
            self.close()
            raise trouble from None

    def _copied(self, sides: Sequence[str]) -> Path:
        self._scratch = self._scratch or Path(tempfile.mkdtemp(prefix="searchloop-"))
        for side in sides:
            if os.path.isfile(f"{self._path}{side}"):
                shutil.copyfile(f"{self._path}{side}", self._scratch / f"copy{side}")
        return self._scratch / "copy"

    def _salvaged(self, steps: Steps) -> str:
        broken = self._copied(("", "-wal"))
        self.saved = broken.with_name("saved")
        open_database(self.saved, steps).close()
        with closing(sqlite3.connect(broken)) as source, closing(sqlite3.connect(self.saved)) as db:
            source.text_factory = legible
            with suppress(sqlite3.DatabaseError):  # the next statement says so again
                source.execute("PRAGMA writable_schema = ON")  # accepts a file that was cut off
                source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            work = _Salvage(source, db)
            work.run()
            if db.execute("SELECT 1 FROM sessions").fetchone() is None:
                raise self.trouble
        self.partial = frozenset(work.partial)
        return f"file:{_quoted(self.saved)}"

    def _readable(self, steps: Steps) -> str:
        """Returns the first address that works. See "read-only databases" in SQLite's wal.html."""
        for address in self._ways(steps):
            with suppress(sqlite3.Error), closing(connect(address, uri=True)) as db:
                if db.execute("PRAGMA user_version").fetchone()[0] >= len(steps):
                    return address
        raise self.trouble

    def _ways(self, steps: Steps) -> Iterator[str]:
        place = _quoted(self._path)
        yield f"file:{place}?mode=ro"
        whole = not wal_size(self._path)
        if whole:
            yield f"file:{place}?immutable=1"
        # A copy, to merge a write-ahead log into the file or to migrate an older file.
        copy = self._copied(("",) if whole else ("", "-wal"))
        with suppress(StoreError):  # of a newer version
            open_database(copy, steps).close()
        yield f"file:{_quoted(copy)}"

    def connect(self) -> sqlite3.Connection:
        """Opens a connection to read with. Raises StoreError."""
        with sqlite_errors(self._path):
            return connect(self._address, uri=True)

    def check_changed(self) -> None:
        """Raises the trouble again while a damaged file is unchanged."""
        if self.trouble.code == "damaged" and _state(self._path) == self._seen:
            raise self.trouble

    def report(self) -> list[str]:
        """Describes the damage, a line each."""
        with closing(self.connect()) as db:
            count = db.execute("SELECT count(*) FROM sessions").fetchone()[0]
        gaps = f", {len(self.partial)} of them with gaps" if self.partial else ""
        return [self.trouble.message, f"{count} sessions can be read{gaps}."]

    def close(self) -> None:
        """Removes the copies."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _state(path: Path) -> tuple[int, ...]:
    """Returns inode, size and time of a file; empty when there is no file."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return ()


def _quoted(path: Path) -> str:
    """Escapes a path for a `file:` address."""
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
