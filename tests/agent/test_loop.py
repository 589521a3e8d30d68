"""The loop: ask, act, observe, and what ends it."""

from __future__ import annotations

import pytest

from searchloop.agent.search.citations import joined
from searchloop.agent.types import Citation, Mark, Message, StopReason
from tests.agent.guard.guarding import made
from tests.agent.scripted import Played, Step, call, calls, says
from tests.tables import each_row


def test_endless_pauses_end() -> None:
    """A provider that only ever pauses is stuck: the run ends as incomplete."""
    played = Played((), *[says("…", why="pause") for _ in range(50)])
    assert played.outcome.reason == "incomplete"
    assert len(played.provider.requests) == 9


@pytest.mark.parametrize(
    ("why", "code"), [("length", "answer_cut"), ("refusal", "withheld"), ("pause", "endless_pause")]
)
def test_a_cut_off_step_runs_no_tool(why: StopReason, code: str) -> None:
    """Arguments may be cut in half there: every call gets an error result and none is run."""
    note, ran = made("note")
    played = Played([note], calls(call("note", 1, text="a"), call("note", 2, text="b"), why=why))
    assert (ran, played.ended) == ([], ("incomplete", code))
    told = [(m.tool_call_id, m.is_error) for m in played.results]
    assert told == [("call-1", True), ("call-2", True)]


@each_row("text", ["", " \n", "\u3000"])
@each_row("before", [[], [calls(call("note", text="a"))]])
def test_an_answer_of_nothing_is_told(text: str, before: list[Step]) -> None:
    """Whatever came before it: an end without a word is no answer."""
    played = Played([made("note")[0]], *before, says(text))
    assert played.ended == ("incomplete", "empty_answer")


def test_the_parts_of_a_paused_answer_are_one_answer() -> None:
    """What a provider paused is joined, with the citations where they then stand."""
    cited = Citation(1, "https://a.example/", marks=(Mark((0, 3)),))
    parts = [
        Message("assistant", "One.", citations=(cited,)),
        Message("assistant", " Two.", citations=(cited._replace(marks=(Mark((1, 4)),)),)),
    ]
    answer = joined(parts)
    assert answer.content == "One. Two."
    assert [c.spans for c in answer.citations] == [((0, 3), (5, 8))]
