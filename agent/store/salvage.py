"""What can still be read of a damaged file, brought into a new one. The old one is not touched.

A page that is damaged hides the rows on it, not those behind it: reading goes on after the gap.
https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import json
import mmap
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.checksum import data_in
from agent.store.carving import PAGE, carve
from agent.store.opening import legible
from agent.types import Usage

_MAGIC = b"SQLite format 3\0"
_FAR = 1 << 31  # beyond any number that a row has
_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, last_seq,"
    " settings, fence"
)
_PLACES = ", ".join("?" * 13)
_SESSIONS = f"SELECT rowid, {_SESSION} FROM sessions NOT INDEXED WHERE rowid > ? ORDER BY rowid"
_EVENTS = "SELECT seq, type, data, at, %s FROM events WHERE session = ? AND seq > ? ORDER BY seq"
_LOST = {
    "code": "damaged",
    "message": "The end of this answer was in a part of the store that cannot be read.",
    "remedy": "Send the question again.",
}


def salvage(path: Path, target: Path) -> frozenset[str]:
    """Fills `target`, a new store, with what `path` still holds.

    Returns the sessions of which something is missing. Raises OSError when there is no room.
    """
    broken = target.with_name("broken")
    for side in ("", "-wal"):
        if Path(f"{path}{side}").is_file():
            shutil.copyfile(f"{path}{side}", f"{broken}{side}")
    _mend_head(broken, target)
    with closing(sqlite3.connect(broken)) as source, closing(sqlite3.connect(target)) as db:
        source.text_factory = legible
        with suppress(sqlite3.DatabaseError):  # what is asked next says so again
            source.execute("PRAGMA writable_schema = ON")  # takes a file that was cut off
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        work = _Salvage(source, db, broken)
        work.run()
        db.commit()
    for side in ("", "-wal", "-shm"):
        Path(f"{broken}{side}").unlink(missing_ok=True)
    return frozenset(work.partial)


def _mend_head(broken: Path, fresh: Path) -> None:
    """A first page that is none any more, or names other tables, becomes that of a new store.

    The tables of every store that was made by this version begin on the same pages.
    """
    with broken.open("r+b") as file:
        head = file.read(PAGE)
        whole = head.startswith(_MAGIC) and len(head) == PAGE and head[100] in (5, 13)
        if whole and _names_ours(broken):
            return
        with fresh.open("rb") as made:
            page = bytearray(made.read(PAGE))
        page[28:32] = (broken.stat().st_size // PAGE).to_bytes(4, "big")  # how many there are
        page[32:40] = bytes(8)  # none of them free
        file.seek(0)
        file.write(page)


def _names_ours(broken: Path) -> bool:
    """Whether the tables that matter are found in it; they may be damaged all the same."""
    with closing(sqlite3.connect(broken)) as db, suppress(sqlite3.Error):
        db.execute("PRAGMA writable_schema = ON")
        for table in ("sessions", "events"):
            db.execute(f"SELECT count(*) FROM {table} WHERE 0").fetchone()
        return True
    return False


class _Salvage:
    """The rows of one file on their way to another. `partial` are the sessions with gaps."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, file: Path) -> None:
        self._source = source
        self._target = target
        self._file = file
        self._gap = False
        self.partial: set[str] = set()

    def run(self) -> None:
        """All sessions there are, or of which there are events."""
        rows = {row[1]: row[1:] for row in self._found(_SESSIONS, (), _FAR)}
        query = _EVENTS % self._checksum()
        for session in {*rows, *self._named()}:
            self._gap = False
            events = list(self._found(query, (session,), _FAR))
            if self._gap:
                events = sorted({row[0]: row for row in (*self._loose[session], *events)}.values())
            kept = [event for event in events if _whole(session, event)]
            row = rows.get(session) or _guessed(session, kept)
            if self._gap or len(kept) < len(events) or session not in rows:
                self.partial.add(session)
            with suppress(sqlite3.Error):  # a row that holds what no row may
                self._store(row, kept)

    def _found(self, query: str, values: tuple[str, ...], last: int) -> Iterator[Any]:
        """The rows after number 0; their first column is their number."""
        at, step = 0, 1
        while at <= last:
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

    @cached_property
    def _loose(self) -> Mapping[str, Sequence[Any]]:
        """What stands on any page, by session."""
        rows: defaultdict[str, list[Any]] = defaultdict(list)
        with (
            self._file.open("rb") as file,
            suppress(ValueError),  # the file is empty
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for session, row in carve(data):
                rows[session].append(row)
        return rows

    def _checksum(self) -> str:
        """SQL for the checksum of an event: an earlier version kept none."""
        with suppress(sqlite3.Error):
            self._source.execute("SELECT checksum FROM events LIMIT 0")
            return "checksum"
        return "NULL"

    def _named(self) -> set[str]:
        """The sessions of which there are events: from both ends, up to where it cannot be read."""
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
        session, events = row[0], [*events, *_endings(row, events)]
        questions = sum(event[1] == "user_message" for event in events)
        last = max([row[10], *(event[0] for event in events)])
        with self._target:
            self._target.execute(
                f"INSERT OR IGNORE INTO sessions ({_SESSION}) VALUES ({_PLACES})",
                (*row[:9], questions, last, *row[11:]),
            )
            self._target.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                ((session, *event) for event in events),
            )


def _whole(session: str, event: Sequence[Any]) -> bool:
    """Whether an event is what was written."""
    return data_in(session, *event) is not None


def _guessed(session: str, events: Sequence[Any]) -> tuple[Any, ...]:
    """The row of a session that is lost while events of it are there."""
    said: dict[str, Any] = {}
    for _, kind, text, *_ in events:
        if kind in ("user_message", "run_started"):
            said = {**json.loads(text), **said}
    times = [event[3] for event in events] or [0.0]
    title = str(said.get("text", ""))[:60]
    words = (said.get("model") or "", said.get("mode") or "ask", said.get("search") or "off", "off")
    return (session, title, *words, None, min(times), max(times), 0, 0, "{}", 0)


def _endings(session: Sequence[Any], events: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The ends of runs that have none: nobody can go on with what has gaps."""
    begun: dict[str, Any] = {}
    for _, kind, text, *_ in events:
        if kind in ("run_started", "run_finished"):
            data = json.loads(text)
            run = str(data.get("run_id"))
            if kind == "run_started":
                begun[run] = data.get("model")
            else:
                begun.pop(run, None)
    for number, (run, model) in enumerate(begun.items(), 1):
        end = {
            "run_id": run,
            "session_id": session[0],
            "reason": "incomplete",
            "answer": "",
            "citations": [],
            "sources": [],
            "usage": Usage().as_dict(),
            "search_path": session[5],
            "model": model,
            "error": _LOST,
        }
        yield events[-1][0] + number, "run_finished", json.dumps(end), events[-1][3], None
