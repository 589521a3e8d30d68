"""Cuts a document into passages of about 200 words.

Cuts fall between blocks (paragraphs, lists, tables, code); only a block that is far too long is cut
inside, at the end of a sentence. Every passage is a slice of the document, so offsets stay exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = 200
MOST_WORDS = 300

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?。!?])\s+|\n+")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*+\)")


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
