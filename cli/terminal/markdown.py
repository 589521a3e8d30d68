"""Shows Markdown on a terminal while it comes.

Finished blocks are printed once and for all. The block that still grows stands below them in a
region of its own, of which only the lines that change are written anew. The region is never higher
than the screen, so that none of its lines can scroll away and be there twice.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from searchloop.cli.arguments import safe

if TYPE_CHECKING:
    from rich.console import Console

_NARROW = 20  # columns: below that nothing can be wrapped well
_SHARE = 4  # redrawing takes at most a fourth of the time


def renders(env: Mapping[str, str] = os.environ) -> bool:
    """Returns True if standard output is a terminal that shows styles, and nobody minds them."""
    if not sys.stdout.isatty() or env.get("NO_COLOR") or env.get("TERM") in ("dumb", "unknown"):
        return False
    if os.name != "nt":
        return bool(env.get("TERM"))
    from rich.console import Console

    return not Console(file=sys.stdout).legacy_windows


class MarkdownScreen:
    """Takes a text bit by bit; writes it to standard output as blocks of Markdown."""

    def __init__(
        self,
        size: Callable[[], os.terminal_size] = shutil.get_terminal_size,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size, self._clock = size, clock
        self._text = ""  # that is not printed for good
        self._begun = False
        self._region: list[tuple[str, int]] = []  # the lines below, and how wide each is
        self._next = 0.0  # the time of the next redrawing

    def add(self, text: str) -> None:
        """Takes more text, which holds no control characters."""
        self._text += text
        began = self._clock()
        if began >= self._next:
            self._draw()
            self._next = self._clock() + (self._clock() - began) * (_SHARE - 1)

    def hide(self) -> None:
        """Takes the growing block away, so that something else can be printed."""
        self._write(self._erased(0))
        self._region = []

    def end(self) -> None:
        """Prints what is left."""
        out = self._erased(0) + self._printed(_blocks(self._text))
        self._region, self._text, self._begun, self._next = [], "", False, 0.0
        self._write(out)

    def _draw(self) -> None:
        blocks, out = _blocks(self._text), ""
        if len(blocks) > 1:  # nothing can change all but the last one
            out = self._erased(0) + self._printed(blocks[:-1])
            self._region, self._text = [], blocks[-1]
        width, height = self._columns(), self._size().lines
        lines = rendered(self._text, width)
        if lines and self._begun:
            lines = [("", 0), *lines]
        lines = lines[-max(1, height - 2) :]
        same = 0
        while same < min(len(lines), len(self._region)) and lines[same] == self._region[same]:
            same += 1
        if same < len(lines) or same < len(self._region):
            same = min(same, max(0, len(self._region) - 1))  # the cursor is on the last line
            new = "\n".join(line for line, _ in lines[same:])
            old = self._region[same][0] if same == len(self._region) - 1 else None
            grown = old is not None and new.startswith(old)
            out += new[len(old or "") :] if grown else self._erased(same) + new
        self._region = lines
        self._write(out)

    def _printed(self, blocks: Iterable[str]) -> str:
        """Returns blocks as they stay, with a blank line before all but the first."""
        out = ""
        for block in blocks:
            if lines := rendered(block, self._columns()):
                gap, self._begun = "\n" if self._begun else "", True
                out += gap + "".join(f"{line}\n" for line, _ in lines)
        return out

    def _erased(self, keep: int) -> str:
        """Returns what removes the lines of the region behind the first `keep`."""
        if not self._region:
            return ""
        columns = max(1, self._size().columns)  # a narrower window has wrapped the lines
        rows = sum(max(1, -(-width // columns)) for _, width in self._region[keep:])
        return (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\r\x1b[J"

    def _columns(self) -> int:
        return max(_NARROW, self._size().columns - 1)

    def _write(self, text: str) -> None:
        if text:
            print(text, end="", flush=True)


def rendered(text: str, width: int) -> list[tuple[str, int]]:
    """Returns the lines of a text, styled, and the columns that each takes."""
    if not text.strip():
        return []
    from rich.segment import Segment, Segments

    console, lines = _console(), list[tuple[str, int]]()
    options = console.options.update(width=width, height=None)
    for line in console.render_lines(_markdown(text), options, pad=False):
        # Entities become characters only here: a reference could name one that does harm.
        kept = [Segment(safe(part.text).replace("\n", ""), part.style) for part in line]
        while kept and not kept[-1].text.strip():
            kept.pop()
        if kept:
            kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
        with console.capture() as captured:
            console.print(Segments(kept), end="")
        lines.append((captured.get(), sum(part.cell_length for part in kept)))
    while lines and not lines[-1][1]:
        lines.pop()
    return lines


@cache
def _console() -> Console:
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=io.StringIO(),
        theme=Theme({"markdown.code": "cyan", "markdown.block_quote": "dim"}),
        force_terminal=True,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
        legacy_windows=False,
    )


@cache
def _parser() -> Any:
    """Makes the parser: tags are text, and a picture is the link that it is here."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["strikethrough", "table"]).disable("image")


def _blocks(text: str) -> list[str]:
    """Cuts a text where its blocks begin."""
    tokens = _parser().parse(text)
    starts = [token.map[0] for token in tokens if token.map and token.level == 0]
    lines = text.splitlines(keepends=True)
    places = [0, *starts[1:], len(lines)]
    return ["".join(lines[a:b]) for a, b in pairwise(places)]


def _markdown(text: str) -> Any:
    made = _kind()("", hyperlinks=False, code_theme="ansi_dark", inline_code_theme=None)
    made.parsed = _parser().parse(text)
    return made


@cache
def _kind() -> Any:
    """Makes a kind of rich's Markdown with plain headings, and code that can be copied."""
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.syntax import Syntax

    class PlainHeading(Heading):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            self.text.justify = "left"
            yield self.text

    class PlainCode(CodeBlock):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            code = str(self.text).rstrip()
            yield Syntax(
                code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default"
            )

    class Shown(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": PlainHeading,
            "fence": PlainCode,
            "code_block": PlainCode,
        }

    return Shown
