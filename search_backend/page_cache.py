"""Pages read before: in memory, and on disk for the next start. Bounded in both places.

Whether a page may still be shown is its `freshness`'s business; what must not be stored is held in
memory only, for as long as somebody may be reading on in it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from search_backend.disk_cache import Disk
from search_backend.types import Freshness, Page

KIND = "page"
# So long one reads on in a page as it was when it was opened, whatever its server wishes.
READING_SECONDS = 900.0
# So long it is worth asking a server whether a page is still the same.
KEPT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page, and the seconds since it was fetched or found to be unchanged."""

    page: Page
    age: float

    @property
    def fresh(self) -> bool:
        """Whether it may be shown without asking its server."""
        return self.age < self.page.freshness.seconds

    @property
    def readable(self) -> bool:
        """Whether somebody who opened it may read on in it."""
        return self.fresh or self.age < READING_SECONDS


class PageCache:
    """The pages read last. Safe for several threads."""

    def __init__(
        self,
        entries: int = 100,
        characters: int = 8_000_000,
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        """Bounds are those in memory; `clock` gives seconds since the epoch."""
        self._entries = entries
        self._characters = characters
        self._clock = clock
        self._disk = disk
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[float, Page]] = OrderedDict()
        self._held = 0

    def get(self, key: str) -> KeptPage | None:
        """The page and its age, however stale; None when it is not worth having."""
        now = self._clock()
        with self._lock:
            found = self._pages.get(key)
            if found is not None:
                kept = KeptPage(found[1], now - found[0])
                if 0 <= kept.age < _lifetime(found[1]):
                    self._pages.move_to_end(key)
                    return kept
                self._forget(key)
        entry = self._disk.get(KIND, key) if self._disk else None
        if entry is None:
            return None
        try:
            page = _read(entry.value)
        except (KeyError, TypeError, ValueError):
            return None  # written by another version
        self._hold(key, page, entry.made)
        return KeptPage(page, now - entry.made)

    def put(self, key: str, page: Page) -> None:
        """Keep the page, which was fetched just now; those not used for longest make room."""
        self._hold(key, page, self._clock())
        if self._disk and page.freshness.store:
            self._disk.put(KIND, key, _written(page), _lifetime(page))

    def _hold(self, key: str, page: Page, made: float) -> None:
        if _weight(page) > self._characters:
            return
        with self._lock:
            if key in self._pages:
                self._forget(key)
            self._pages[key] = (made, page)
            self._held += _weight(page)
            while len(self._pages) > self._entries or self._held > self._characters:
                self._forget(next(iter(self._pages)))

    def _forget(self, key: str) -> None:
        self._held -= _weight(self._pages.pop(key)[1])


def _lifetime(page: Page) -> float:
    known = page.freshness
    if not known.store:
        return READING_SECONDS
    return KEPT_SECONDS if known.etag or known.modified else max(known.seconds, READING_SECONDS)


def _weight(page: Page) -> int:
    return len(page.text) + sum(map(len, (*page.links, *page.redirects))) + 500


def _written(page: Page) -> dict[str, Any]:
    return {**asdict(page), "error": None, "attempts": ()}


def _read(value: dict[str, Any]) -> Page:
    """The reverse of `_written`. Raises KeyError, TypeError, ValueError for anything else."""
    if not isinstance(value["text"], str) or not isinstance(value["final_url"], str):
        raise TypeError("not a page")
    return Page(
        **{
            **value,
            "links": tuple(value["links"]),
            "redirects": tuple(value["redirects"]),
            "attempts": (),
            "freshness": Freshness(**value["freshness"]),
        }
    )
