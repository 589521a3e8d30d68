"""The store's file: private, versioned, and its faults in words that say who must act."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from searchloop.agent.errors import Conflict, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check, restore
from tests.agent.scripted import no_room

NOTICE = ("notice", {"text": "x" * 2000})


@contextmanager
def as_a_user() -> Iterator[None]:
    """For the superuser, to whom no file is closed: somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def code_of(action: Callable[[], object]) -> str:
    """The code of the StoreError that this raises; it has a sentence and a remedy."""
    with pytest.raises(StoreError) as caught:
        action()
    assert caught.value.message
    assert caught.value.remedy
    return caught.value.code


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    """Folder 0700, file and side files 0600, whatever the umask says."""
    old = os.umask(0)
    try:
        home = tmp_path / "new" / "home"
        log = EventLog(home / "s.sqlite3")
        log.create_session(model="m")
    finally:
        os.umask(old)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    files = sorted(home.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    log.close()


def test_settings_are_merged_key_by_key(tmp_path: Path) -> None:
    """A change names what it changes; None takes a setting away; the rest stays."""
    log = EventLog(tmp_path / "s.sqlite3")
    session = log.create_session(model="m", settings={"agent": "editor", "empty": None})
    assert session.settings == {"agent": "editor"}
    assert session.as_dict()["settings"] == {"agent": "editor"}
    log.update_session(session.id, {"tools": ["a", "b"]}, title="T")
    changed = log.update_session(session.id, {"agent": None, "deep": {"x": [1, "é"]}})
    assert changed.settings == {"tools": ["a", "b"], "deep": {"x": [1, "é"]}}
    assert changed.title == "T"
    log.close()


def test_a_damaged_event_hides_nothing_else(tmp_path: Path) -> None:
    """Data that is no JSON any more becomes a notice; the session can be read and used."""
    path = tmp_path / "s.sqlite3"
    log = EventLog(path)
    session = log.create_session(model="m").id
    log.append(session, [NOTICE, NOTICE])
    db = sqlite3.connect(path)
    db.execute("""UPDATE events SET data = '{"text": "x' WHERE seq = 1""")
    db.execute("UPDATE sessions SET settings = '['")
    db.commit()
    db.close()
    assert [event.data["text" if n else "code"] for n, event in enumerate(log.read(session))] == [
        "damaged",
        NOTICE[1]["text"],
    ]
    assert log.sessions()[0].settings == {}
    assert log.append(session, [NOTICE])[0].seq == 3
    log.close()
    assert check(path) == [f"session {session}: event 1 is damaged"]
    assert restore(path, None).gaps == 1
    assert check(path) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder of somebody else, and a path through a file, are refused in words."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with as_a_user():
        assert code_of(lambda: EventLog(closed / "home" / "s.sqlite3")) == "read_only"
    (tmp_path / "file").write_text("x")
    assert code_of(lambda: EventLog(tmp_path / "file" / "s.sqlite3")) == "not_a_folder"
    assert code_of(lambda: EventLog(tmp_path)) == "not_a_file"


def test_a_full_disk_and_room_again(tmp_path: Path) -> None:
    """An append that found no room stores nothing; with room again all goes on, without restart."""
    log = EventLog(tmp_path / "s.sqlite3")
    session = log.create_session(model="m").id
    kept = log.append(session, [NOTICE], durable=True)
    with no_room(tmp_path / "s.sqlite3-wal"):
        for durable in (False, True, False):
            with pytest.raises(StoreError):
                log.append(session, [NOTICE] * 40, durable=durable)
        assert log.read(session) == kept
    assert [e.seq for e in log.append(session, [NOTICE] * 40)] == list(range(2, 42))
    log.close()


def test_many_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    """Twelve openers of a file that is not there yet: all succeed, none breaks another's."""
    failed: list[Exception] = []

    def opens() -> None:
        try:
            log = EventLog(tmp_path / "s.sqlite3")
            log.create_session(model="m")
            log.close()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=opens) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    log = EventLog(tmp_path / "s.sqlite3")
    assert len(log.sessions()) == 12
    log.close()


ODD_IDS = ("a\0b", "\0", "\ud800", "a\ud800\0", "x" * 9000, "' OR '1'='1", "%", "")
UNKNOWN = {
    "read": lambda log, odd: log.read(odd) == [],
    "last": lambda log, odd: log.last_seq(odd) is None,
    "under way": lambda log, odd: not log.under_way(odd),
    "leases": lambda log, odd: not odd or log.leases.held(odd) == [],
    "stop": lambda log, odd: not log.leases.ask_to_stop(odd),
    "delete": lambda log, odd: log.delete_session(odd) is None,
    "search": lambda log, odd: log.find(odd or "nothing") == {} or odd == "%",
}
REFUSED = {
    "session": lambda log, odd: log.session(odd),
    "append": lambda log, odd: log.append(odd, [("notice", {"text": odd})]),
    "change": lambda log, odd: log.update_session(odd, {"a": 1}, title=odd),
    "claim": lambda log, odd: log.leases.claim(odd, odd, odd),
    "newest": lambda log, odd: log.last_event(odd),
}


@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: ascii(odd[:9]))
def test_no_session_has_an_odd_id(store: Path | str, odd: str) -> None:
    """Whatever comes as an id is one that does not exist: nothing fails, and nothing is changed."""
    with closing(EventLog(store)) as log:
        there = log.create_session(model="m:x")
        for name, same in UNKNOWN.items():
            assert same(log, odd), name
        for call in REFUSED.values():
            with pytest.raises(Conflict, match="no session"):
                call(log, odd)
        assert log.sessions() == [there]
        assert log.trouble is None
