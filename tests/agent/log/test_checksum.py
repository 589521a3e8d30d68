"""What stands beside an event, and what it notices."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

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
    st.floats(0, 1e11, exclude_max=True),
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
