"""Shows Markdown on a terminal while it comes.

Finished blocks are printed once and for all. The block that still grows stands below them in a
live region of rich, never higher than the screen, so that no line scrolls away and is there twice.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from searchloop.cli.arguments import safe

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console
    from rich.live import Live

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
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._clock = console or screen(), clock
        self._live: Live | None = None  # shows the block that still grows
        self._text = ""  # that is not printed for good
        self._begun = False
        self._next = 0.0  # the time of the next drawing

    def add(self, text: str) -> None:
        """Takes more text, which holds no control characters."""
        self._text += text
        if self._clock() < self._next:
            return
        from rich.live import Live

        _kinds()  # imports once, which must not count as drawing
        began = self._clock()
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        *done, self._text = _blocks(self._text)
        self._print(done)
        self._live.update(_block(self._text, gap=self._begun, whole=False), refresh=True)
        self._next = self._clock() + (self._clock() - began) * (_SHARE - 1)

    def hide(self) -> None:
        """Takes the growing block away, so that something else can be printed."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def end(self) -> None:
        """Prints what is left."""
        self.hide()
        self._print(_blocks(self._text))
        self._text, self._begun, self._next = "", False, 0.0

    close = end

    def _print(self, blocks: Iterable[str]) -> None:
        for block in filter(str.strip, blocks):
            self._console.print(_block(block, gap=self._begun, whole=True), end="")
            self._begun = True


def screen(**options: Any) -> Console:
    """Makes rich's console for Markdown; `options` are those of `Console`."""
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme({"markdown.code": "cyan", "markdown.block_quote": "dim"})
    return Console(theme=theme, force_terminal=True, highlight=False, emoji=False, **options)


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


def _block(text: str, *, gap: bool, whole: bool) -> Any:
    """Makes a block for rich, after a blank line if `gap`; only its end if not `whole`."""
    tokens = _parser().parse(text)
    for token in tokens:
        for each in (token, *(token.children or ())):
            # A reference such as &#27; is a character only here, and could name one that does harm.
            each.content = safe(each.content)
    return _kinds()(tokens, gap, whole)


@cache
def _kinds() -> Any:
    """Makes a kind of rich's Markdown with plain headings, and code that can be copied."""
    from rich.console import Group
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.segment import Segment
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

    def stripped(line: list[Segment]) -> list[Segment]:
        while line and not line[-1].text.strip():
            line.pop()
        return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []

    class Shown(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": PlainHeading,
            "fence": PlainCode,
            "code_block": PlainCode,
        }

        def __init__(self, tokens: list[Token], gap: bool, whole: bool) -> None:
            super().__init__("", hyperlinks=False, code_theme="ansi_dark", inline_code_theme=None)
            self.parsed, self.gap, self.whole = tokens, gap, whole

        def __rich_console__(self, console: Any, options: Any) -> Any:
            inner = options.update(width=max(_NARROW, options.max_width - 1), height=None)
            parts = Group(*super().__rich_console__(console, inner))  # type: ignore[arg-type]
            lines = [stripped(line) for line in console.render_lines(parts, inner, pad=False)]
            while lines and not lines[-1]:
                lines.pop()
            lines = [[], *lines] if self.gap and lines else lines
            for line in lines if self.whole else lines[-max(1, console.height - 2) :]:
                yield from (*line, Segment.line())

    return Shown
