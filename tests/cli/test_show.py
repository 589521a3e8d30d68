"""An answer on a terminal: no mark that goes away is ever seen, and verdicts are told in words."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import NOTHING, Message
from searchloop.cli.show import as_text
from tests.six_verdicts import PLACES, TEXT, WORDS, answer, url
from tests.tables import each_row

URLS = ("https://s1.example/", "https://s2.example/", "https://s3.example/")
SOURCES = [{"url": URLS[0], "n": 1}, {"url": URLS[1], "n": 2}, {"url": URLS[2]}]
FOUND = Event(1, "tool_result", {"sources": SOURCES}, 0.0)


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture(autouse=True)
def no_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text as it is; tests/cli/test_markdown.py has the styles."""
    monkeypatch.setenv("NO_COLOR", "1")


def settled(text: str) -> str:
    """The text as its message has it, in a session with two sources."""
    table = SourceTable()
    for address in URLS[:2]:
        table.meet(address)
    return settle(Message("assistant", text), table).content


def screens(pieces: list[str], final: str, before: list[Event]) -> list[str]:
    """What the terminal shows after each piece, and at the end."""
    seen: list[str] = []
    terminal = Terminal()

    def events() -> Iterator[Event]:
        for piece in pieces:
            yield Event(2, "text_delta", {"text": piece}, 0.0)
            seen.append(terminal.getvalue())
        yield Event(3, "message", {"text": final, "sources": []}, 0.0)

    with redirect_stdout(terminal):
        as_text(events(), before=before)
    return [*seen, terminal.getvalue()]


ANSWERS = [
    "Ebb is at six [1]. Flood is at noon [9].\n\nNobody swims [2].",
    "Look at items[9] and `x[3]`, then a [9] between words.\n\nSo it is [1].",
    "A bracket [9] between words, and nothing is cited.",
    "Both say so [1, 2], and one of them [1, 7]; so do [2][9] and [1] and [9].",
    "```python\nx = [7]\ny = items[9] + [1, 2]\n\nprint(x[0])\n```\n\nIt prints 7 [1]. [9]",
    "As of [2024], the interval [0, 1] and [7, 8]; [see](https://x.example/) [link [9]](u).",
    "首都は東京です[9]。富士山[1]。\n\n高い[1、2]。",
    "`code [9]\n\nand more [9]` it ends [1]",
    "So it is **[1]**, *[2]* and [1-2], ［2］, 【1】.\n\nAnd [^1] or [[2]](u) or [Source 1].",
    "Plain **bold** and [see](u), [note] and [Source code], x² and 【说明】.",
    *("So it ended.¹ It was long.²", "It ended (Source 1), was [1 and 2] and [2, see] it."),
    "It ended [citation:1][citation:2], in spring<sup>1</sup>; (see [2]) [Source: 2].",
    "It ended ([1](https://s1.example/)).\n\nA note[^1] and **it**.\n\n[^1]: Of the writer.",
    "[9] begins it.   [9]\n\n\n\n- a [9]\n- b [1]",
    "",
]


@each_row("text", ANSWERS)
@each_row("size", [1, 3, 1000])
def test_nothing_is_shown_that_is_not_in_the_answer(text: str, size: int) -> None:
    """At each piece the screen is the beginning of the answer; at the end it is the answer."""
    final = settled(text)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    *seen, last = screens(pieces, final, [FOUND])
    assert all(final.startswith(shown) for shown in seen), seen
    assert last == (f"{final}\n" if final else "")


PIECES = [
    *("[1]", "[9]", "[1, 2]", "[3", "]", " ", ".", "\n", "\n\n", "`", "```\n", "word", "x", "$"),
    *("[", "(u)"),
    *("**[1]**", "［2］", "[^", "[Source 1]", "[1-2]", "words¹"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=24))
