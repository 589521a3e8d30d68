"""Reads dates and times of day in whatever form: `3 May 1912`, `03.05.1912`, `3 pm`, `15:00`.

A month and a time are numbers with a unit of their own, so that two of them exclude each other.
"""

from __future__ import annotations

import re
from functools import lru_cache

from searchloop.agent.verdicts.numbers import CLOCK, MONTH, TABLES, Number
from searchloop.analysis.words import table

_MONTHS = table(TABLES["months"])
_DATE = re.compile(
    r"(?P<one>\d{1,2})(?P<by>\. ?|/|-)(?P<two>\d{1,2})(?P=by)(?P<year>[12]\d{3})(?![.\d]*\d)"
    r"|(?P<year_>[12]\d{3})(?P<by_>[./-])(?P<month>\d{1,2})(?P=by_)(?P<day>\d{1,2})(?![.\d]*\d)"
)


@lru_cache(maxsize=8192)
def month(word: str, lang: str) -> Number | None:
    """Returns the number of a month from its name, or from three letters of it or more."""
    names = _MONTHS.get(lang or "en", ())
    found = (n for n, name in enumerate(names, 1) if len(word) > 2 and name.startswith(word))
    return next((Number(n, MONTH) for n in found), None)


def read(text: str, start: int, lang: str) -> tuple[list[Number], int] | None:
    """Returns the numbers of a date or a time that begins here, and its end."""
    return _date(text, start, lang) or _time(text, start, lang)


def _date(text: str, start: int, lang: str) -> tuple[list[Number], int] | None:
    """Reads `03.05.1912` or `1912-05-03`; returns day, month and year, and the end.

    `03/05/1912` is no date in English: one reader takes it for May, and another for March.
    """
    found = _DATE.match(text, start)
    if not found:
        return None
    year, by = found["year"] or found["year_"], found["by"]
    day, of = (int(found[k]) for k in (("one", "two") if by else ("day", "month")))
    if by and of > 12:
        day, of = of, day
    unsure = by and by[0] != "." and lang in ("en", "") and day <= 12 and day != of
    if unsure or not 0 < of <= 12 or not 0 < day <= 31:
        return None
    parts = [Number(day, ""), Number(of, MONTH), Number(int(year), "")]
    return parts[::-1] if lang in ("zh", "ja") else parts, found.end()


_TIME = re.compile(
    r"(?P<hour>[01]?\d|2[0-3])(?:(?P<by>[:.h])(?P<minute>[0-5]\d))?(?![\d:])"
    r"(?: ?(?P<half>[ap])\.? ?m\b\.?| ?(?P<hours>Uhr)\b)?",
    re.IGNORECASE,
)


def _time(text: str, start: int, lang: str) -> tuple[list[Number], int] | None:
    """Reads `15:45`, `3:45 pm`, `15h45` or `15.45 Uhr` as minutes since midnight.

    `3:45` in English tells no half of the day.
    """
    found = _TIME.match(text, start)
    if not found or not (found["half"] or found["by"] in (":", "h") or found["hours"]):
        return None
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    unsure = lang in ("en", "") and not found["half"] and 0 < hour < 13 and found["hour"][0] != "0"
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"] in "pP")
    return [Number(60 * hour + minute, CLOCK, "half" * unsure)], found.end()
