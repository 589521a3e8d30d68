"""The loop: ask, act, observe, and what ends it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.search.citations import joined
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import tool
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import Citation, Mark, Message, Mode, Request, StopReason
from tests.agent.scripted import Memory, Scripted, Step, call, calls, says
from tests.tables import each_row

ran: list[str] = []


@tool
async def note(word: str) -> str:
    """Write a word down."""
    ran.append(word)
    return f"noted {word}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    """Each test begins with an empty notebook."""
    ran.clear()


class Played:
    """One run of the loop and all that it left."""

    def __init__(self, *steps: Step, mode: Mode = "ask", **more: Any) -> None:
        self.provider = Scripted(steps)
        self.memory = Memory()
        self.messages = [Message("user", "hello")]
        self.table = SourceTable()
        self.outcome: Outcome = asyncio.run(
            run_agent_loop(
                self.messages,
                Request("one", ()),
                provider=self.provider,
                tools=Toolset([note], mode, self.table),
                emit=self.memory,
                sources=self.table,
                **more,
            )
        )

    @property
    def error(self) -> str | None:
        """The code of what the answer lacks."""
        return self.outcome.error.code if self.outcome.error else None

    @property
    def roles(self) -> list[str]:
        """The transcript in brief."""
        return [message.role for message in self.messages]


def test_endless_pauses_end() -> None:
    """A provider that only ever pauses is stuck: the run ends as incomplete."""
    played = Played(*[says("…", why="pause") for _ in range(50)])
    assert played.outcome.reason == "incomplete"
    assert len(played.provider.requests) == 9


@pytest.mark.parametrize(
    ("why", "code"), [("length", "answer_cut"), ("refusal", "withheld"), ("pause", "endless_pause")]
)
def test_a_cut_off_step_runs_no_tool(why: StopReason, code: str) -> None:
    """Arguments may be cut in half there: every call gets an error result and none is run."""
    made = calls(call("note", 1, word="a"), call("note", 2, word="b"), why=why)
    played = Played(made)
    assert ran == []
    assert (played.outcome.reason, played.error) == ("incomplete", code)
    results = [m for m in played.messages if m.role == "tool"]
    assert [(m.tool_call_id, m.is_error) for m in results] == [("call-1", True), ("call-2", True)]


@each_row("text", ["", " \n", "\u3000"])
@each_row("before", [[], [calls(call("note", word="a"))]])
def test_an_answer_of_nothing_is_told(text: str, before: list[Step]) -> None:
    """Whatever came before it: an end without a word is no answer."""
    played = Played(*before, says(text))
    assert (played.outcome.reason, played.error) == ("incomplete", "empty_answer")


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
