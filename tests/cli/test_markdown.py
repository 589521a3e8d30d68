"""Markdown on a terminal: whole words, live and never twice, and nothing that steers a terminal."""

from __future__ import annotations

import io
import os
import re
from contextlib import closing, redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from searchloop.cli.arguments import safe
from searchloop.cli.terminal.markdown import MarkdownScreen, renders, screen
from tests.cli.screen import Terminal, data, online, serving
from tests.fakes import Reply

TEXT = """\
# Tides

Ebb is at **six** [1], flood at *noon* [2, 3]; see [the table](https://x.example/a) and `x[3]`.

東京は日本の首都です。人口は約千四百万人で、世界最大級の都市圏を形成しています。🎉🎉👩‍👩‍👧 emoji.

- a list [1]
- two words that go on for so long that they have to be wrapped at the edge of the terminal

1. one
2. two

> quoted, and a <b>tag</b>

| a | b |
|---|---|
| 1 | a cell with words |

```python
def f(x):
    return x[0]
```

A last line with a [1] mark
"""
STYLE = re.compile(r"\x1b\[(?:[\d;]*m|\?25[lh])")


class Emulator(io.StringIO):
    """A terminal: what is on its screen, what scrolled away, and how it came."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.rows = [""]
        self.row = self.column = self.gone = 0

    def isatty(self) -> bool:
        """It is one."""
        return True

    def write(self, text: str) -> int:
        """Obeys the few orders that there are; any other is a failure."""
        for part in re.split(r"(\x1b\[\d*[AJK]|\r|\n)", STYLE.sub("", text)):
            if part == "\n":
                self._down()
            elif part == "\r":
                self.column = 0
            elif part == "\x1b[2K":
                self.rows[self.row] = ""
            elif part.endswith("A") and part.startswith("\x1b"):
                self.row -= int(part[2:-1])
                assert self.row >= self.gone, "that line has scrolled away"
            else:
                assert safe(part) == part
                self._put(part)
        return len(text)

    def _put(self, text: str) -> None:
        assert cell_len(self.rows[self.row][: self.column] + text) <= self.columns, "too wide"
        old = self.rows[self.row]
        self.rows[self.row] = old[: self.column] + text + old[self.column + len(text) :]
        self.column += len(text)

    def _down(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append("")
        self.gone = max(self.gone, self.row - self.lines + 1)


def on(columns: int, lines: int) -> MarkdownScreen:
    """A screen of this size, which draws each time."""
    return MarkdownScreen(screen(width=columns, height=lines), clock=lambda: 0.0)


def show(pieces: list[str], columns: int = 60, lines: int = 24) -> Emulator:
    """The terminal after these pieces of one text."""
    terminal = Emulator(columns, lines)
    with redirect_stdout(terminal), closing(on(columns, lines)) as shown:
        for piece in pieces:
            shown.add(piece)
    while terminal.rows and not terminal.rows[-1]:
        terminal.rows.pop()
    return terminal


def plain(text: str, width: int = 60) -> str:
    """A text without its styles, as it is on the screen."""
    return "\n".join(show([text], width, 500).rows)


@given(st.lists(st.integers(0, len(TEXT)), max_size=40), st.integers(20, 90), st.integers(4, 40))
@settings(max_examples=60)
def test_it_is_the_same_however_it_comes(cuts: list[int], columns: int, lines: int) -> None:
    """In any pieces, on a screen of any size: each line once, and none is taken back for good."""
    places = sorted({0, *cuts, len(TEXT)})
    pieces = [TEXT[a:b] for a, b in pairwise(places)]
    assert show(pieces, columns, lines).rows == show([TEXT], columns, lines).rows


def test_each_word_is_there_as_it_comes() -> None:
    """Live: after a word is complete, it is on the screen."""
    terminal = Emulator(60, 24)
    shown = on(60, 24)
    with redirect_stdout(terminal):
        for word in ("Ebb ", "is ", "at ", "six."):
            shown.add(word)
            assert word.strip() in terminal.rows[-1]


def test_words_are_wrapped_whole() -> None:
    """No word is cut, unless it is longer than a line."""
    words = "A paragraph of several ordinary words that is longer than one line of a terminal"
    lines = plain(words, 24).split("\n")
    assert " ".join(lines) == words
    assert len(lines) > 3
    wide = plain("東京は日本の首都です。" * 9, 24).split("\n")
    assert all(cell_len(line) <= 24 for line in wide)
    assert "".join(wide) == "東京は日本の首都です。" * 9


def test_marks_tags_and_addresses_are_all_there() -> None:
    """Nothing that an answer says is lost by styling it; a link shows where it leads."""
    text = plain(TEXT)
    for words in ("[1]", "[2, 3]", "x[3]", "https://x.example/a", "<b>tag</b>", "return x[0]"):
        assert words in text
    assert "![pic](https://i.example/p.png)" not in plain("![pic](https://i.example/p.png)")
    assert "https://i.example/p.png" in plain("![pic](https://i.example/p.png)")
    assert "<div>" in plain("<div>\nhidden?\n</div>")


HOSTILE = [
    "&#27;[31mred&#x1b;]0;title&#7;",
    "&#x202e;desrever&#x2066;x&#8233;y",
    "`&#27;` [a&#27;](https://x.example/&#x202e;) ~~&#x9b;~~",
    "|a|\n|-|\n|&#x202e;&#27;|",
    "# &#x202e;\n\n> &#x2067;\n\n1. &#xe0041;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reference_names_no_character_that_steers(text: str) -> None:
    """What `safe` removes does not come back as an entity of Markdown."""
    for line in plain(text).split("\n"):
        assert line.isprintable(), line


@pytest.mark.parametrize(
    ("env", "styles"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "dumb"}, False),
        ({}, os.name == "nt"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
    ],
)
def test_a_terminal_says_what_it_shows(env: dict[str, str], styles: bool) -> None:
    """NO_COLOR and a dumb terminal get the text as it is, a pipe always."""
    with redirect_stdout(Emulator(80, 24)):
        assert renders(env) is styles
    with redirect_stdout(io.StringIO()):
        assert renders(env) is False


def test_other_lines_come_between() -> None:
    """A note of the program takes the place of the growing block, which comes back below it."""
    terminal = Emulator(60, 24)
    shown = on(60, 24)
    with redirect_stdout(terminal):
        shown.add("One.\n\nTwo is gro")
        shown.hide()
        terminal.write("  a note\n")
        shown.add("wing.")
        shown.end()
    assert [row for row in terminal.rows if row] == ["One.", "  a note", "Two is growing."]


def test_an_answer_in_a_real_terminal(tmp_path: Path) -> None:
    """Bold where the model wrote stars, each word once, and the sources as ever."""
    pieces = [data({"content": word}) for word in ("Ebb ", "is at **si", "x**.\n\n", "- one\n")]
    reply = Reply([*pieces, data({"content": "- two"}, "stop"), b"data: [DONE]\n\n"])
    with (
        serving(reply) as server,
        Terminal(tmp_path, TERM="xterm-256color", **online(server)) as terminal,
    ):
        terminal.until("\n> ")
        terminal.type("When is ebb?")
        terminal.until("\x1b[1msix\x1b[0m.")
        terminal.until("two")
        assert "**" not in terminal.shown
        terminal.until("\n> ")
