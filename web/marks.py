"""Where citation marks stand in a text, and putting something else in their place.

The span of a citation's mark is either the mark itself (`[2]`, or the link that a provider wrote as
one) or the words that the source bears out. A mark is replaced; after words the mark is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NUMBERS = re.compile(
    r"(?<![\\!\]])\[(\d{1,4}(?:\s?[,;]\s?\d{1,4})*)\](?![(:])|(?<=\])\[(\d{1,4})\](?![(:])"
)
_IS_MARK = re.compile(
    r"\s*(?:\[[^\[\]]{1,200}\](?:\([^()\s]{0,2000}\))?|\(\[[^\[\]]{1,200}\]\([^()\s]{0,2000}\)\)|【[^】]{1,100}】)\s*"
)

_BEHIND = " \t\r\n|"  # a mark goes before these, or it would start a line or a cell of its own
_NO_WORDS = re.compile(r"(?:^|\n)[ >]{0,8}(?:```+|~~~+|\*\*\*+|---+|===+)\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """Citations `numbers` belong in place of `text[start:end]`; an empty range adds them.

    Each number has the places, in the list of its citation's marks, of those that stand here.
    """

    start: int
    end: int
    numbers: Mapping[int, tuple[int, ...]]


def find_marks(
    text: str, citations: Sequence[Mapping[str, Any]], numbers: Collection[int] = ()
) -> list[Mark]:
    """Marks in order, none overlapping: those of citations, and each `[n]` in `numbers`."""
    found: dict[tuple[int, int], dict[int, tuple[int, ...]]] = {}
    for citation in citations:
        n = int(citation["n"])
        for i, mark in enumerate(citation.get("marks", ())):
            start, end = mark["span"] or (0, 0)
            if 0 <= start < end <= len(text):
                here = found.setdefault(_place(text, start, end), {})
                here[n] = (*here.get(n, ()), i)
    if numbers:
        for match in _NUMBERS.finditer(text):
            known = [n for n in map(int, re.findall(r"\d+", match[0])) if n in numbers]
            if known and match.span() not in found:
                found[match.span()] = dict.fromkeys(known, ())
    marks: list[Mark] = []
    reached = 0
    for (start, end), which in sorted(found.items()):
        if start >= reached:
            marks.append(Mark(start, end, which))
            reached = end
        elif start < end and end <= reached:
            continue
        else:
            marks.append(Mark(max(end, reached), max(end, reached), which))
            reached = max(end, reached)
    return marks


def _place(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    stripped = words.strip()
    lead = start + len(words) - len(words.lstrip())
    if len(stripped) < 4000 and _IS_MARK.fullmatch(stripped):
        return lead, lead + len(stripped)
    kept = _NO_WORDS.sub("", words.rstrip(_BEHIND)).rstrip(_BEHIND)
    after = start + len(kept) if kept.strip() else end
    return after, after


def substitute(text: str, marks: Sequence[Mark], write: Callable[[Mark], str]) -> str:
    """The text with `write(mark)` in the place of each mark."""
    out: list[str] = []
    last = 0
    for mark in marks:
        out += (text[last : mark.start], write(mark))
        last = mark.end
    out.append(text[last:])
    return "".join(out)
