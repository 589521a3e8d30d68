"""The store's file: private, versioned, and its faults in words that say who must act.

The event log, on each store: order, transactions, sessions, search, claims.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Batch
from searchloop.agent.log.events import message_data, messages_from
from searchloop.agent.log.leases import LEASE
from searchloop.agent.types import Message, Usage

NOTICE = ("notice", {"text": "x" * 2000})


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


def asked(text: str) -> tuple[str, dict[str, Any]]:
    """A question."""
    return "user_message", {"text": text}


def delta(text: str) -> tuple[str, dict[str, Any]]:
    """A piece of text."""
    return "text_delta", {"text": text}


def message(text: str) -> tuple[str, dict[str, Any]]:
    """A whole message."""
    words = Message("assistant", text)
    return "message", message_data(words, step=1, usage=Usage(), stop_reason="stop")


def test_a_citation_of_an_earlier_version_opens(log: EventLog, session: str) -> None:
    """Before there were marks, a citation had one quote for all its places; now each has it.

    A tick from before there were verdicts is not shown as one.
    """
    old = {"n": 1, "url": "https://a.example/", "title": "A", "quote": "wet", "verified": True}
    loose = {"n": 2, "url": "https://b.example/", "title": "", "quote": None, "verified": None}
    ticked = {**old, "n": 3, "marks": [{"span": [0, 3], "quote": "wet", "verified": True}]}
    cited = [{**old, "spans": [[0, 3], [4, 7]]}, {**loose, "spans": []}, ticked]
    kind, data = message("Wet or not")
    log.append(session, [(kind, {**data, "citations": cited})])
    (event,) = log.read(session)
    said = {"quote": "wet", "verdict": None, "passage": None, "by": None, "verified": None}
    assert event.data["citations"][0]["marks"] == [
        {"span": [0, 3], **said},
        {"span": [4, 7], **said},
    ]
    assert event.data["citations"][0]["quote"] == "wet"
    assert event.data["citations"][1]["marks"] == []
    assert event.data["citations"][2]["marks"] == [{"span": [0, 3], **said}]
    (back,) = messages_from([event])
    assert [c.spans for c in back.citations] == [((0, 3), (4, 7)), (), ((0, 3),)]


def test_a_message_and_the_end_of_its_deltas_are_one_step(log: EventLog, session: str) -> None:
    """Followers get the delta before its message; readers, at any time, the one or the other, and
    a delta that came behind it."""
    log.append(session, [asked("hi"), delta("a"), ("thinking_delta", {"text": "c"})])
    assert [e.seq for e in log.read(session)] == [1, 2, 3]
    told = log.append(session, [delta("b"), message("ab"), delta("c")])
    assert [e.seq for e in told] == [4, 5, 6]
    assert [(e.seq, e.type) for e in log.read(session)] == [
        (1, "user_message"),
        (5, "message"),
        (6, "text_delta"),
    ]


def test_ids_cannot_be_guessed(log: EventLog) -> None:
    """A session id has at least 128 random bits, and no sign that means something on a command
    line."""
    ids = {log.create_session(model="m").id for _ in range(50)}
    assert len(ids) == 50
    assert min(map(len, ids)) >= 22
    assert all(each.isascii() and each.isalnum() for each in ids)


def test_half_a_character_and_no_number_are_stored(log: EventLog, session: str) -> None:
    """A lone surrogate, a NaN and a stranger become what JSON can say: nothing breaks the log."""
    data = {
        "text": "a\ud83d",
        "pair": "\ud83d\ude00",
        "n": float("nan"),
        "set": {1},
        "o": Path("x"),
    }
    (event,) = log.append(session, [("notice", data)])
    clean = {"text": "a\ufffd", "pair": "😀", "n": None, "set": [1], "o": "x"}
    assert event.data == clean
    assert log.read(session)[0].data == clean


def test_a_clock_that_jumps_changes_no_order(log: EventLog, session: str) -> None:
    """The date goes back a year and on by two: events keep their order, for readers and followers
    and the model; each has the time that the clock said.
    """
    times = [2e9, 2e9 - 3.2e7, 2e9 + 3.2e7, 2e9 - 3600, 2e9]
    for number, at in enumerate(times):
        rows = [("user_message", f'{{"text": "{number}"}}')]
        log._db.append([Batch(session, rows, at, questions=1)])
    events = log.read(session)
    assert [event.data["text"] for event in events] == ["0", "1", "2", "3", "4"]
    assert [event.at for event in events] == times
    assert [event.seq for event in log.read(session, after=2)] == [3, 4, 5]
    assert [message.content[:1] for message in messages_from(events)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_jumps_moves_a_run_at_most(log: EventLog, session: str, hours: float) -> None:
    """The store's own clock jumps under a lease: another may take the run over, but then the one
    before writes nothing more, and a beat of the holder makes all well.
    """
    lease = log.leases.claim(session, "run", "us")
    with log._db.transaction() as db:
        db.execute("UPDATE runs SET beat = beat + ?", (hours * 3600,))
    (seen,) = log.leases.held(session)
    assert seen.silent >= LEASE
    assert log.leases.beat("us") == {session: lease.fence}
    (seen,) = log.leases.held(session)
    assert seen.silent < LEASE
    taken = log.leases.take_over(seen, "them")
    assert taken is not None
    with pytest.raises(Conflict) as caught:
        log.append(session, [delta("x")], fence=lease.fence)
    assert caught.value.code == "fenced"
    assert log.append(session, [delta("x")], fence=taken.fence)


DAY = 86_400.0


@pytest.mark.parametrize("jump", [DAY + 60, 365 * DAY, -365 * DAY])
def test_a_clock_that_jumps_makes_no_chat_old(
    store: Path | str, log: EventLog, jump: float
) -> None:
    """What was made, written or read here counts by the time that has passed here."""
    passed = [1000.0]
    log._passed = lambda: passed[0]
    used = {
        "made": log.create_session(model="m:x", settings={"temporary": True}).id,
        "written": log.create_session(model="m:x", settings={"temporary": True}).id,
        "read": log.create_session(model="m:x", settings={"temporary": True}).id,
    }
    log.append(used["written"], [delta("x")])
    log.read(used["read"])
    with log._db.transaction() as db:  # as if the date had been set meanwhile, and set back
        db.execute("UPDATE sessions SET updated = updated - ?", (abs(jump),))
    assert log.left_over(DAY) == []
    passed[0] += DAY - 1
    log.read(used["read"])
    passed[0] += 2
    assert sorted(log.left_over(DAY)) == sorted([used["made"], used["written"]])
    with closing(EventLog(store)) as later:  # a process that has not seen them used
        assert sorted(later.left_over(DAY)) == sorted(used.values())


async def test_a_chat_that_somebody_follows_is_not_old(log: EventLog, session: str) -> None:
    """It is open in a tab, for however long."""
    log.update_session(session, {"temporary": True})
    log.append(session, [delta("x")])
    async with aclosing(log.follow(session)) as batches:
        await anext(batches)
        log._mine.clear()
        assert log.left_over(0.0) == []
    assert log.left_over(0.0) == [session]
