"""The day of a page, of the ways in which providers tell it beside what their search found.

Anthropic's `page_age` is free text or null: "April 30, 2025", "3 weeks ago". A server that speaks
Chat Completions and lists `search_results` gives `date` as 2025-04-30. OpenAI's and Gemini's own
searches tell no date.

Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
      https://docs.perplexity.ai/api-reference/chat-completions-post
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_LONGEST = 60  # characters; what is longer is no date
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WRITTEN = re.compile(
    r"(?P<month>[a-z]{3,9})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})"
)
_PLAIN = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?:[t ].*)?")
_AGO = re.compile(r"(\d{1,4}|an?|one) (minute|hour|day|week|month|year)s? ago")
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 7 * 24, "month": 730, "year": 8766}


def page_date(told: object, now: datetime | None = None) -> str | None:
    """YYYY-MM-DD, or None where there is no telling. `now` is when "3 days ago" was said."""
    text = " ".join(told.lower().split()) if isinstance(told, str) and len(told) < _LONGEST else ""
    if ago := _AGO.fullmatch(text):
        count = int(ago[1]) if ago[1].isdigit() else 1
        return _before(now or datetime.now(UTC), timedelta(hours=count * _HOURS[ago[2]]))
    said = _PLAIN.fullmatch(text) or _WRITTEN.fullmatch(text)
    return _day(said["year"], said["month"], said["day"]) if said else None


def _before(now: datetime, time: timedelta) -> str | None:
    try:
        return (now - time).date().isoformat()
    except OverflowError:
        return None


def _day(year: str, month: str, day: str) -> str | None:
    named = month[:3] in _MONTHS
    if not named and not month.isdigit():
        return None
    number = _MONTHS.index(month[:3]) + 1 if named else int(month)
    try:
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None
