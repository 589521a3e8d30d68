"""The event log, on each store: order, transactions, sessions, search, claims."""

from __future__ import annotations

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
    """Either the deltas are there or the message is, for any reader at any time."""
    log.append(session, [asked("hi"), delta("a"), delta("b"), ("thinking_delta", {"text": "c"})])
    log.append(session, [message("ab")])
    assert [(e.seq, e.type) for e in log.read(session)] == [(1, "user_message"), (5, "message")]


def test_an_append_keeps_no_delta_that_it_replaces_itself(log: EventLog, session: str) -> None:
    """Followers get the delta before its message, readers the message; a delta behind it stays."""
    log.append(session, [delta("a")])
    told = log.append(session, [delta("b"), message("ab"), delta("c")])
    assert [(e.seq, e.type) for e in told] == [(2, "text_delta"), (3, "message"), (4, "text_delta")]
    assert [(e.seq, e.type) for e in log.read(session)] == [(3, "message"), (4, "text_delta")]


def test_a_refused_append_leaves_nothing(log: EventLog, session: str) -> None:
    """An append to a session that is gone stores nothing and keeps the log usable."""
    log.delete_session(session)
    with pytest.raises(Conflict) as caught:
        log.append(session, [asked("hi")])
    assert caught.value.code == "no_session"
    assert log.append(log.create_session(model="m").id, [asked("hi")])[0].seq == 1


def test_read_goes_on_after_a_number(log: EventLog, session: str) -> None:
    """`after` is exclusive, and what is read equals what append returned."""
    stored = log.append(session, [asked("a"), asked("b"), asked("c")], durable=True)
    assert log.read(session, after=1) == stored[1:]
    assert log.last_seq(session) == 3
    assert log.last_event(session) == stored[-1]


def test_a_session_counts_its_questions(log: EventLog) -> None:
    """A new session is empty, in ask mode and with search off; questions are counted."""
    made = log.create_session(model="m")
    assert (made.mode, made.search, made.search_path, made.messages) == ("ask", "off", "off", 0)
    log.append(made.id, [asked("a"), ("run_started", {}), message("x")])
    assert log.session(made.id).messages == 1
    assert log.session(made.id).as_dict()["id"] == made.id


def test_ids_cannot_be_guessed(log: EventLog) -> None:
    """A session id has at least 128 random bits, and no sign that means something on a command
    line."""
    ids = {log.create_session(model="m").id for _ in range(50)}
    assert len(ids) == 50
    assert min(map(len, ids)) >= 22
    assert all(each.isascii() and each.isalnum() for each in ids)


def test_sessions_come_newest_first(log: EventLog) -> None:
    """The session that was written to last is on top, and `limit` cuts."""
    first, second = (log.create_session(model="m").id for _ in range(2))
    log.append(second, [asked("x")])
    log.append(first, [asked("x")])
    assert [s.id for s in log.sessions()] == [first, second]
    assert [s.id for s in log.sessions(limit=1)] == [first]


def test_pinned_sessions_are_listed_however_old(log: EventLog) -> None:
    """They come behind those that `limit` lets in, and never twice."""
    old, pinned, new = (log.create_session(model="m").id for _ in range(3))
    log.update_session(pinned, {"pinned": True})
    for session in (old, pinned, new):
        log.append(session, [asked('of "pinned":true')])
    assert [s.id for s in log.sessions(limit=1)] == [new, pinned]
    assert [s.id for s in log.sessions(limit=2)] == [new, pinned]
    log.update_session(pinned, {"pinned": None})
    assert [s.id for s in log.sessions(limit=1)] == [new]


def test_one_run_a_session(log: EventLog, session: str) -> None:
    """A claim holds until it is released by the run that made it."""
    first = log.leases.claim(session, "r1", "host/1/a")
    assert log.session(session).running
    with pytest.raises(Conflict) as caught:
        log.leases.claim(session, "r2", "host/1/a")
    assert caught.value.code == "busy"
    assert log.leases.release(first)
    assert not log.leases.release(first)
    assert not log.session(session).running
    second = log.leases.claim(session, "r2", "host/1/a")
    assert second.fence > first.fence
    assert not log.leases.release(first)


def test_deleting_takes_everything(log: EventLog, session: str) -> None:
    """Events, claim and session are gone; its neighbour is not."""
    other = log.create_session(model="m").id
    log.append(other, [asked("stay")])
    log.append(session, [asked("go")])
    log.leases.claim(session, "r", "host/1/a")
    log.delete_session(session)
    assert log.read(session) == []
    assert log.leases.held() == []
    assert log.last_seq(session) is None
    assert [s.id for s in log.sessions()] == [other]
    with pytest.raises(Conflict):
        log.session(session)


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


def test_old_temporary_sessions_are_found_however_many_are_newer(log: EventLog) -> None:
    """Those of this person, without a run."""
    passing = [log.create_session(model="m:x", settings={"temporary": True}).id for _ in "ab"]
    log.create_session(model="m:x")
    log.leases.claim(passing[1], "run", "here")
    assert log.left_over(0.0) == [passing[0]]
    assert log.left_over(3600) == []


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
