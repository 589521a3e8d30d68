"""Where words occur in a text, whatever their case and the blanks between them.

Case is folded as Unicode has it, so letters that are several in the other case are found by them
(`STRASSE` and `Straße`, ligatures); the dots of Turkish i make no difference. Folding changes
lengths, so what was folded remembers where it stood. The search is a plain one: a page that repeats
itself cannot make it slow, as it could with a pattern.

Spec: Unicode 3.13, default caseless matching
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right

# Blanks that become one, and every letter that case folding makes several of (a few more besides).
_UNEVEN = re.compile(
    r"\s\s+|[^\S ]|[\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9e\u1f50-\u1fff\ufb00-\ufb17]"
)


def fold(text: str) -> str:
    """The text without differences of case; its length may be another."""
    return text.replace("\u0130", "i").replace("\u0131", "i").casefold()


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """(start, end) in code points of each place where `words` stand in a row; none overlap."""
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
    """A text folded, with one blank for many, and where each of its characters comes from."""

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
        """Where in the text the character at `at` comes from: (start, end)."""
        piece = bisect_right(self._begins, at) - 1
        if piece < 0:
            return at, at + 1
        if at < self._ends[piece]:
            return self._from[piece], self._to[piece]
        start = at - self._ends[piece] + self._to[piece]
        return start, start + 1
