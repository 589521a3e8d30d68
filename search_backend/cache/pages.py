"""Pages read before, and the time for which they are fresh.

This is a private cache for one user, so `private` and `s-maxage` do not matter. A header that
cannot be parsed counts as stale. A page without any is fresh for the time in the settings. A page
that must not be stored stays in memory for reading on.

Spec: RFC 9111 4.2, 5.2, 5.3
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from searchloop.search_backend.types import Freshness, Page

# An opened page does not change for so long, whatever its server says, so one can read on in it.
READING_SECONDS = 900.0
LONGEST = 86_400.0
_DIRECTIVE = re.compile(r'([!#$%&\'*+.^_`|~0-9a-z-]+)(?:\s*=\s*("[^"]*"|[^\s,"]*))?', re.I)


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page, and the seconds since it was fetched."""

    page: Page
    age: float

    @property
    def fresh(self) -> bool:
        """True if it may be shown without asking its server."""
        return self.age < self.page.freshness.seconds

    @property
    def readable(self) -> bool:
        """True if its next slices may be read without asking its server."""
        return self.fresh or self.age < READING_SECONDS


def lifetime(page: Page) -> float:
    """Returns the seconds for which a page is kept."""
    return max(page.freshness.seconds, READING_SECONDS)


def freshness(headers: Mapping[str, str], now: float, usual: float) -> Freshness:
    """Computes the freshness of an answer that came at `now` (seconds since the epoch).

    `headers` have lower-case names; `usual` is the lifetime of a page that names none.
    """
    said = _directives(headers.get("cache-control", ""))
    if said.keys() & {"no-cache", "no-store"}:
        lifetime = 0.0
    elif "max-age" in said:
        lifetime = _seconds(said["max-age"]) or 0.0
    elif "expires" in headers:
        lifetime = (_moment(headers["expires"]) or now) - now
    else:
        lifetime = usual
    age = _seconds(headers.get("age", "0")) or 0.0
    return Freshness(min(max(lifetime - age, 0.0), LONGEST), "no-store" not in said)


def _directives(header: str) -> dict[str, str]:
    """Parses Cache-Control; of two values for max-age the smaller one counts."""
    found: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(header):
        name, value = name.lower(), value.strip('"')
        if name == "max-age" and name in found:
            value = min(found[name], value, key=lambda text: _seconds(text) or 0.0)
        found[name] = value
    return found


def _seconds(text: str) -> float | None:
    text = text.strip()
    if not text.isascii() or not text.isdigit():
        return None
    return float(text[:12])


def _moment(text: str) -> float | None:
    """Returns the seconds since the epoch of an HTTP date."""
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
