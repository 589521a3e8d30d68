"""Cuts a text into slices that end at a natural break, and finds passages. Offsets are code points.

Joined slices are the whole text. A search for words in a row ignores case and the width of blanks.
"""

from __future__ import annotations

import re

from searchloop.search_backend.text.ranking import best_passages
from searchloop.search_backend.types import Match


def fold(text: str) -> str:
    """Folds the case of `text`, whose length may change."""
    return text.replace("\u0130", "i").replace("\u0131", "i").casefold()


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """Returns (start, end) of each place where `words` stand in a row; none overlap."""
    wanted = r"\s++".join(map(re.escape, words.split()))
    return [found.span() for found in re.finditer(wanted, text, re.IGNORECASE) if wanted]


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
