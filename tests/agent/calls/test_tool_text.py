"""Calls printed as text: read the same however they are cut, at the cost of their length.

`test_openai_chat_local.py` goes through the corpus: which calls it holds, and what is none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.calls.as_text import TextCalls, rescue
from searchloop.agent.types import ToolSpec
from tests.growth import check_growth
from tests.tables import each_row

FOLDER = Path(__file__).parents[2] / "recordings" / "tool_text"


def load(name: str) -> Any:
    """One file of the corpus."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


TOOLS = tuple(ToolSpec(t["name"], "", t["parameters"]) for t in load("tools"))
CALLS, STRANGERS, BAD, PROSE = map(load, ("calls", "strangers", "bad", "prose"))
EVERY = [c["text"] for c in (*CALLS, *STRANGERS, *BAD)] + PROSE


def read(text: str, size: int) -> tuple[str, list[Any]]:
    """(visible, calls) of a text that comes in pieces of this size."""
    reading = TextCalls(TOOLS)
    pieces = [reading.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join(pieces) + reading.close(), reading.calls


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_cuts_change_nothing(size: int) -> None:
    """Every text of the corpus reads the same in pieces of any size."""
    for text in EVERY:
        assert read(text, size) == rescue(text, TOOLS)


@each_row("blanks", range(268, 292, 3))
def test_the_end_of_a_lead_in_is_no_matter_of_cuts(blanks: int) -> None:
    """How much prose may stand before an unmarked call does not depend on its pieces."""
    text = f"I look. {' ' * (blanks - 20)}It is late.\n{CALLS[30]['text']}"
    whole = rescue(text, TOOLS)
    assert all(read(text, size) == whole for size in (1, 2, 5, 64))


PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", '{"name": "web_search", ', '"arguments": {"query": "x"}}'),
        *("```", "```json\n", "\n", " ", "web_search(", 'query="x")', "[", "]", "{", "}", "<", "`"),
        *("<function=web_search>", "<parameter=query>", "x", "</function>", "Action: ", "Hello. "),
        *("[TOOL_CALLS]", "<|channel|>", "commentary to=functions.web_search", "<|message|>"),
    ]
)


@given(st.lists(PIECES, max_size=10).map("".join), st.integers(1, 9))
def test_no_mixture_depends_on_its_cuts(text: str, size: int) -> None:
    """Whatever is mixed from the marks of all dialects reads the same however it is cut."""
    whole = rescue(text, TOOLS)
    assert read(text, size) == whole
    assert whole[1] or whole[0] == text


@given(st.text(max_size=200))
def test_without_a_call_nothing_changes(text: str) -> None:
    """Any text without a call is visible as it is, also when no tool is offered."""
    visible, calls = rescue(text, TOOLS)
    assert calls or visible == text
    assert rescue(text, ()) == (text, [])


def test_a_call_may_have_no_arguments() -> None:
    """Empty braces behind the name of a tool are a call of it."""
    now = ToolSpec("now", "Tells the time.", {"type": "object", "properties": {}})
    assert rescue("<|tool_call>call:now{}<tool_call|>", [now]) == ("", [("now", {})])


def test_text_is_shown_as_soon_as_it_is_no_call() -> None:
    """Prose, other JSON and other tags are not held back once they can be no call."""
    reading = TextCalls(TOOLS)
    assert reading.feed("The tram ") == "The tram "
    assert reading.feed('{"na') == ""
    assert reading.feed('me": "Ad') == '{"name": "Ad'
    assert reading.feed(" <to") == " "
    assert reading.feed("day>") == "<today>"


@each_row(
    "piece",
    [
        *("<", "{", "[", "<tool_call>", "web_search("),
        *(
            "web_search\n{a:<escape>",
            "<start_function_call>",
            '<|tool_call>call:web_search{a:<|"|>',
        ),
    ],
)
def test_hostile_text_costs_little(piece: str) -> None:
    """Long runs of opening marks are read at the cost of their length."""
    check_growth(lambda text: read(text, 4096), piece * (20_000 // len(piece)))
