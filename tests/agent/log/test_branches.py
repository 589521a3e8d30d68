"""Turns beside each other: which of them count, and what the model sees of the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import Event, messages_from
from searchloop.agent.log.session import Turns
from tests.tables import each_row

Pending = tuple[str, dict[str, Any]]


def log(*pending: Pending) -> list[Event]:
    """Numbered events."""
    return [Event(seq, kind, data, 0.0) for seq, (kind, data) in enumerate(pending, 1)]


def asked(text: str, replaces: int | None = None) -> list[Pending]:
    """A question and its answer."""
    data = {"text": text, "replaces": replaces} if replaces else {"text": text}
    return [("user_message", data), ("message", {"text": f"{text}!"})]


def words(events: list[Event], **more: int) -> str:
    """What was asked, in the transcript that a model gets."""
    found = messages_from(events, **more)
    assert [m.content + "!" for m in found if m.role == "user"] == [
        m.content for m in found if m.role == "assistant"
    ], "an answer of another branch"
    return "".join(m.content for m in found if m.role == "user")


def change(kind: str, turn: int) -> Pending:
    """A change of what is shown."""
    return kind, {"turn": turn}


A, B, C = asked("a"), asked("b"), asked("c")


ANEW, THREE = [*A, *B, *C, *asked("B", 3)], [*A, *B, *asked("x", 3), *asked("y", 3)]


@each_row(
    ("happened", "shown"),
    [
        (ANEW, "aB"),  # the old branch is kept with what followed it, and comes back
        ([*ANEW, *asked("d")], "aBd"),
        ([*ANEW, change("branch_chosen", 3)], "abc"),
        ([*ANEW, change("branch_chosen", 5)], "abc"),
        ([*A, *B, *C, change("turn_removed", 3)], "ac"),  # nobody stands beside it
        ([*A, *B, *C, change("turn_removed", 3), *asked("d")], "acd"),
        ([*A, *B, *C, change("turn_removed", 3), change("turn_restored", 3)], "abc"),
        ([*THREE, change("branch_chosen", 5)], "ax"),
        ([*THREE, change("branch_chosen", 5), change("turn_removed", 5)], "ab"),  # its neighbour
        ([*THREE, change("turn_removed", 5), change("turn_restored", 5)], "ax"),
        ([*A, *asked("b", 77), change("turn_removed", 99)], "ab"),  # numbers of no question
    ],
)
def test_what_a_change_leaves_shown(happened: list[Pending], shown: str) -> None:
    """A question asked anew hides what followed the old one; a removed turn leaves a gap that
    closes, or gives way to its neighbour; both come back.
    """
    assert words(log(*happened)) == shown


def test_what_is_not_there_is_said() -> None:
    """A number that is no question's."""
    with pytest.raises(ConfigError, match="no question number 2"):
        messages_from(log(*A), before=2)


@st.composite
def chats(draw: st.DrawFn) -> list[Event]:
    """Questions, some in the place of others, and changes of what is shown."""
    pending: list[Pending] = []
    turns: list[int] = []
    for n in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["ask", "again", "branch_chosen", "removed", "restored"]))
        if kind == "ask" or not turns:
            turns.append(len(pending) + 1)
            pending += asked(f"{n} ")
        elif kind == "again":
            turns.append(len(pending) + 1)
            pending += asked(f"{n} ", draw(st.sampled_from(turns[:-1] or turns)))
        else:
            name = kind if kind == "branch_chosen" else f"turn_{kind}"
            pending.append(change(name, draw(st.sampled_from(turns))))
    return log(*pending)


@given(chats())
def test_whatever_is_chosen_the_chat_is_one_line(events: list[Event]) -> None:
    """Turns follow each other in the order they were asked; the newest question is shown."""
    way = Turns.of(events).shown()
    assert way == sorted(way)
    words(events)
    last = next(e for e in reversed(events) if e.type != "message")
    turn = last.data.get("turn", last.seq)
    if last.type == "turn_removed":
        assert turn not in way
    elif last.type != "branch_chosen":  # a removed turn may be chosen and still be gone
        assert turn in way
