"""What stands beside an event, and what it notices."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.events import checksum, data_in

WORDS = '{"text": "At 07:40.", "step": 1}'


def flipped(text: str, bit: int) -> str:
    """The text with one bit of one letter changed."""
    place, bit = divmod(bit % (len(text) * 7), 7)
    return text[:place] + chr(ord(text[place]) ^ 1 << bit) + text[place + 1 :]


@given(
    st.integers(1, 1 << 31),
    st.floats(0, 1e11),
    st.sampled_from(["session", "seq", "kind", "text", "at", "stored"]),
    st.integers(0, 1 << 20),
)
def test_one_bit_is_noticed(seq: int, at: float, name: str, bit: int) -> None:
    """Of the session's id, the number, the type, the data, the time, or the checksum itself."""
    row: dict[str, Any] = {
        "session": "gK2m",
        "seq": seq,
        "kind": "message",
        "text": WORDS,
        "at": at,
    }
    row["stored"] = checksum(**row)
    assert data_in(**row) == {"text": "At 07:40.", "step": 1}
    value = row[name]
    if name == "at":
        row[name] = -value - 1.0
    else:
        row[name] = flipped(value, bit) if isinstance(value, str) else value ^ 1 << bit % 31
    assert data_in(**row) is None


@pytest.mark.parametrize("value", [None, b"x", 7, 7.5])
def test_a_value_of_another_kind_is_noticed(value: Any) -> None:
    """A file that is damaged may hold anything in any column."""
    whole = ("s", 1, "message", WORDS, 1.0)
    assert data_in(*whole, None) is not None
    for place in range(1, 5):
        row = [*whole[:place], value, *whole[place + 1 :]]
        assert [type(v) for v in row] == [type(v) for v in whole] or data_in(*row, None) is None


def test_what_was_written_before_there_was_one(store: Path | str) -> None:
    """A store of schema 3: what is in it is shown, what comes is checked, and all is whole."""
    with closing(EventLog(store)) as log:
        session = log.create_session(model="m").id
        log.append(session, [("user_message", {"text": "hi"})])
    without = [
        "ALTER TABLE events DROP COLUMN checksum",
        "DROP INDEX sessions_owner",
        "ALTER TABLE sessions DROP COLUMN owner",
        "DROP TABLE used",
    ]
    if isinstance(store, Path):
        with closing(sqlite3.connect(store)) as db:
            for query in (*without, "PRAGMA user_version = 3"):
                db.execute(query)
    else:
        import psycopg

        with psycopg.connect(store) as other:
            for query in (*without, "UPDATE searchloop_schema SET version = 3"):
                other.execute(query.encode())
    with closing(EventLog(store)) as log:
        log.append(session, [("notice", {"code": "x"}), ("text_delta", {"text": "y"})])
        assert [e.type for e in log.read(session)] == ["user_message", "notice", "text_delta"]
    assert check(store) == []


def test_another_word_is_no_answer(tmp_path: Path) -> None:
    """An event that is JSON still, and not what was written, is marked; the rest is read."""
    path = tmp_path / "sessions.sqlite3"
    with closing(EventLog(path)) as log:
        session = log.create_session(model="m").id
        log.append(session, [("user_message", {"text": "When?"}), ("notice", {"text": "07:40"})])
    path.write_bytes(path.read_bytes().replace(b"07:40", b"17:40"))
    with closing(EventLog(path)) as log:
        question, told = log.read(session)
        assert question.data == {"text": "When?"}
        assert (told.type, told.data["code"]) == ("notice", "damaged")
    assert check(path) == [f"session {session}: event 2 is damaged"]
