"""Markdown that a model wrote, so that whoever opens it elsewhere loads nothing by that.

Other viewers show images of any address and let HTML through, so opening an export would tell a
stranger's server that it is read, and what was written into the address. Here `![` and the `<` of a
tag are written as the characters that they are; the page shows both as words as well. Code stays
byte by byte as it is.

What is code depends on who reads. First what is code to no viewer is escaped, then what is not code
to all of them, with and without tables, formulas and markup. Escaping can change what is code, so
each is repeated until nothing changes; a text that does not come to rest is escaped throughout.
https://spec.commonmark.org/0.31.2/#images, #raw-html
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from web.maths import math

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

_ROUNDS = 8
_LONGEST = 4096  # characters of a paragraph in which code is looked for: more make a parser slow
_LIVE = re.compile(r"!\[|<(?=[A-Za-z/!?])")
_AUTOLINK = re.compile(r"<https?://[^\s<>`]*>", re.IGNORECASE)
_FOOTNOTE = re.compile(r"!\[\^\d+\]")
_LINE_END = re.compile(r"\r\n?|\n")


def inert(text: str) -> str:
    """The same words without images and HTML; footnotes and addresses in `<>` stay."""
    for _ in range(_ROUNDS):
        if not _LIVE.search(text):
            return text
        kinds = _code(text)
        quiet = _escaped(text, bytes(map(max, kinds)))
        if quiet == text:
            quiet = _escaped(text, bytes(map(min, kinds)))
        if quiet == text:
            return text
        text = quiet
    return _escaped(text, bytes(len(text)))


def closed(text: str) -> str:
    """The text with its last fence closed, so that what follows is not taken for code."""
    last = _blocks(False, False).parse(f"{text}\n\nend")[-1]
    return f"{text}\n{last.markup}" if last.type == "fence" else text


def _escaped(text: str, code: bytes) -> str:
    """Escapes what would be live outside code; `code` holds a 1 for each character of code."""

    def escape(live: re.Match[str]) -> str:
        at = live.start()
        slashes = itertools.takewhile(lambda i: text[i] == "\\", range(at - 1, -1, -1))
        if code[at] or sum(1 for _ in slashes) % 2:
            return live[0]
        if live[0] == "<":
            return "<" if _AUTOLINK.match(text, at) else "&lt;"
        return "! [" if _FOOTNOTE.match(text, at) else "!\\["

    return _LIVE.sub(escape, text)


def _code(text: str) -> list[tuple[int, ...]]:
    """For each character what it is to each kind of viewer: 1 for code."""
    signs = ("|",), ("<",), ("$", "\\")  # of tables, markup and formulas
    unsure = [(False, True) if any(sign in text for sign in of) else (False,) for of in signs]
    kinds = [_marked(text, *kind) for kind in itertools.product(*unsure)]
    return list(zip(*kinds, strict=True))


def _marked(text: str, tables: bool, markup: bool, formulas: bool) -> bytearray:
    code = bytearray(len(text))
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    for token in _blocks(tables, markup).parse(text):
        if token.map is None:
            continue
        lines = starts[token.map[0] : token.map[1] + 1]
        if token.type in ("fence", "code_block"):
            code[lines[0] : lines[-1]] = b"\1" * (lines[-1] - lines[0])
        elif "`" in token.content and len(token.content) <= _LONGEST:
            _mark_spans(token.content, text, lines, code, formulas)
    return code


def _mark_spans(
    content: str, text: str, lines: Sequence[int], code: bytearray, formulas: bool
) -> None:
    """Marks the code spans of a block, whose lines begin in the text at `lines`.

    A line is found where it stands without what leads to it (`> `, `- `). One that is not there as
    it is, as in a cell with an escaped bar, or there twice, leaves the block without code.
    """
    where: list[int] = []
    for line, start, end in zip(content.split("\n"), lines, lines[1:], strict=False):
        at = text.find(line, start, end)
        if at < 0 or at != text.rfind(line, start, end):
            return
        where += range(at, at + len(line) + 1)
    spans: list[tuple[int, int]] = []
    _lines(formulas).inline.parse(content, _lines(formulas), {"spans": spans, "of": content}, [])
    for position in (where[i] for first, last in spans for i in range(first, last)):
        code[position] = 1


@functools.cache
def _blocks(tables: bool, markup: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": markup})
    if tables:
        parser.enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@functools.cache
def _lines(formulas: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import backtick

    def noted(state: StateInline, silent: bool) -> bool:
        start, tokens = state.pos, len(state.tokens)
        found = backtick(state, silent)
        made = found and len(state.tokens) > tokens and state.tokens[-1].type == "code_inline"
        if made and state.src == state.env["of"]:  # the words of an image are read apart
            state.env["spans"].append((start, state.pos))
        return found

    parser = MarkdownIt("commonmark", {"html": False}).disable("html_inline")
    parser.inline.ruler.at("backticks", noted)
    if formulas:
        parser.inline.ruler.before("escape", "math", math)
    return parser
