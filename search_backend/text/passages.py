"""Cuts a document into passages of about 120 words, and picks the best excerpt of a passage.

Cuts fall between blocks (paragraphs, lists, tables, code); only a block that is far too long is cut
inside, at the end of a sentence. Every passage is a slice of the document, so offsets stay exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = 120
MOST_WORDS = 180

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?。!?])\s+|\n+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")


@dataclass(frozen=True, slots=True)
class Passage:
    """document[start:end] below `headings`, outermost first; `anchor` is that of the last one."""

    start: int
    end: int
    text: str
    headings: tuple[str, ...]
    anchor: str


def anchor_of(heading: str) -> str:
    """Returns the fragment that links to a heading: lower case, words joined by hyphens."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def title_of(text: str, fallback: str) -> str:
    """Returns the first heading, else `fallback`."""
    for line in text[:20_000].splitlines():
        if match := _HEADING.match(line):
            return plain(match[2])
    return fallback


def section_offset(text: str, anchor: str) -> int | None:
    """Returns the offset of the heading with this anchor; None if there is none."""
    for start, _, heading in _blocks(text):
        if heading is not None and anchor_of(plain(heading[1])) == anchor:
            return start
    return None


def plain(heading: str) -> str:
    """Removes Markdown marks from a heading."""
    return _LINK.sub(r"\1", heading).replace("`", "").replace("**", "").strip()


def split(text: str) -> Iterator[Passage]:
    """Yields the passages of a document in order; headings are context and no passage."""
    stack: list[tuple[int, str]] = []
    pending: list[tuple[int, int]] = []
    for start, end, heading in _blocks(text):
        if heading is not None:
            yield from _packed(text, pending, stack)
            pending = []
            level, words = heading
            stack = [(depth, name) for depth, name in stack if depth < level]
            stack.append((level, plain(words)))
        else:
            pending.append((start, end))
    yield from _packed(text, pending, stack)


def _packed(
    text: str, blocks: list[tuple[int, int]], stack: list[tuple[int, str]]
) -> Iterator[Passage]:
    headings = tuple(name for _, name in stack)
    anchor = anchor_of(headings[-1]) if headings else ""
    first, last, count = -1, -1, 0
    for start, end in (piece for block in blocks for piece in _pieces(text, *block)):
        words = len(text[start:end].split())
        if (count and count + words > MOST_WORDS) or count >= WORDS:
            yield Passage(first, last, text[first:last], headings, anchor)
            count = 0
        if not count:
            first = start
        last, count = end, count + words
    if count:
        yield Passage(first, last, text[first:last], headings, anchor)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the block, cut after sentences into the size of passages if it is far too long."""
    if len(text[start:end].split()) <= MOST_WORDS:
        yield start, end
        return
    first, count = start, 0
    position = start
    for match in (*_SENTENCE_END.finditer(text, start, end), None):
        stop = match.start() if match else end
        count += len(text[position:stop].split())
        position = match.end() if match else end
        if count >= WORDS or match is None:
            # A text without sentence ends, or in a script without blanks, is cut by length.
            for at in range(first, stop, 8 * MOST_WORDS):
                yield at, min(at + 8 * MOST_WORDS, stop)
            first, count = position, 0


def _blocks(text: str) -> Iterator[tuple[int, int, tuple[int, str] | None]]:
    """Yields (start, end, None) of each block, (start, end, (level, words)) of each heading."""
    start = end = -1
    fence = ""
    position = 0
    for line in text.split("\n"):
        here, position = position, position + len(line) + 1
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading or (not line.strip() and not fence):
            if start >= 0:
                yield start, end, None
                start = -1
            if heading:
                yield here, here + len(line), (len(heading[1]), heading[2])
        else:
            start = here if start < 0 else start
            end = here + len(line)
    if start >= 0:
        yield start, end, None


OPEN, CLOSE = "\x02", "\x03"
LENGTH = 480
TABLE_ROW = 2.0
# Forms of one word begin alike.
STEM = 4

_MARKED = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_UNIT = re.compile(r"[^\n]*?(?:[.!?。!?](?=\s)|\n|$)", re.DOTALL)


def excerpt(marked: str, length: int = LENGTH) -> str:
    """Returns the sentences of `marked`, about `length` characters, with most of the found words.

    OPEN and CLOSE mark found words.
    """
    if len(marked) - marked.count(OPEN) * 2 <= length:
        return _plain(marked)
    units = [unit.strip() for unit in _UNIT.findall(marked) if unit.strip()]
    best, best_score = 0, -1.0
    for at in range(len(units)):
        window = _window(units, at, length)
        words = {word[:STEM].lower() for word in _MARKED.findall(window)}
        # Different words count most, repetition a little, and what comes first leads into the rest.
        score = len(words) + window.count(OPEN) / 100 - at / len(units)
        # Rows of a table say little by themselves.
        score -= TABLE_ROW if units[at][0] == "|" else 0
        if score > best_score:
            best, best_score = at, score
    text = _plain(_window(units, best, length))
    return ("… " if best else "") + text


def _window(units: list[str], at: int, length: int) -> str:
    window = units[at]
    for unit in units[at + 1 :]:
        if len(window) + len(unit) > length:
            break
        window += " " + unit
    return window


def _plain(marked: str) -> str:
    text = marked.replace(OPEN, "").replace(CLOSE, "")
    return re.sub(r"\s+", " ", text).strip()[: LENGTH * 2]
