"""Stores of earlier versions, copies of a log, and whether it is whole; on each store."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import Restored, backup, check, restore
from searchloop.agent.log.contract import STEPS, Database, Steps
from searchloop.agent.log.events import messages_from
from searchloop.agent.log.sqlite import SqliteDatabase
from searchloop.render.export import EXPORTS
from tests.postgres import Postgres
from tests.tables import each_row
from tests.waiting import LATE
from tests.wire import Wire

OLD = (
    "INSERT INTO sessions (id, title, model, mode, search, search_path, created, updated,"
    " messages, last_seq, settings) VALUES (?, 'T', 'm', 'ask', 'off', 'off', 1, 2, 0, 1, ?)"
)
ENDED = {"run_id": "r", "reason": "stop", "answer": "A.", "citations": [], "sources": []}
TURN = [
    ("user_message", {"text": "Why?"}),
    ("run_started", {"run_id": "r", "model": "m:x", "mode": "ask", "search_path": "off"}),
    ("run_finished", {**ENDED, "usage": {}, "search_path": "off", "model": "m:x"}),
]
V1 = Path(__file__).with_name("store_v1.sql")


def first_version(path: Path) -> None:
    """Makes a store as version 1 left it."""
    db = sqlite3.connect(path)
    db.executescript(V1.read_text("utf-8"))
    db.close()


def filled(where: Path | str) -> EventLog:
    """A log with two sessions."""
    log = EventLog(where)
    for name in ("one", "two"):
        session = log.create_session(model="m", settings={"agent": name}).id
        log.update_session(session, title=name)
        log.append(session, [("user_message", {"text": f"{name} \ud83d\x00"})], durable=True)
        log.append(session, [("run_started", {"run_id": name}), ("run_finished", {"run_id": name})])
        log.append(session, [("text_delta", {"text": "scaffolding"})])
    return log


def told(log: EventLog) -> list[object]:
    """All that a log holds but scaffolding."""
    sessions = sorted(log.sessions(), key=lambda s: s.title)
    return [(s, [e for e in log.read(s.id) if not e.type.endswith("delta")]) for s in sessions]


def test_a_store_of_version_1_opens(tmp_path: Path) -> None:
    """Every event is there, numbers and times unchanged, and the half answer is where it was."""
    first_version(tmp_path / "sessions.sqlite3")
    db = sqlite3.connect(tmp_path / "sessions.sqlite3")
    before = db.execute("SELECT * FROM events ORDER BY session, seq").fetchall()
    db.close()
    log = EventLog(tmp_path / "sessions.sqlite3")
    events = [(s, e) for s in ("half", "kept") for e in log.read(s)]
    assert [(s, e.seq, e.type, e.at) for s, e in events] == [(*r[:3], r[4]) for r in before]
    assert log.session("kept").title == "When is high water?"
    log.chat_search.moment = LATE  # which a slow machine may need
    assert list(log.find("½")) == ["kept"]
    log.close()
    assert check(tmp_path / "sessions.sqlite3") == []


@pytest.mark.parametrize("version", range(2, len(STEPS)))
def test_a_store_of_an_earlier_schema_opens(tmp_path: Path, version: int) -> None:
    """What is in it is shown, without a checksum too; what comes is checked, and all is whole."""
    path = tmp_path / "s.sqlite3"
    with closing(SqliteDatabase(path, STEPS[:version])) as db, db.transaction() as old:
        old.execute(OLD, ("a", '{"agent":"editor"}'))
        old.execute(
            "INSERT INTO events (session, seq, type, data, at) VALUES ('a', 1, 'x', '{}', 1)"
        )
    with closing(EventLog(path)) as log:
        [kept] = log.sessions(archived=False)
        assert (kept.title, kept.updated, kept.settings) == ("T", 2, {"agent": "editor"})
        log.append("a", [("notice", {"code": "x"})])
        assert [e.type for e in log.read("a")] == ["x", "notice"]
        assert log.projects.all() == []
    assert check(path) == []


def test_settings_of_an_earlier_schema_choose_sessions(store: Path | str) -> None:
    """Archived, pinned, temporary and unnamed chats, and those of a project, are still found so."""
    kinds = ("archived", "pinned", "temporary", "provisional")
    with closing(older(store, STEPS[:8])) as db, db.transaction() as old:
        old.execute("INSERT INTO projects VALUES ('pro', '', 'House', '{}', 1, 1)")
        old.execute(OLD, ("in", '{"project":"pro","tools":["a"]}'))
        for kind in kinds:
            old.execute(OLD, (kind, f'{{"{kind}":true}}'))
    with closing(EventLog(store)) as log:
        assert [s.id for s in log.sessions(archived=True)] == ["archived"]
        assert [s.id for s in log.sessions(project="pro")] == ["in"]
        assert log.projects.get("pro").chats == log.projects.archived() == 1
        assert log.left_over(3600) == ["temporary"]
        newer = log.create_session(model="m").id
        assert [s.id for s in log.sessions(limit=1)] == [newer, "pinned"]
        log.append("pinned", [("user_message", {"text": "now the newest"})])
        assert [s.id for s in log.sessions(limit=1)] == ["pinned"]  # never twice
        log.name_session("provisional", "Named", {})
        assert log.session("provisional").title == "Named"
        log.update_session("archived", {"archived": None, "project": "pro"})
        assert log.sessions(archived=True) == []
        assert log.projects.get("pro").chats == 2


def older(where: Path | str, steps: Steps) -> Database:
    """A store as an earlier version made it."""
    if isinstance(where, Path):
        return SqliteDatabase(where, steps)
    from searchloop.agent.log.postgres import PostgresDatabase

    return PostgresDatabase(where, steps)


def test_a_copy_holds_all_and_comes_back(store: Path | str, tmp_path: Path) -> None:
    """Backed up while open, brought back into a new store of either kind: the same, to the byte."""
    log = filled(store)
    assert backup(store, tmp_path / "copy") == 2
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == ["copy"]
    before = told(log)
    gone = log.sessions()[0].id
    log.delete_session(gone)
    assert restore(store, tmp_path / "copy") == Restored(done=1, kept=1)
    assert told(log) == before
    assert restore(tmp_path / "new" / "s.sqlite3", tmp_path / "copy") == Restored(done=2)
    other = EventLog(tmp_path / "new" / "s.sqlite3")
    assert told(other) == before
    other.append(gone, [("user_message", {"text": "and on"})])
    other.close()
    log.close()
    assert check(store) == []


def test_what_is_no_copy_is_refused(tmp_path: Path) -> None:
    """A file that is there is not overwritten; what is empty, damaged, somebody else's or not there
    brings nothing back, and that is said.
    """
    filled(tmp_path / "s.sqlite3").close()
    (tmp_path / "damaged").write_text("mine" * 400)
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "foreign")) as db:
        db.execute("CREATE TABLE holidays (day TEXT)")
    codes = {"empty": "no_copy", "foreign": "no_copy", "damaged": "damaged", "none": "no_file"}
    for name, code in codes.items():
        with pytest.raises((ConfigError, StoreError)) as caught:
            restore(tmp_path / "s.sqlite3", tmp_path / name)
        assert caught.value.code == code
    with pytest.raises(ConfigError):
        backup(tmp_path / "s.sqlite3", tmp_path / "damaged")
    assert (tmp_path / "damaged").read_text() == "mine" * 400


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of two chats."""
    home = tmp_path_factory.mktemp("copy")
    with closing(EventLog(home / "a")) as log:
        for _ in range(2):
            log.append(log.create_session(model="m:x").id, TURN)
    backup(home / "a", home / "copy")
    return home / "copy"


