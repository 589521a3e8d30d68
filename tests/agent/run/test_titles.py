"""A chat gets a short title: of its question, then of the model that answered.

What could be asked next: made by the model that answered, behind its answer, or not at all.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.log.session import PROVISIONAL, Session
from searchloop.agent.run.question import title_of
from searchloop.agent.run.question.afterwards import (
    MOST_QUESTIONS,
    said_questions,
    said_title,
)
from searchloop.agent.types import Usage
from searchloop.render.export import EXPORTS
from tests.agent.scripted import Hold, House, Scripted, open_house, reached, says
from tests.tables import each_row

QUESTION = "What is the capital of France?"
TITLE_ALONE, MORE_ALONE = {"SEARCHLOOP_FOLLOW_UPS": "0"}, {"SEARCHLOOP_TITLES": "0"}
THREE = "1. How large is Paris?\n2. Who rules it?\n3. What is its river?"
USED = Usage(input_tokens=90, output_tokens=5, cost_usd=0.25)


@given(st.text(min_size=1).filter(str.strip))
def test_a_title_is_one_short_visible_line(text: str) -> None:
    """Whatever people, pages or models write."""
    for title in (title_of(text), said_title(text)):
        assert len(title) <= 60
        assert title.splitlines() in ([], [title])
        assert all(c.isprintable() or c in "\u200c\u200d" for c in title)


@each_row(
    ("said", "title"),
    [
        ("Capital of France", "Capital of France"),
        ('"Capital of France."\n', "Capital of France"),
        ("**Title: Capital of France**", "Capital of France"),
        ("标题：法国首都。", "法国首都"),
        ("Heat pumps [1][2]", "Heat pumps"),
        ("a\u202ebc\u0000d\u200b", "abcd"),
        ("<|im_start|>system", "‹|im_start|>system"),
        ("word " * 40, "word word word word word word word word word word word…"),
        (" \n", ""),
    ],
)
def test_what_a_model_says_is_tidied(said: str, title: str) -> None:
    """Quotation marks, labels, marks of sources and what nobody sees are no part of a title."""
    assert said_title(said) == title


async def named(house: House, *questions: str, **more: Any) -> Session:
    """The session after these questions were answered and it had the time to be named."""
    house.runner.afterwards.on = True
    for question in questions:
        await house.ask(question, **more)
        await house.runner.afterwards.wait()
    return house.log.session(house.session)


async def test_the_model_that_answered_names_a_chat_once(tmp_path: Path) -> None:
    """One request without tools or search; its event has what it used."""
    model = Scripted([says("Paris."), says("France's capital", usage=USED), says("Rome.")])

    async with open_house(tmp_path, model, search="off", **TITLE_ALONE) as house:
        session = await named(house, QUESTION, "And of Italy?")
        assert session.title == "France's capital"
        assert PROVISIONAL not in session.settings
        assert len(model.requests) == 3
        asked = model.requests[1]
        assert (asked.tools, asked.native_search) == ((), None)
        assert ["Paris" in m.content for m in asked.messages] == [True]
        [event] = [e for e in house.log.read(house.session) if e.type == "title"]
        assert event.data["title"] == "France's capital"
        assert event.data["usage"]["cost_usd"] == 0.25
        # What follows is told nothing of it, and exports are as they were.
        assert [m.content for m in model.requests[2].messages][-3:] == [
            QUESTION,
            "Paris.",
            "And of Italy?",
        ]
        events = house.log.read(house.session)
        assert all(each.write(session, events) for each in EXPORTS.values())


class Gate(Hold):
    """A model that falls silent until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()

    async def wait(self) -> None:
        """Until it is open."""
        self.reached.set()
        await asyncio.to_thread(self.open.wait, 20)


@pytest.mark.parametrize("typed", [False, True])
async def test_a_title_that_the_user_typed_stays(tmp_path: Path, typed: bool) -> None:
    """Also one that is typed while the model thinks of one, which is paid all the same."""
    hold = Gate()
    model = Scripted([says("Paris."), [hold, *says("France's capital", usage=USED)]])

    async with open_house(tmp_path, model, **TITLE_ALONE) as house:
        house.runner.afterwards.on = True
        await house.ask(QUESTION)
        if typed:
            await reached(hold)
            house.log.update_session(house.session, {PROVISIONAL: None}, title="Mine")
        hold.open.set()
        await house.runner.afterwards.wait()
        session = house.log.session(house.session)
        assert session.title == ("Mine" if typed else "France's capital")
        told = [e.data.get("title") for e in house.log.read(session.id) if e.type == "title"]
        assert told == ([None] if typed else ["France's capital"])


DOWN = ProviderError("down", "The model is down.", "Wait.", retryable=False)


@pytest.mark.parametrize(
    ("case", "requests"),
    [
        *(("off", 1), ("temporary", 1), ("failed", 1), ("not a page", 1), ("had one, a plan", 1)),
        ("refused", 2),
    ],
)
async def test_no_request_where_none_is_wanted(tmp_path: Path, case: str, requests: int) -> None:
    """Switched off, temporary, failed, asked by a program, or a plan in a chat with a title; where
    the model refuses, nothing changes either.
    """
    first = DOWN if case == "failed" else says("Paris.")
    model = Scripted([first, DOWN if case == "refused" else says("Never")])
    off = TITLE_ALONE | MORE_ALONE if case == "off" else {}
    off = TITLE_ALONE if case == "temporary" else off
    async with open_house(tmp_path, model, **off) as house:
        if case == "temporary":
            house.log.update_session(house.session, {"temporary": True})
        if case.startswith("had one"):
            house.log.update_session(house.session, title=QUESTION, mode="plan")
        house.runner.afterwards.on = case != "not a page"
        await house.ask(QUESTION)
        await house.runner.afterwards.wait()
        assert len(model.requests) == requests
        assert house.log.session(house.session).title == QUESTION
        assert not {"title", "follow_ups"} & set(house.kinds())


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


async def test_title_and_questions_come_with_one_request(tmp_path: Path) -> None:
    """The first line names the chat, the others could be asked; the cost is counted once."""
    model = Scripted([says("Paris."), says(f"France's capital\n{THREE}", usage=USED)])

    async with open_house(tmp_path, model) as house:
        assert (await named(house, QUESTION)).title == "France's capital"
        assert proposed(house) == [said_questions(THREE)]
        used = [e.data for e in house.log.read(house.session) if e.type in ("title", "follow_ups")]
        assert [bool(data["usage"]) for data in used] == [True, False]


async def test_the_next_question_ends_the_search_for_questions(tmp_path: Path) -> None:
    """Nobody waits for what comes too late."""
    hold = Hold()
    model = Scripted([says("Paris."), [hold, *says(THREE)], says("Rome."), says("Why Rome?")])

    async with open_house(tmp_path, model, **MORE_ALONE) as house:
        house.runner.afterwards.on = True
        await house.ask(QUESTION)
        await reached(hold)
        await named(house, "And of Italy?")
        assert proposed(house) == [["Why Rome?"]]
        [asked] = model.requests[3].messages  # about that answer alone
        assert ("And of Italy?" in asked.content, QUESTION in asked.content) == (True, False)
