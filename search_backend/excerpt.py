"""The part of a passage that answers best: the run of sentences with most of the words."""

from __future__ import annotations

import re

OPEN, CLOSE = "\x02", "\x03"
LENGTH = 480
TABLE_ROW = 2.0
# Forms of one word begin alike.
STEM = 4

_MARKED = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_UNIT = re.compile(r"[^\n]*?(?:[.!?。!?](?=\s)|\n|$)", re.DOTALL)


def excerpt(marked: str, length: int = LENGTH) -> str:
    """About `length` characters of `marked`, which holds found words between OPEN and CLOSE."""
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
