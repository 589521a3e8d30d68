"""Which day it is, told so that nothing that was sent before changes.

The system text names the day of a session's first question and keeps it past midnight, because a
prompt that begins otherwise is paid and read anew. A question of another day says so at its end.
Models reach for the years they were trained in, so years that nobody asked for are found here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from agent.types import Message

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def day_of(at: float) -> str:
    """The day of a moment (epoch seconds), here, as 2026-11-21."""
    return date.fromtimestamp(at).isoformat()


def dated_question(text: str, day: str, before: Sequence[Message]) -> Message:
    """A question as the transcript holds it, after what was said `before`."""
    first = first_day(before) or day
    if day == first:
        return Message("user", text, details={"day": day})
    content = f"{text}\n\n[Asked on {day}.]"
    return Message("user", content, details={"day": day, "asked": text})


def first_day(messages: Iterable[Message]) -> str | None:
    """The day of the first question; None before there is one."""
    return next((m.details.get("day") for m in messages if m.role == "user"), None)


def asked(message: Message) -> str:
    """What the user wrote of a question."""
    return str(message.details.get("asked", message.content))


def strange_years(query: str, said: str, this_year: int) -> list[str]:
    """The past years in a query that the user never mentioned."""
    own = set(_YEAR.findall(said))
    found = dict.fromkeys(_YEAR.findall(query))
    return [year for year in found if int(year) < this_year and year not in own]