def test_whatever_comes_the_answer_is_there_at_the_end(pieces: list[str]) -> None:
    """Each piece is a delta; the last lines of the screen are the whole answer."""
    final = settled("".join(pieces))
    last = screens(pieces, final, [FOUND])[-1]
    assert last.endswith(f"{final}\n" if final else "")


def test_text_comes_as_it_is_written() -> None:
    """Marks of known numbers, code and closed brackets hold nothing back."""
    text = "Ebb is at six [1]. See items[9], [the table] and x = [5], then [2]. More"
    seen = screens(list(text), text, [FOUND])
    held = re.compile(r",? ?(?:an?d? ?)?(?:\[[^\]]*\]?)?")  # may join a mark that then goes
    for at, shown in enumerate(seen[:-1], 1):
        assert held.fullmatch(text[len(shown) : at])
    assert screens(list("a [9]."), "a [9].", [])[5:] == ["a [9].", "a [9].\n"]


def test_an_answer_that_broke_off_is_shown_once() -> None:
    """Its message is what was said, marks and all: nobody compared them."""
    said = "Ebb [1]. Flood [9].\n\nIt is [1]. And"
    assert screens(list(said), said, [FOUND])[-1] == "Ebb [1]. Flood.\n\nIt is [1]. And\n"


def test_what_was_not_followed_is_shown_from_its_message() -> None:
    """Text that came too fast, and text of which only the end came."""
    assert screens([], "Ebb is at six.", [FOUND])[-1] == "Ebb is at six.\n"
    assert screens(["Ebb is"], "Ebb is at six.", [FOUND])[-1] == "Ebb is at six.\n"
    assert screens(["at six."], "Ebb is at six.", [FOUND])[-1] == "at six.\nEbb is at six.\n"


def test_each_source_is_listed_with_its_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of every surface; several verdicts say at how many places."""
    ended: dict[str, Any] = {**answer(), "answer": TEXT, "reason": "stop", "search_path": "off"}
    ended |= {"model": "m", "usage": {**NOTHING.as_dict(), "seconds": 1.0}}
    as_text(iter([event_of(1, "run_finished", ended, 0.0)]))
    _, _, listed = capsys.readouterr().out.partition("\nSources\n")
    near = "nearest there: “The flood is at one.”"
    assert listed.splitlines()[:5] == [
        "  [1] Tides",
        f"      {url(1)}",
        "      1 of 2 places: These words are not in the source, by words",
        "      1 of 2 places: These words stand in the source, by words",
        f"        Flood comes “at noon” → “at noon” ({WORDS['misquoted']}; {near})",
    ]
    otherwise = f"The harbour is 5 m deep → “Harbour · 8 m deep” ({WORDS['contradicted']})"
    assert f"        {otherwise}\n" in listed
    assert "The tide turns twice daily." not in listed  # nothing speaks against it
    read = {"n": 1, "url": url(1), "title": "Tides", "state": "opened"}
    for citations, told in ((ended["citations"], False), ([], True)):
        silent = {**ended, "citations": citations, "sources": [read]}
        as_text(iter([event_of(1, "run_finished", silent, 0.0)]))
        assert ("read 1 page and names none. (--check)" in capsys.readouterr().err) is told
    assert listed.endswith(f"  [4] Parking\n      {url(4)}\n      Not read here, only found\n")
    assert all(WORDS[verdict] in listed for _, verdict, *_ in PLACES)
    assert "cited" not in listed


def test_a_model_that_reads_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """About how many tokens before; what they cost, and why it failed, after."""
    told: list[dict[str, Any]] = [{"tokens": 800}, {"usage": {"cost_usd": 0.0123}}]
    told += [{"usage": {"cost_usd": None}, "error": "No form."}]
    as_text(
        event_of(1, "check", {"turn": 1, "left": 0, "model": "m:x", **each}, 0.0) for each in told
    )
    lines = "  m:x reads, about 800 tokens…\n  about 0.0123 USD\n  cost unknown · No form.\n"
    assert capsys.readouterr().err == lines
