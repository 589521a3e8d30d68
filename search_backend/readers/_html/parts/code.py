"""Code as it was typed, whatever a highlighter made of it: its lines, its language, its fence.

Highlighters write a line as an element or a row of a table, and number it in a column or an element
of its own. What they share is the classes below, and that a number of a line is digits alone.
"""

from __future__ import annotations

import re
from textwrap import dedent

from searchloop.search_backend.readers._html.parts import NAMES, WORDS
from searchloop.search_backend.readers._html.parts.scripts import Scripts, marks
from searchloop.search_backend.readers._html.text import bare, plain

_CODE = NAMES["code"]
_CODE_TABLES = _CODE | {"code", "blob"}
_TOKEN = re.compile(r"<([^<>]*)>")
_CLASS = re.compile(r' class="([^"]*)"')
_LINE, _GUTTER, _TOOLS = (
    re.compile(rf"(?i)(?<![\w-])(?:{WORDS[kind]})(?![\w-])") for kind in ("line", "gutter", "tools")
)
# What a visitor does not copy, and a search engine does not quote.
_UNCOPIED = re.compile(r"user-select: ?none| data-nosnippet")
_IS_LINE = re.compile(r" data-line=|display: ?block")
_DIFF = re.compile(r' data-code-marker="([+-])"| class="[^"]*\bdiff (add|remove)\b')
_ROWS = frozenset(("div", "p", "li", "tr", "pre"))
_AROUND_CELLS = frozenset(("table", "tbody", "thead", "tr"))
_VOID = frozenset(("br", "img", "wbr", "hr", "input"))
_SHAPED = re.compile(
    r"<(?:br|div|p|li|tr|t[dh]|pre|button)[ >]|data-line=|display: ?block|user-select| data-nosn"
)
_SHAPING = re.compile(r"(?i)line|lnt?\b|gutter|blob|nums?\b|copy|btn|toolbar")
_is_numbers = re.compile(r"[\s\d.:|\xa0]*").fullmatch
_INLINE_CODE = re.compile(
    r"<(code|tt|samp)((?: [^<>]*)?)>([^<]*+(?>(?:<(?!/?\1[ >])[^<]*+)*))</\1>"
)
_BREAK = re.compile(
    r"<(?:br|div|p|li|tr|pre)[ >]|<span [^<>]*(?:display: ?block|\"line\"|data-line=)"
)
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)
_LANGUAGE = re.compile(
    r'(?:data-lang(?:uage)?="|[ "](?:lang(?:uage)?-|highlight-(?:source-|text-)?|brush: ?'
    r"|(?:sourceCode|hljs|syntaxhighlighter|prettyprint)(?: sourceCode)? ))"
    r"(?!hljs|default|none|text|plain|nohighlight|linenums|language-|lang-)([A-Za-z][\w+#.-]{0,19})"
    r'(?=[ ";])'
)


def shows_code(tag: str, classes: str) -> bool:
    """Tells whether all inside an element of these classes is code."""
    if tag == "pre" or not classes:
        return tag == "pre"
    return not (_CODE_TABLES if tag == "table" else _CODE).isdisjoint(classes.split())


def code_in_blocks(markup: str) -> str:
    """Writes <code> of several lines as <pre>."""
    return _INLINE_CODE.sub(
        lambda code: (
            f"<pre{code[2]}>{code[3]}</pre>"
            if _BREAK.search(code[3]) or ("white-space" in code[2] and "\n" in code[3].strip())
            else code[0]
        ),
        markup,
    )


def language(marks: str) -> str:
    """Returns the language that these tags name, the innermost first, or nothing."""
    found = _LANGUAGE.search(marks)
    return found[1].lower() if found else ""


def ticked(text: str, least: int = 1) -> str:
    """Returns code within a line between backticks: one more than it has in a row."""
    ticks = _ticks(text, least)
    blank = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def fenced(code: str, language: str) -> str:
    """Returns lines of code between fences that the code does not have."""
    ticks = _ticks(code, 3)
    return f"{ticks}{language}\n{code}\n{ticks}"


def _ticks(text: str, least: int) -> str:
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def is_count(code: str) -> bool:
    """Tells whether these are the numbers of the lines of some code beside them."""
    numbers = code.split()
    first = int(numbers[0]) if re.fullmatch(r"[0-9]{1,6}", numbers[0]) else 0
    return len(numbers) > 1 and numbers == [str(first + k) for k in range(len(numbers))]


