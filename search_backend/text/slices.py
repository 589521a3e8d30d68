"""Cuts a text into slices that end at a natural break, and finds passages. Offsets are code points.

Joined slices are the whole text. A search for words in a row ignores case, as Unicode folds it
(`STRASSE` finds `Straße`), the dots of Turkish i and the width of blanks. Folding changes lengths,
so folded text remembers its positions. It uses no pattern: a repetitive page cannot make it slow.

Spec: Unicode 3.13, default caseless matching
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right

from searchloop.search_backend.text.ranking import best_passages
from searchloop.search_backend.types import Match

# Blanks that become one, and every letter that case folding makes several of (a few more besides).
_UNEVEN = re.compile(
    r"\s\s+|[^\S ]|[\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9e\u1f50-\u1fff\ufb00-\ufb17]"
)


def fold(text: str) -> str:
    """Folds the case of `text`, whose length may change."""
    return text.replace("\u0130", "i").replace("\u0131", "i").casefold()


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """Returns (start, end) of each place where `words` stand in a row; none overlap."""
    needle = _Folded(" ".join(words.split())).text
    hay = _Folded(text)
    spans: list[tuple[int, int]] = []
    at = hay.text.find(needle) if needle else -1
    while at >= 0:
        start, end = hay.source(at)[0], hay.source(at + len(needle) - 1)[1]
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
        at = hay.text.find(needle, at + len(needle))
    return spans


class _Folded:
    """A folded text with single blanks, which maps its characters back to their source."""

    def __init__(self, text: str) -> None:
        # What keeps its length needs no note; line ends are the most of it.
        even = text.replace("\n", " ").replace("\t", " ").replace("\u0130", "i")
        # Where each uneven piece begins and ends: here, and in the text.
        self._begins, self._ends = array("q"), array("q")
        self._from, self._to = array("q"), array("q")
        pieces: list[str] = []
        length = last = 0
        for found in _UNEVEN.finditer(even):
            piece = " " if found[0].isspace() else found[0].casefold()
            pieces += (even[last : found.start()], piece)
            length += found.start() - last
            last = found.end()
            self._begins.append(length)
            length += len(piece)
            self._ends.append(length)
            self._from.append(found.start())
            self._to.append(last)
        pieces.append(even[last:])
        self.text = fold("".join(pieces))

    def source(self, at: int) -> tuple[int, int]:
        """Returns the (start, end) in the source of the character at `at`."""
        piece = bisect_right(self._begins, at) - 1
        if piece < 0:
            return at, at + 1
        if at < self._ends[piece]:
            return self._from[piece], self._to[piece]
        start = at - self._ends[piece] + self._to[piece]
        return start, start + 1


# A cut may move back by this share of the slice to end at a better place.
SLACK = 0.3
AROUND = 400
BEST = 3  # passages for words that stand nowhere together
_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?。!?][\"')\]]*\s+|\n|[。!?]"), re.compile(r"\s+"))


def cut(text: str, offset: int, length: int) -> int:
    """Returns the end of the slice at `offset`: after a paragraph, a sentence or a word."""
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
    """Returns (passages around `words`, number of places, offset to continue at or None).

    Adjacent passages are merged; together they have at most `most` characters. If `words` never
    occur in a row, paragraphs that contain every single word count, else the best of the passages
    that `ranking` finds.
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
    if places := occurrences(text, words):
        return places
    folded = dict.fromkeys(map(fold, parts))
    paragraphs = ((p.span(), fold(p[0])) for p in re.finditer(r"[^\n]+", text))
    found = [place for place, line in paragraphs if all(part in line for part in folded)]
    return found or _ranked(text, words)


def _ranked(text: str, words: str) -> list[tuple[int, int]]:
    return sorted((p.start, p.end) for p in best_passages(text, words)[:BEST])


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
    """Returns the start of the paragraph, or of a word if the paragraph is long."""
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
