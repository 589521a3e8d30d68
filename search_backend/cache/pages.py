"""Pages read before, and the time for which they are fresh.

This is a private cache for one user, so `private` and `s-maxage` do not matter. A header that
cannot be parsed counts as stale. A page without any is fresh for the time in the settings. A page
that must not be stored stays in memory for reading on.

Spec: RFC 9111 4.2, 5.2, 5.3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from werkzeug.datastructures import ResponseCacheControl
from werkzeug.http import parse_age, parse_cache_control_header, parse_date

from searchloop.search_backend.types import Freshness, Page

# An opened page does not change for so long, whatever its server says, so one can read on in it.
READING_SECONDS = 900.0
LONGEST = 86_400.0


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
    said = parse_cache_control_header(
        headers.get("cache-control", "").lower(), cls=ResponseCacheControl
    )
    lifetime = usual
    if said.keys() & {"no-cache", "no-store"}:
        lifetime = 0.0
    elif "max-age" in said:
        lifetime = min(said.max_age or 0, 10 * LONGEST)
    elif "expires" in headers:
        until = parse_date(headers["expires"])
        lifetime = until.timestamp() - now if until else 0.0
    lifetime -= (parse_age(headers.get("age")) or timedelta()).total_seconds()
    return Freshness(min(max(lifetime, 0.0), LONGEST), "no-store" not in said)
