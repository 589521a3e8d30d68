"""Backs up, restores and checks a log; a copy is one SQLite file that fits either store."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, get_args

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log.contract import AttachmentStore, Database, rows_of
from searchloop.agent.log.events import data_in
from searchloop.agent.log.log import open_store
from searchloop.agent.log.projects import copy_programs, copy_projects
from searchloop.agent.log.session import CHOSEN_BY, FAR, chosen_by
from searchloop.agent.log.sqlite import sqlite_errors
from searchloop.agent.log.sqlite.file import beside, check_closed, set_aside
from searchloop.agent.settings.private_files import sync_folder
from searchloop.agent.text import object_in, plain, to_json
from searchloop.agent.types import SEARCHES, Mode, Usage

_SESSION = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    f"last_seq, settings, owner, {', '.join(CHOSEN_BY)}"
)
_EVENT = "seq, type, data, at, checksum"
_PAGE = 1000
_MOST = 1 << 31  # what a count and a number of an event may be
_DAMAGED = " is damaged"
_INTO = f"INSERT INTO sessions ({_SESSION}) VALUES ({', '.join('?' * 18)})"
_AGAIN = "Name another, or make one with `searchloop sessions backup FILE`."


def backup(where: Path | str, target: Path) -> int:
    """Copies the log to a new file; returns the number of sessions. Raises AgentError."""
    if target.exists():
        raise ConfigError("file_exists", f"{target} exists.", "Name a file that does not.")
    with beside(target) as half:
        with closing(open_store(where)) as ours, closing(open_store(half)) as copy:
            done = len([_copied(ours, copy, row) for row in _sessions(ours)])
            copy_projects(ours, copy)
            copy_programs(ours, copy)
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

    The damaged store gets another name first. The copy's version of a session with gaps wins.
    Raises ConfigError, StoreError.
    """
    if source is not None and not source.is_file():
        raise ConfigError("no_file", f"There is no file {source}.", "Name a copy.")
    with _opened(source) if source else nullcontext() as copy:
        with sqlite_errors(where):
            aside = set_aside(Path(where)) if _damaged(where) else None
        if not (copy or aside):
            words = "The sessions are whole: there is nothing to restore."
            remedy = "Name a copy, or a damaged store: searchloop sessions restore FILE"
            raise ConfigError("not_damaged", words, remedy)
        with closing(open_store(where)) as ours:
            better = {row[0] for row in _sessions(copy)} if copy else set[str]()
            saved, _, gaps = _legible(aside, ours, better) if aside else (0, 0, 0)
            done, kept, more = _copies(copy, ours) if copy else (0, 0, 0)
            return Restored(done, kept, saved, gaps + more, aside)


def _damaged(where: Path | str) -> bool:
    """Returns True for a damaged store. Raises StoreError for any other trouble."""
    try:
        with closing(open_store(where)) as db:
            trouble = db.trouble
    except StoreError as error:
        trouble = error
    if trouble is not None and trouble.code != "damaged":
        raise trouble
    return trouble is not None or any(_DAMAGED in line for line in check(where))


def _legible(aside: Path, ours: Database, better: Container[str]) -> tuple[int, int, int]:
    """Copies what can be read of a damaged store, as `_copies` does."""
    try:
        with _opened(aside) as rest:
            return _copies(rest, ours, better)
    except (ConfigError, StoreError) as error:
        if error.code not in ("damaged", "no_copy"):
            raise
        return 0, 0, 0


