"""Reads the date of a page, as search engines, model servers, mails and pages write it."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

_LONGEST = 60  # characters; what is longer is no date
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = re.compile(
    r"(?:(?P<month>[a-z]{3,9})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"|(?P<first>\d{1,2})\.? (?P<then>[a-z]{3,9})\.?),? (?P<year>\d{4})"
)
_FIGURES = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?!\d).*|(\d{4})/(\d\d?)/(\d\d?)|(\d\d?)/(\d\d?)/(\d{4})"
)
_AGO = re.compile(r"(\d{1,4}|an?|one) (minute|hour|day|week|month|year)s? ago")
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 7 * 24, "month": 730, "year": 8766}


def iso_date(told: object, now: datetime | None = None) -> str | None:
    """Returns YYYY-MM-DD, also for Unix seconds; None for what is no date.

    `now` is the base of "3 days ago".
    """
    if isinstance(told, int) and 1e8 < told < 4e9:
        return datetime.fromtimestamp(told, UTC).date().isoformat()
    text = " ".join(told.lower().split()) if isinstance(told, str) and len(told) <= _LONGEST else ""
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        return _read(text, now or datetime.now(UTC)).isoformat()
    return None


def _read(text: str, now: datetime) -> date:
    """Raises ValueError and what date and mail parsers raise."""
    if ago := _AGO.fullmatch(text):
        count = int(ago[1]) if ago[1].isdigit() else 1
        return (now - timedelta(hours=count * _HOURS[ago[2]])).date()
    if said := _NAMED.fullmatch(text):
        month = _MONTHS.index((said["month"] or said["then"])[:3]) + 1
        return date(int(said["year"]), month, int(said["day"] or said["first"]))
    if figures := _FIGURES.fullmatch(text):
        numbers = [int(one) for one in figures.groups() if one]
        year, month, day = numbers
        if figures.lastindex == 9:  # 3/14/2026 and 14/3/2026 are one day, 3/4/2026 may be two
            day, month, year = numbers
            if day != month and max(day, month) <= 12:
                raise ValueError(text)
            day, month = (month, day) if month > 12 else (day, month)
        return date(year, month, day)
    return parsedate_to_datetime(text).date()
