"""Cuts out of an answer the words that a mark speaks for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from searchloop.agent.verdicts.text import PIECE, blanked
from searchloop.analysis.sentences import sentences

FEW = 3  # words; fewer claim nothing by themselves
BACK = 6  # sentences that a quotation before a mark may span
_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n|[-*+|#>•]|\d+[.)] )")
_BRACKET = re.compile(r"\s*\(?\[[^\]]*\](?:\((?:[^()\n]|\([^()\n]*\))*\))?\)?\s*|\s*【[^】]*】\s*")
_WORDED = re.compile(
    r"\[[^\[\]]*[^\W\d_][^\[\]]*\]\([^\n]*\)"
)  # a link that is a part of its sentence
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.,:/-]*")
# Opening and closing quotation marks; of the straight one, two make a pair.
_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ("『", "』"))


class Claims:
    """The claims of one answer. `places` are the half-open ranges of all its marks."""

    def __init__(self, text: str, places: Iterable[tuple[int, int]]) -> None:
        places = sorted(set(places))
        apart = [p for p in places if _is_bracket(mark := text[slice(*p)]) and not _worded(mark)]
        self._text = without(blanked(text), apart)
        self._raw = text
        self._ends = [end for _, end in places]
        self._sentences = sentences(self._text)
        self._starts = [start for start, _ in self._sentences]

    def at(self, start: int, end: int) -> tuple[str, ...]:
        """Returns what the mark at [`start`, `end`) claims, the widest reading first.

        A mark that holds words claims them, whole ones where a provider cuts `1.0.0`. A mark in
        brackets claims its sentence up to there; behind an earlier mark of this sentence, perhaps
        only the words since then. A link in words claims its whole sentence.
        """
        if not _is_bracket(self._raw[start:end]):
            for word in _WORD.finditer(self._text, max(0, start - 60), end + 60):
                start = word.start() if word.start() < start < word.end() else start
                end = word.end() if word.start() < end < word.end() else end
            return (self._text[start:end],)
        number = bisect_right(self._starts, start) - 1
        if number < 0:
            return (self._sentence(0),) if self._sentences else ()
        first, last = self._sentences[number]
        if _worded(self._raw[start:end]):
            return (self._text[first:last],)
        if start >= last and _PARAGRAPH.search(self._text, last, start):
            following = number + 1 < len(self._sentences)
            return (self._sentence(number + following),)
        alone = self._text[first] in "(（" and count_words(self._text[first:last]) < 2
        if number and (alone or not count_words(self._text[first:last])):  # `(Source: [1])`, a cell
            return (self._sentence(number - 1),)
        before = self._text[first : min(start, last)]
        if start < last and count_words(before) < FEW:
            return (self._text[first:last],)
        whole = self._text[self._opened(number, min(start, last)) : min(start, last)]
        earlier = [at for at in self._ends if first < at <= start]
        part = self._text[earlier[-1] : start] if earlier and start <= last else ""
        if count_words(part) < FEW:
            return (whole,)
        return whole, part

    def _sentence(self, number: int) -> str:
        first, last = self._sentences[number]
        return self._text[first:last]

    def _opened(self, number: int, end: int) -> int:
        """Returns where the claim begins: where its first quotation does, sentences earlier."""
        for back in range(number, max(number - BACK, -1), -1):
            first = self._starts[back]
            if not torn(self._text[first:end]):
                return first
            if back and "\n\n" in self._text[self._sentences[back - 1][1] : first]:
                break
        return self._starts[number]


def count_words(text: str) -> int:
    """Counts words; two letters of a script without spaces count as one."""
    return sum(len(m[0]) // 2 if m.lastgroup == "run" else 1 for m in PIECE.finditer(text))


def torn(text: str) -> bool:
    """Tells whether a text closes a quotation that it does not open."""
    if text.count('"') % 2:
        return True
    return any(text.count(close) > text.count(opened) for opened, close in _PAIRS)


def _is_bracket(mark: str) -> bool:
    """Tells a mark such as `[2]`, or a link that stands for one, from words of the answer."""
    return bool(_BRACKET.fullmatch(mark[:4000]))


def _worded(mark: str) -> bool:
    return _WORDED.fullmatch(mark[:4000]) is not None


def without(text: str, places: Iterable[tuple[int, int]]) -> str:
    """Returns the text with blanks at these places, so that all others stay where they are."""
    out: list[str] = []
    last = 0
    for start, end in places:
        if start >= last:
            out += (text[last:start], blank(text[start:end]))
            last = end
    return "".join([*out, text[last:]])


def blank(text: str) -> str:
    """Returns blanks in place of a text, in as many lines."""
    return re.sub(r"[^\n]", " ", text)
