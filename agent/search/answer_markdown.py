"""The parser of answers: one reading of Markdown for citation marks and for the page.

HTML is text. Formulas are TeX between `$$...$$`, `\\[...\\]`, `\\(...\\)` or `$...$`. A single
dollar sign opens a formula only where no blank follows, and closes it only where none precedes and
no digit follows, so prices stay prices. Input that makes a parser slow is cut into pieces first.
https://spec.commonmark.org/0.31.2/
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

DEEPEST = 40  # levels of blocks
_BRACKETS = 5  # depth of brackets in which links are found
_COLUMNS = 64
_PIECE = 4096  # characters of a paragraph that are parsed at once
_LONGEST = 2000  # characters of one formula
_FORMULA = re.compile(
    rf"\$\$(?P<a>[^$]{{1,{_LONGEST}}})\$\$|\\\[(?P<b>(?:(?!\\\]).){{1,{_LONGEST}}})\\\]"
    rf"|\\\((?P<c>(?:(?!\\\)).){{1,{_LONGEST}}})\\\)"
    rf"|\$(?P<d>(?![\s$])(?:\\.|[^$\\\n]){{0,{_LONGEST}}}(?<![\s\\]))\$(?!\d)",
    re.DOTALL,
)
_FOOTNOTE = re.compile(r"\[\^(\d{1,3})\](?![(:\[])", re.ASCII)
_NOTE = re.compile(r"\[\^\d{1,3}\]:", re.ASCII)
_CLOSERS = {"\\(": "\\)", "\\[": "\\]"}


@functools.cache
def block_parser() -> MarkdownIt:
    """Returns the parser of blocks. It leaves their lines as they are.

    Reference definitions, which reach across blocks, are not read: a block depends on nothing else.
    """
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import table
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote.index import footnote_def

    def narrow_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        line = state.src[state.bMarks[start] : state.eMarks[start]]
        return line.count("|") <= _COLUMNS and table(state, start, end, silent)

    def numbered(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        """Reads a footnote where its label is a number, as `footnote` does."""
        line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
        return bool(_NOTE.match(line)) and footnote_def(state, start, end, silent)

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).use(deflist_plugin)
    parser.block.ruler.before("reference", "footnote", numbered, {"alt": ["paragraph"]})
    parser.enable("table").disable(["reference", "html_block"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("table", narrow_table, {"alt": ["paragraph", "reference"]})
    return parser


@functools.lru_cache(maxsize=512)  # a growing table or list comes again with each line
def inline_tokens(content: str) -> list[Token]:
    """Parses the content of a block. Addresses stay as they are written."""
    tokens: list[Token] = []
    for piece in _pieces(content):
        _inline_parser().inline.parse(piece, _inline_parser(), {}, tokens)
    return tokens


@functools.cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _BRACKETS})
    parser.enable("strikethrough").disable("html_inline")
    parser.inline.ruler.before("escape", "math", math)
    parser.inline.ruler.before("link", "footnote", footnote)
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    return parser


def math(state: StateInline, silent: bool) -> bool:
    """Parses one formula into a token of its own: a rule of markdown-it's inline parser."""
    if state.src[state.pos] not in "$\\":
        return False
    closer = _CLOSERS.get(state.src[state.pos : state.pos + 2], "$")
    if state.src.find(closer, state.pos + 1) < 0:  # faster than the expression
        return False
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("math", "", 0)
        token.content = next(text for text in found.groups() if text is not None).strip()
        token.markup, token.block = found[0], found.lastgroup in ("a", "b")
    state.pos = found.end()
    return True


def footnote(state: StateInline, silent: bool) -> bool:
    """Parses the number of a footnote, `[^1]`; letters may as well be a class of characters."""
    found = _FOOTNOTE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("footnote", "", 0).content = found[1]
    state.pos = found.end()
    return True


def _pieces(content: str) -> list[str]:
    """Splits a long paragraph, at a line end or a blank where there is one."""
    pieces = []
    start = 0
    while len(content) - start > _PIECE:
        end = max(content.rfind(mark, start + 1, start + _PIECE) for mark in ("\n", " "))
        end = end if end > start else start + _PIECE
        pieces.append(content[start:end])
        start = end
    pieces.append(content[start:])
    return pieces