@each_row(
    "change",
    [
        *("id = '../../../etc'", "title = zeroblob(9)", "model = x'ff'", "mode = 'root'"),
        *("search = 'x'", "search_path = x'00'", "workspace = x'00'", "created = 'soon'"),
        *("created = 9e999", "updated = -9e999", "messages = -5", "settings = '{'"),
        *("settings = '[1]'", "last_seq = 9e9", "owner = 'bob'", "owner = x'00'", "id = x'00'"),
        *("messages = 'many'", "last_seq = 'x'", "last_seq = -1", "settings = x'00'"),
        *("settings = '{\"a\":NaN}'", "archived = 'yes'", "pinned = 9e30", "project = x'ff'"),
        *("checksum = 'x'", "checksum = 9e30", "type = 'a' || char(0)", "seq = -1"),
        *("data = '[]'", "data = '{}'", "data = x'00'", "data = NULL", "at = 9e999"),
        *("type = 'approval_decided'", "type = x'00'", "seq = seq + 9e12", "session = '..'"),
        *('data = \'{"text":5,"answer":[],"citations":7,"run_id":{},"reason":3}\'',),
        "data = '{\"text\":' || replace(hex(zeroblob(9999)), '0', '[') || '}'",
    ],
)
def test_a_copy_that_somebody_has_changed_breaks_nothing(
    change: str, tmp_path: Path, copy: Path, store: Path | str
) -> None:
    """What comes of it can be listed, read, exported and deleted; and no trigger runs here."""
    home = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    home.mkdir()
    shutil.copy(copy, home)
    with closing(sqlite3.connect(home / "copy")) as db:
        columns = ("data", "at", "type", "seq", "session", "checksum")
        table = "events" if change.split()[0] in columns else ""
        checksum = ", checksum = NULL" if table and "checksum" not in change else ""
        with suppress(sqlite3.IntegrityError):  # what the tables refuse needs no test
            one = f"WHERE {'session' if table else 'id'} = (SELECT min(id) FROM sessions)"
            db.execute(f"UPDATE {table or 'sessions'} SET {change}{checksum} {one}")
        db.execute("CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM events; END")
        db.commit()
    mine = EventLog(store)
    there = mine.create_session(model="m:x")
    restore(store, home / "copy")
    for session in mine.sessions():
        json.dumps(session.as_dict(), allow_nan=False)
        events = mine.read(session.id)
        assert messages_from(events) is not None
        for export in EXPORTS.values():
            assert isinstance(export.write(session, events), str)
        if session != there:
            mine.delete_session(session.id)
    assert mine.sessions() == [there]
    mine.delete_session(there.id)
    mine.close()


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    """A stray event, a wrong count, a damaged event, runs that ended never or twice."""
    log = filled(tmp_path / "s.sqlite3")
    assert check(tmp_path / "s.sqlite3") == []
    one, two = (s.id for s in sorted(log.sessions(), key=lambda s: s.title))
    log.append(one, [("run_finished", {"run_id": "one"}), ("run_started", {"run_id": "lost"})])
    log.append(two, [("run_started", {"run_id": ["odd"]})])
    log.close()
    db = sqlite3.connect(tmp_path / "s.sqlite3")
    db.execute("INSERT INTO events VALUES ('ghost', 1, 'notice', '{}', 0, NULL)")
    db.execute("UPDATE sessions SET messages = 7 WHERE id = ?", (two,))
    db.execute("UPDATE events SET data = '{' WHERE session = ? AND seq = 1", (two,))
    db.commit()
    db.close()
    assert sorted(
        line.replace(one, "1").replace(two, "2") for line in check(tmp_path / "s.sqlite3")
    ) == [
        "events of a session that is gone: ghost",
        "session 1: run lost never ended",
        "session 1: run one ended 2 times",
        "session 2: 1 questions, 7 counted",
        "session 2: event 1 is damaged",
        "session 2: run ['odd'] never ended",
    ]