@contextmanager
def _opened(source: Path) -> Iterator[Database]:
    """Opens a file of a store that may be in use, damaged or of an earlier version: a copy of it.

    Raises StoreError, and ConfigError for a file that is no store.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for side in ("", "-wal"):
            if Path(f"{source}{side}").is_file():
                shutil.copy(f"{source}{side}", f"{copy}{side}")
        _check_copy(copy, source)
        try:
            with closing(open_store(copy)) as db:
                yield db
        except StoreError as error:
            if error.code != "damaged":
                raise
            why = f"{source} cannot be read ({error.__cause__ or error})."
            raise StoreError("damaged", why, _AGAIN) from error


def _check_copy(copy: Path, source: Path) -> None:
    """Raises ConfigError when `copy`, read from `source`, is no copy."""
    try:
        with closing(sqlite3.connect(copy)) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # damaged: opening it says so
        return
    if "sessions" not in tables:
        raise ConfigError("no_copy", f"{source} is no copy of sessions.", _AGAIN)


def _copies(
    source: Database, target: Database, better: Container[str] = ()
) -> tuple[int, int, int]:
    """Copies the sessions that `target` lacks; returns (copied, present already, with gaps).

    Leaves out those with gaps that somebody has `better`.
    """
    copy_projects(source, target)
    copy_programs(source, target)
    known = {row[0] for row in _sessions(target)}
    wanted = [row for row in _sessions(source) if isinstance(row[0], str)]
    fresh = [row for row in wanted if row[0] not in known]
    whole = [_copied(source, target, row, better) for row in fresh]
    return len(fresh) - whole.count(None), len(wanted) - len(fresh), whole.count(False)


def _legible_events(db: Database, session: str) -> tuple[list[Sequence[Any]], bool]:
    """Returns the events of a session that can be read, up to a damaged page, and if it is all."""
    kept, whole = list[Sequence[Any]](), True
    try:
        for event in _events(db, session):
            if data_in(session, *event) is not None and 0 < event[0] < _MOST:
                kept.append(event)
            else:
                whole = False
    except StoreError as error:
        if error.code != "damaged":
            raise
        whole = False
    return kept, whole


def check(where: Path | str) -> list[str]:
    """Returns the faults of a log, a line each; empty if it is whole. Raises StoreError."""
    try:
        with closing(open_store(where)) as db:
            wrong = [f"the store{_DAMAGED}: {line}" for line in db.check()]
            return wrong or list(_all_wrong(db))
    except StoreError as error:
        if error.code != "damaged":
            raise
        return [error.message]


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
    questions, most = _usable(session)[9:11]
    last = 0
    for event in _events(db, session[0]):
        last, kind = event[0], event[1]
        kinds[kind] += 1
        data = data_in(session[0], *event)
        if data is None:
            yield f"event {last}{_DAMAGED}"
            continue
        if kind == "run_started":
            begun[str(data.get("run_id"))] = last
        elif kind == "run_finished":
            ended[str(data.get("run_id"))] += 1
    if last > most:
        yield f"event {last} is beyond its count of {most}"
    if kinds["user_message"] != questions:
        yield f"{kinds['user_message']} questions, {questions} counted"
    for run, times in ended.items():
        if times > 1:
            yield f"run {run} ended {times} times"
    for run in begun.keys() - ended.keys() - {held}:
        yield f"run {run} never ended"


def _copied(
    source: Database, target: Database, given: Sequence[Any], better: Container[str] = ()
) -> bool | None:
    """Copies what can be read of a session, its runs as ended; returns whether it was whole.

    None: it is not copied, as it is not whole, and somebody has it `better`.
    """
    session = _usable(given)
    kept, whole = _legible_events(source, session[0])
    last = max([session[10], *(event[0] for event in kept[-1:])])
    questions = sum(event[1] == "user_message" for event in kept)
    whole = whole and given[9:11] == (questions, last)
    if not whole and session[0] in better:
        return None
    kept += _endings(session, kept, last)
    last = max([last, *(event[0] for event in kept[-1:])])
    with target.transaction() as db:
        db.execute(_INTO, (*session[:9], questions, last, *session[11:]))
        for event in kept:
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (session[0], *event))
        AttachmentStore(source).copy(session[0], db)
    return whole


def _usable(session: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the row of a session with values that every list and either store can take: somebody
    else may have written the copy."""
    key, title, model, mode, search, path, workspace, *numbers, settings, owner = session[:13]
    given = (title, model, path, workspace, owner)
    title, model, path, workspace, owner = (v if isinstance(v, str) else "" for v in given)
    seconds = [t if isinstance(t, int | float) and 0 <= t < FAR else 0.0 for t in numbers[:2]]
    counts = [n if isinstance(n, int) and 0 <= n < _MOST else 0 for n in numbers[2:]]
    mode = mode if mode in get_args(Mode) else "ask"
    search = search if search in SEARCHES else "off"
    kept = object_in(settings) or {}
    chosen = (to_json(plain(kept)), owner, *chosen_by(kept))
    return (key, title, model, mode, search, path, workspace or None, *seconds, *counts, *chosen)


_LOST = {
    "code": "damaged",
    "message": "The end of this answer was not in the store when it was copied.",
    "remedy": "Send the question again.",
}


def _endings(session: Sequence[Any], events: Sequence[Any], last: int) -> list[tuple[Any, ...]]:
    """Makes a `run_finished` for each run without one: no process resumes a run of a copy."""
    begun: dict[str, Any] = {}
    for _, kind, text, *_ in events:
        if kind == "run_started":
            data = json.loads(text)
            begun[str(data.get("run_id"))] = data.get("model")
        elif kind == "run_finished":
            begun.pop(str(json.loads(text).get("run_id")), None)
    made = []
    for number, (run, model) in enumerate(begun.items(), last + 1):
        end: dict[str, Any] = {"run_id": run, "reason": "incomplete", "answer": ""}
        end |= {"citations": [], "sources": []}
        end |= {"session_id": session[0], "search_path": session[5], "model": model}
        end |= {"usage": Usage().as_dict(), "error": _LOST}
        made.append((number, "run_finished", json.dumps(end), events[-1][3], None))
    return made


def _sessions(db: Database) -> list[Any]:
    return rows_of(db, f"SELECT {_SESSION} FROM sessions ORDER BY created")


def _events(db: Database, session: str) -> Iterator[Any]:
    after = 0
    query = f"SELECT {_EVENT} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := rows_of(db, query, (session, after)):
        yield from rows
        after = rows[-1][0]