def lines(html: str) -> str:
    """Returns the code inside an element, line by line, without numbers of lines and buttons."""
    classes = set(_CLASS.findall(html))
    if "<sup" in html or "<sub" in html:
        html = marks(Scripts(html, "\0").written())
    if not _SHAPED.search(html) and not any(map(_SHAPING.search, classes)):
        return _tidy(bare(html))  # text and coloured words
    found = _Lines()
    parts = iter(_TOKEN.split(html))
    found.text(next(parts))
    for tag, text in zip(parts, parts, strict=True):
        if tag[:1] == "/":
            found.end(tag[1:])
        elif tag:
            found.start(tag)
        found.text(text)
    code = _tidy(plain("".join(found.out)))
    return dedent(code) if found.numbered else code


def _tidy(code: str) -> str:
    code = code.replace("\r\n", "\n").replace("\xa0", " ")
    return _BLANK_LINE.sub("", code).strip("\n").rstrip()


class _Lines:
    """Writes down the lines of code while its tags pass by.

    `out` holds what is written, `numbered` tells that numbers of lines stood within the lines.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        self.numbered = False
        # (tag, how much was written before it, what it is)
        self._open: list[tuple[str, int, str]] = []
        self._between = ""  # the tag of the line that has ended right before
        self._only_cell = ""

    def text(self, text: str) -> None:
        """Takes text; a line's end right behind the element that was the line is not another."""
        if text and not text.strip():
            if self._open and self._open[-1][0] in _AROUND_CELLS:
                return
            if self._between:
                text = text.partition("\n")[2]
        if text:
            self._between = ""
            self.out.append(text)

    def start(self, mark: str) -> None:
        """Takes the start of an element."""
        tag = mark.partition(" ")[0]
        if tag in _VOID:
            if tag == "br":
                self.out.append("" if self._between == "span" else "\n")
                self._between = ""
            return
        found = _CLASS.search(mark)
        classes = found[1] if found else ""
        is_line = _LINE.search(classes) is not None or _IS_LINE.search(mark) is not None
        kind = "line" if is_line or (tag in _ROWS and not classes) or tag in ("li", "tr") else ""
        if tag == "button" or _TOOLS.search(classes):
            kind = "tool"
        elif tag in ("td", "th") and (not self._open or self._open[-1][2] != "cells"):
            kind = "first cell"
        elif _GUTTER.search(classes) or _UNCOPIED.search(mark):
            kind = "gutter"
        elif not kind and tag in _ROWS:
            kind = "block"
        self._between = ""
        if kind in ("line", "block"):
            self._begin_line()
        if sign := _DIFF.search(mark):  # a sheet shows it
            self.out.append("-" if sign[1] == "-" or sign[2] == "remove" else "+")
        if tag in ("td", "th"):
            self._only_cell = ""
            if kind == "first cell" and self._open:
                self._open[-1] = (*self._open[-1][:2], "cells")
        self._open.append((tag, len(self.out), kind))

    def end(self, tag: str) -> None:
        """Takes the end of an element."""
        if not any(one == tag for one, _, _ in self._open):
            return
        kind, at = "", 0
        while self._open:
            name, at, kind = self._open.pop()
            if name == tag:
                break
        held = "".join(self.out[at:]) if kind else ""
        is_column = tag == "pre" and held.strip() and is_count(held)
        is_number = kind in ("gutter", "first cell") and _is_numbers(plain(held))
        if kind == "tool" or is_number or is_column:
            self.numbered |= kind == "gutter" and bool(held.strip())
            self._only_cell = held if kind == "first cell" else ""
            del self.out[at:]
        elif kind == "line" or kind == "cells" or (kind == "block" and held):
            if kind == "cells" and self._only_cell:
                self.out.append(self._only_cell)
            if not held.endswith("\n"):
                self.out.append("\n")
            self._between = tag

    def _begin_line(self) -> None:
        """Ends the line before, if there is one; blanks before a line only arrange the markup."""
        while self.out and not (last := self.out[-1]).endswith("\n"):
            if last.strip():
                self.out.append("\n")
            else:
                self.out[-1:] = [head + "\n"] if (head := last.rpartition("\n")[0]) else []