@pytest.mark.integration
def test_a_move_to_postgresql_that_breaks_off_goes_on(tmp_path: Path, postgres: Postgres) -> None:
    """Cut after any part of it, and run again: each chat is there once, as it was; large ones too.

    A store that a later version has migrated takes nothing, and says so.
    """
    with closing(filled(tmp_path / "s.sqlite3")) as log:
        large = log.create_session(model="m").id
        log.append(large, [("user_message", {"text": "\x00\ud83d\n" * 2_000_000})])
        before = told(log)
    assert backup(tmp_path / "s.sqlite3", tmp_path / "copy") == 3
    url = postgres.url()
    head, _, name = url.rpartition("/")
    with Wire(postgres.port, b"INSERT INTO events") as wire:
        there = f"{head.rpartition(':')[0]}:{wire.port}/{name}"
        EventLog(url).close()
        for event in (2, 5, 3, 4):
            wire.lose(event)
            with pytest.raises(StoreError) as broken:
                restore(there, tmp_path / "copy")
            assert broken.value.remedy
    assert restore(url, tmp_path / "copy") == Restored(done=1, kept=2)
    assert restore(url, tmp_path / "copy") == Restored(kept=3)
    assert check(url) == []
    with closing(EventLog(url)) as log:
        assert told(log) == before
    postgres.tell(f"UPDATE {url.rpartition('%3D')[2]}.searchloop_schema SET version = 99")
    with pytest.raises(StoreError) as caught:
        restore(url, tmp_path / "copy")
    assert caught.value.code == "newer_store"
