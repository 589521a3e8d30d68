"""What could be asked next: made by the model that answered, behind its answer, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.run.question.afterwards import MOST_QUESTIONS, said_questions
from searchloop.agent.types import Usage
from tests.agent.scripted import Hold, House, Scripted, open_house, reached, says
from tests.tables import each_row

QUESTION = "What is the capital of France?"
USED = Usage(input_tokens=90, output_tokens=30, cost_usd=0.25)
ALONE = {"SEARCHLOOP_TITLES": "0"}  # see test_titles.py
THREE = "1. How large is Paris?\n2. Who rules it?\n3. What is its river?"


@each_row(
    ("said", "questions"),
    [
        (THREE, ["How large is Paris?", "Who rules it?", "What is its river?"]),
        ("- **Why?** \n* How so, then?\n• Why?", ["How so, then?"]),
        ("Here are three questions:\n巴黎有多大？\n1、谁在管理？", ["巴黎有多大？", "谁在管理？"]),
        ("What is Node.js good for [1]?", ["What is Node.js good for ?"]),
        ("What is the capital of france?\nAnd of Italy?", ["And of Italy?"]),
        ("Open https://evil.example/?q=1 ?\nwww.evil.example, what is it?\nevil.example/x ?", []),
        ("a\u202eb\u0000c, what is it?", ["abc, what is it?"]),
        ("A question that goes on " * 9, []),
        ("Yes\nNo\n \n", []),
        (
            "\n".join(f"Is it number {n}?" for n in range(9)),
            [f"Is it number {n}?" for n in range(3)],
        ),
    ],
)
def test_questions_are_read_line_by_line(said: str, questions: list[str]) -> None:
    """Without numbering, marks of sources, addresses and what was asked already; none is cut."""
    assert said_questions(said, QUESTION) == questions


@given(st.text())
def test_whatever_a_model_says_is_a_few_short_lines(text: str) -> None:
    """Visible, on one line each, and no two alike."""
    found = said_questions(text)
    assert len(found) <= MOST_QUESTIONS
    assert len({one.casefold() for one in found}) == len(found)
    assert all(one.splitlines() == [one] and "://" not in one for one in found)


def proposed(house: House) -> list[list[str]]:
    """The questions of each event."""
    events = house.log.read(house.session)
    return [e.data["questions"] for e in events if e.type == "follow_ups"]


async def test_the_model_that_answered_proposes_what_to_ask(tmp_path: Path) -> None:
    """One request without tools or search behind each answer, of that answer's question."""
    model = Scripted([says("Paris."), says(THREE, usage=USED), says("Rome."), says("1. Why Rome?")])

    async with open_house(tmp_path, model, search="off", **ALONE) as house:
        house.runner.afterwards.on = True
        for question in (QUESTION, "And of Italy?"):
            await house.ask(question)
            await house.runner.afterwards.wait()
        assert proposed(house) == [said_questions(THREE), ["Why Rome?"]]
        asked = model.requests[3]
        assert (asked.tools, asked.native_search) == ((), None)
        assert "And of Italy?" in asked.messages[0].content
        assert [m.content for m in model.requests[2].messages][-1] == "And of Italy?"
        [event, _] = [e for e in house.log.read(house.session) if e.type == "follow_ups"]
        assert event.data["usage"]["cost_usd"] == 0.25


async def test_title_and_questions_come_with_one_request(tmp_path: Path) -> None:
    """The first line names the chat, the others could be asked; the cost is counted once."""
    model = Scripted([says("Paris."), says(f"France's capital\n{THREE}", usage=USED)])

    async with open_house(tmp_path, model) as house:
        house.runner.afterwards.on = True
        await house.ask(QUESTION)
        await house.runner.afterwards.wait()
        assert house.log.session(house.session).title == "France's capital"
        assert proposed(house) == [said_questions(THREE)]
        used = [e.data for e in house.log.read(house.session) if e.type in ("title", "follow_ups")]
        assert [bool(data["usage"]) for data in used] == [True, False]


@pytest.mark.parametrize("case", ["off", "failed", "not a page", "plan", "refused"])
async def test_nothing_is_proposed_where_nothing_is_wanted(tmp_path: Path, case: str) -> None:
    """Switched off, after a failure, for a program, for a plan; a refusal changes nothing."""
    down = ProviderError("down", "The model is down.", "Wait.", retryable=False)
    first = down if case == "failed" else says("Paris.")
    model = Scripted([first, down if case == "refused" else says(THREE)])
    values = ALONE | ({"SEARCHLOOP_FOLLOW_UPS": "0"} if case == "off" else {})

    async with open_house(tmp_path, model, **values) as house:
        house.runner.afterwards.on = case != "not a page"
        if case == "plan":
            house.log.update_session(house.session, mode="plan")
        await house.ask(QUESTION)
        await house.runner.afterwards.wait()
        assert len(model.requests) == (2 if case == "refused" else 1)
        assert proposed(house) == []


async def test_the_next_question_ends_the_search_for_questions(tmp_path: Path) -> None:
    """Nobody waits for what comes too late."""
    hold = Hold()
    model = Scripted([says("Paris."), [hold, *says(THREE)], says("Rome."), says("Why Rome?")])

    async with open_house(tmp_path, model, **ALONE) as house:
        house.runner.afterwards.on = True
        await house.ask(QUESTION)
        await reached(hold)
        await house.ask("And of Italy?")
        await house.runner.afterwards.wait()
        assert proposed(house) == [["Why Rome?"]]
