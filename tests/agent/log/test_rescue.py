"""A store that is damaged, newer, or closed to us: what can be read is shown, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from searchloop.agent.errors import AgentError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, check, restore
from searchloop.agent.log.events import Event, message_data
from searchloop.agent.types import Message, Usage
from tests.agent.log.test_store import NOTICE
from tests.agent.scripted import code_of
from tests.crash.working import Working

PAGE = 4096
SESSIONS = 6
SAID = message_data(Message("assistant", "At 07:40."), step=1, usage=Usage(), stop_reason="stop")


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


def filled(where: Path | str) -> EventLog:
    """A log of some sessions with thirty turns each."""
    log = EventLog(where)
    for name in range(SESSIONS):
        session = log.create_session(model="m").id
        log.update_session(session, title=f"session {name}")
        for turn in range(30):
            run = {"run_id": f"{name}-{turn}", "model": "m", "mode": "ask", "search": "off"}
            question = ("user_message", {"text": f"question {turn} " * 20})
            end = ("run_finished", {"run_id": run["run_id"]})
            log.append(session, [question, ("run_started", run), ("message", SAID), end])
    return log


@pytest.fixture(scope="module")
def whole() -> bytes:
    """The file of such a log, closed in peace."""
    with tempfile.TemporaryDirectory() as folder:
        filled(Path(folder) / "s.sqlite3").close()
        return (Path(folder) / "s.sqlite3").read_bytes()


def page(number: int) -> Callable[[bytes], bytes]:
    """Something else on a page."""
    start, end = (number - 1) * PAGE, number * PAGE
    return lambda data: data[:start] + b"\xff" * PAGE + data[end:]


def leaf(data: bytes, words: bytes) -> Callable[[bytes], bytes]:
    """Something else on the first leaf of a tree that holds these words."""
    starts = range(0, len(data), PAGE)  # a row may stand in the tree above the leaves as well
    found = next(at for at in starts if data[at] == 10 and words in data[at : at + PAGE])
    return page(1 + found // PAGE)


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    # what became of the file, and how many sessions are whole all the same
    "first page": (page(1), 0),
    "sessions": (page(2), 0),
    "index of sessions": (page(4), SESSIONS),
    "in the middle": (lambda data: leaf(data, b'"3-15"')(data), SESSIONS - 2),
    "cut off": (lambda data: data[: len(data) // 2], 0),
    "cut off in a page": (lambda data: data[:-1000], SESSIONS - 3),
}


# Only writing needs such a page; the last one of a file may be one of them.
FOR_WRITING = ("index of sessions", "cut off in a page")
LOST = ("first page", "sessions", "cut off")  # only a copy helps


@pytest.mark.parametrize("name", DAMAGE)
def test_what_can_be_read_comes_back(tmp_path: Path, whole: bytes, name: str) -> None:
    """A damaged store says so in words; `check` says what is wrong; `restore` brings back what
    there is, keeps the file, and the chat goes on.
    """
    damaged, unharmed = DAMAGE[name]
    path = tmp_path / "sessions.sqlite3"
    path.write_bytes(damaged(whole))
    assert used(path, Counter())[1] or name in FOR_WRITING
    assert check(path)
    found = restore(path, None)
    assert found.saved == (0 if name in LOST else SESSIONS)
    assert found.gaps <= SESSIONS - unharmed
    assert found.aside is not None
    assert found.aside.exists()
    assert check(path) == []
    if name in LOST:
        return
    with closing(EventLog(path)) as log:
        listed = [s.id for s in log.sessions()]
        read = [len([e for e in log.read(s) if e.type == "user_message"]) for s in listed]
    assert sum(count == 30 for count in read) >= unharmed
    assert sum(read) > 30
    asyncio.run(goes_on(tmp_path, listed[0]))


async def goes_on(home: Path, session: str) -> None:
    """The next question is answered."""
    machine = Working(home, session=session)
    machine.log.update_session(session, model="scripted:one")
    await machine.goes_on()
    await machine.close()


def hurt(whole: bytes, luck: random.Random, n: int) -> bytes:
    """The file after a bit, a byte or some bytes have changed, or with its end cut off."""
    if n % 4 == 3:
        return whole[: luck.randrange(len(whole))]
    data = bytearray(whole)
    for _ in range((1, 1, luck.choice((5, 20, 100)))[n % 4]):
        bits = 1 << luck.randrange(8) if n % 4 == 0 else luck.randrange(1, 256)
        data[luck.randrange(len(data))] ^= bits
    return bytes(data)


Found = dict[tuple[str, int], Event]


def used(path: Path, refused: Counter[str]) -> tuple[Found, bool]:
    """What can be read, and whether anything was said of damage; then something is written."""
    read: Found = {}
    try:
        with closing(EventLog(path)) as log:
            for session in log.sessions():
                read |= {(session.id, e.seq): e for e in log.read(session.id)}
            log.find("question")
            for session in log.sessions():
                log.append(session.id, [NOTICE])
    except AgentError as error:
        refused[error.code] += 1
        return read, True
    return read, False


def checked(path: Path) -> list[str]:
    """What `check` says, or why it cannot."""
    try:
        return check(path)
    except AgentError as error:
        return [error.code]


def mended(path: Path) -> str:
    """Restores what can be; the code of why not: a wrong count is no damage."""
    try:
        restore(path, None)
    except AgentError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("seed", "times"),
    [(7, 20), *(pytest.param(n, 200, marks=pytest.mark.torture) for n in range(10))],
)
def test_any_damage_is_survived(tmp_path: Path, whole: bytes, seed: int, times: int) -> None:
    """Bytes changed or cut off anywhere: a sentence at most. What is shown is what was written, or
    marked, or the store says that it is damaged; what is missing without a word is found by
    `check`; and what `restore` makes of it is whole.
    """
    luck, refused = random.Random(seed), Counter[str]()
    path = tmp_path / "s.sqlite3"
    path.write_bytes(whole)
    written, _ = used(path, refused)
    for n in range(times):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(hurt(whole, luck, n))
        read, told = used(path, refused)
        other = [event for key, event in read.items() if written.get(key) != event]
        assert told or all(event.data.get("code") == "damaged" for event in other)
        said = checked(path)
        assert said or (not other and read.keys() == written.keys())
        if said:
            refusal = mended(path)
            assert refusal in ("not_damaged", "newer_store") or checked(path) == []
    assert sum(refused.values()) > times / 4
    assert set(refused) <= {"damaged", "newer_store", "no_session"}


def test_damage_that_comes_while_it_is_used(tmp_path: Path, whole: bytes) -> None:
    """From the first sign of it on nothing is written, what can be read is read, and all is well
    again as soon as the file is: nothing has to be started anew.
    """
    path = tmp_path / "sessions.sqlite3"
    path.write_bytes(whole)
    log = EventLog(path)
    session = log.sessions()[0].id
    path.write_bytes(DAMAGE["index of sessions"][0](whole))
    assert len(log.sessions()) == SESSIONS
    assert len(log.read(session)) == 120
    assert code_of(lambda: log.append(session, [NOTICE])) == "damaged"
    assert restore(path, None).saved == SESSIONS
    assert log.append(session, [NOTICE])[0].seq == 121
    assert log.trouble is None
    log.close()


def test_the_file_is_taken_away_while_it_is_used(tmp_path: Path, whole: bytes) -> None:
    """Nothing is acknowledged that would be lost with the process: it is refused until the file is
    back, or written to the one that stands in its place; meanwhile all can be read.
    """
    path, away = tmp_path / "s.sqlite3", tmp_path / "away"
    path.write_bytes(whole)
    with closing(EventLog(path)) as log:
        session = log.sessions()[0].id
        log.append(session, [NOTICE])
        away.mkdir()
        for file in list(tmp_path.glob("s.sqlite3*")):
            file.rename(away / file.name)
        assert code_of(lambda: log.append(session, [NOTICE])) == "file_gone"
        assert code_of(lambda: log.create_session(model="m")) == "file_gone"
        assert len(log.read(session)) == 121
        path.mkdir()
        assert code_of(lambda: log.append(session, [NOTICE])) == "not_a_file"
        path.rmdir()
        for file in list(away.iterdir()):
            file.rename(tmp_path / file.name)
        assert log.append(session, [NOTICE])[0].seq == 122
        for file in list(tmp_path.glob("s.sqlite3*")):
            file.rename(away / file.name)
        with closing(EventLog(tmp_path / "new")) as other:
            fresh = other.create_session(model="m").id
        (tmp_path / "new").rename(path)
        assert log.append(fresh, [NOTICE])[0].seq == 1
        assert [s.id for s in log.sessions()] == [fresh]
    with closing(EventLog(path)) as log:
        assert len(log.read(fresh)) == 1


def test_a_copy_fills_the_gaps(tmp_path: Path, whole: bytes) -> None:
    """What is damaged comes from the copy, what is newer than the copy from the damaged file."""
    path = tmp_path / "sessions.sqlite3"
    path.write_bytes(whole)
    backup(path, tmp_path / "copy")
    log = EventLog(path)
    later = log.create_session(model="m").id
    log.append(later, [("user_message", {"text": "after the copy"})])
    log.close()
    data = path.read_bytes()
    path.write_bytes(leaf(data, b'"3-15"')(data))
    found = restore(path, tmp_path / "copy")
    assert (found.saved, found.done, found.gaps) == (SESSIONS, 1, 0)
    with closing(EventLog(path)) as log:
        assert [e.data["text"] for e in log.read(later)] == ["after the copy"]
        assert all(len(log.read(s.id)) in (1, 120) for s in log.sessions())


def test_an_empty_file_beside_a_full_log_is_no_new_store(tmp_path: Path) -> None:
    """SQLite would discard the log of changes: it is left alone, and the store called damaged."""
    path, log = tmp_path / "s.sqlite3", Path(f"{tmp_path / 's.sqlite3'}-wal")
    path.write_bytes(b"")
    log.write_bytes(b"newest events")
    assert code_of(lambda: EventLog(path)) == "damaged"
    assert log.read_bytes() == b"newest events"


def test_a_closed_folder_can_be_read(whole: bytes) -> None:
    """All is shown; writing says why not, and works when the folder is open."""
    home = Path(tempfile.mkdtemp(prefix="closed-"))
    try:
        path = home / "s.sqlite3"
        path.write_bytes(whole)
        for file in home.iterdir():
            file.chmod(0o444)
        home.chmod(0o555)
        with as_a_user():
            log = EventLog(path)
            listed = log.sessions()
            assert len(listed) == SESSIONS
            assert max(len(log.read(s.id)) for s in listed) == 120
            assert code_of(lambda: log.append(listed[0].id, [NOTICE])) == "read_only"
            assert code_of(lambda: log.create_session(model="m")) == "read_only"
        home.chmod(0o777)
        for file in home.iterdir():
            file.chmod(0o666)
            if os.geteuid() == 0:
                os.chown(file, 65534, 65534)
        with as_a_user():
            assert log.append(listed[-1].id, [NOTICE])
            assert log.trouble is None
            log.close()
    finally:
        shutil.rmtree(home)


def newer(where: Path | str) -> None:
    """A later version was here."""
    if isinstance(where, Path):
        with closing(sqlite3.connect(where)) as db:
            db.execute("PRAGMA user_version = 99")
        return
    import psycopg

    with psycopg.connect(where) as db:
        db.execute("UPDATE searchloop_schema SET version = 99")


def test_a_newer_store_can_be_read_and_is_left_alone(store: Path | str) -> None:
    """What we know of it is shown; to write, the newer program is needed."""
    filled(store).close()
    newer(store)
    before = store.read_bytes() if isinstance(store, Path) else b""
    log = EventLog(store)
    listed = log.sessions()
    assert len(listed) == SESSIONS
    assert len(log.read(listed[0].id)) == 120
    for write in (
        lambda: log.append(listed[0].id, [NOTICE]),
        lambda: log.leases.claim(listed[0].id, "run", "us"),
        lambda: log.delete_session(listed[0].id),
    ):
        assert code_of(write) == "newer_store"
    log.close()
    if isinstance(store, Path):
        assert store.read_bytes() == before
