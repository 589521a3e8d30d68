"""Cut a text into slices that end where a reader would stop, and find passages. Pure functions.

Offsets are code points. Slices follow each other without a gap: all of them joined are the text.
"""

from __future__ import annotations

import re

from search_backend.occurrences import fold, occurrences
from search_backend.types import Match

# A cut may move back by this share of the slice to end at a better place.
SLACK = 0.3
AROUND = 400
_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?。!?][\"')\]]*\s+|\n|[。!?]"), re.compile(r"\s+"))


def cut(text: str, offset: int, length: int) -> int:
    """Where the slice that begins at `offset` ends: after a paragraph, a sentence or a word."""
    limit = offset + length
    if limit >= len(text):
        return len(text)
    earliest = offset + max(1, int(length * (1 - SLACK)))
    for pattern in _ENDS:
        # An end that begins inside the slice counts only if all of it fits.
        ends = [m.end() for m in pattern.finditer(text, earliest - 1, limit) if m.end() >= earliest]
        if ends:
            return ends[-1]
    return limit


def find(text: str, words: str, most: int) -> tuple[list[Match], int, int | None]:
    """Passages round each place where `words` occur, how many places there are, where to go on.

    Case and the width of blanks do not matter. Passages that touch are one; together they hold at
    most `most` characters. Without a literal occurrence, places that hold every single word count.
    """
    places = _places(text, words)
    matches: list[Match] = []
    room = most
    for start, end in _merged(text, places):
        end = min(end, start + room)
        if end <= start:
            break
        matches.append(Match(start, end, text[start:end]))
        room -= end - start
    reached = matches[-1].end if matches else 0
    more = reached if any(start >= reached for start, _ in places) else None
    return matches, len(places), more


def _places(text: str, words: str) -> list[tuple[int, int]]:
    parts = words.split()
    if not parts:
        return []
    places = occurrences(text, words)
    if places or len(parts) == 1:
        return places
    folded = dict.fromkeys(map(fold, parts))
    paragraphs = ((p.span(), fold(p[0])) for p in re.finditer(r"[^\n]+", text))
    return [place for place, line in paragraphs if all(part in line for part in folded)]


def _merged(text: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in places:
        begin, stop = _start(text, start), _end(text, end)
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    return merged


def _start(text: str, at: int) -> int:
    """The begin of the paragraph, or of a word when the paragraph is long."""
    earliest = max(0, at - AROUND)
    line = text.rfind("\n", earliest, at) + 1
    if line > 0 or earliest == 0:
        return max(line, 0)
    blank = text.find(" ", earliest, at)
    return blank + 1 if blank >= 0 else earliest


def _end(text: str, at: int) -> int:
    latest = min(len(text), at + AROUND)
    line = text.find("\n", at, latest)
    if line >= 0:
        return line
    if latest == len(text):
        return latest
    blank = text.rfind(" ", at, latest)
    return blank if blank > at else latest
