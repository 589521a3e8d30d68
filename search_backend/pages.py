"""`open_page`: fetch, read, keep, and hand out slices or the passages round some words.

A page is fetched and read once; while it is fresh, and for the slices after the first, it comes
from a cache, and a stale one is fetched again only if its server says that it changed. Pages that
could be read go into the library as well, which answers for them when there is no network.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from search_backend.domains import ANYWHERE, Rules
from search_backend.errors import FetchFailed, FetchRefused, SearchBackendError
from search_backend.joined import Joined
from search_backend.library import SCHEME, Library
from search_backend.page_cache import PageCache
from search_backend.paging import cut, find
from search_backend.reading import Reading, failed_page, inside
from search_backend.shelf import Shelf, read_shelved
from search_backend.types import Match, Page, PageView, Problem

DEFAULT_LENGTH = 8_000
LONGEST_SLICE = 100_000
BETWEEN = "\n\n[...]\n\n"
# As long as a fetch and the readers after it may take.
JOIN_SECONDS = 45.0
# Shorter texts are not worth finding again.
WORTH_KEEPING = 200

Origin = Literal["web", "cache", "library"]

_log = logging.getLogger(__name__)


class Pages:
    """Opens pages of the web, of the library and of shelves.

    `shelves` open addresses of a scheme of their own (an engine's `open`); `rules` are those of the
    settings, which a request may narrow.
    """

    def __init__(
        self,
        reading: Reading,
        library: Library,
        *,
        shelves: Mapping[str, Shelf] | None = None,
        rules: Rules = ANYWHERE,
        offline: bool = False,
        cache: PageCache | None = None,
    ) -> None:
        self._reading = reading
        self._library = library
        self._shelves = shelves or {}
        self._rules = rules
        self._offline = offline
        self._cache = cache or PageCache()
        self._joined = Joined[tuple[Page, Origin, float]]()

    def open_page(
        self,
        url: str,
        find: str | None = None,
        offset: int | None = None,
        max_length: int = DEFAULT_LENGTH,
        *,
        rules: Rules = ANYWHERE,
        reader: str | None = None,
    ) -> PageView:
        """A slice of the page from `offset`, or the passages round `find` from there on.

        Lengths and offsets are code points. Without an offset a library address with a fragment
        begins at its section. `rules` hold for the address, each redirect and what a reader says
        that it came from; `reader` names the only one to be asked. What kept the page from being
        read is told by the page's status and error; SearchBackendError is raised only for an
        unknown reader, rules with nothing inside, and an offset beyond the end.
        """
        self._reading.check(reader)
        goes_on = find is not None or bool(offset)
        page, origin, age = self._page(url, rules.within(self._rules), reader, goes_on)
        if offset is None:
            offset = self._library.section(page) if url.startswith(SCHEME) and not find else 0
        if offset > len(page.text) and page.status == "ok":
            raise SearchBackendError(
                "bad_offset",
                f"offset {offset} is beyond the end of the page ({len(page.text)} characters).",
                "Use the next_offset of the slice before.",
            )
        if page.status != "ok":
            return PageView(page, "", 0, None, page.cut, origin=origin)
        if find:
            return replace(_found(page, find, offset, max_length, origin), age=int(age))
        end = cut(page.text, offset, max_length)
        content = page.text[offset:end]
        more = end if end < len(page.text) else None
        partial = page.cut or len(content) < len(page.text)
        return PageView(page, content, offset, more, partial, origin=origin, age=int(age))

    def _page(
        self, url: str, rules: Rules, reader: str | None, goes_on: bool
    ) -> tuple[Page, Origin, float]:
        """The page, where it came from, and the seconds since then."""
        scheme = url.partition("://")[0].lower()
        if url.startswith(SCHEME) or scheme in self._shelves:
            return inside(self._own(url, scheme), rules), "library", 0.0
        key = f"{reader} {url}" if reader else url
        kept = self._cache.get(key)
        if kept and (kept.fresh or self._offline or (goes_on and kept.readable)):
            return inside(kept.page, rules), "cache", kept.age
        if self._offline:
            return inside(self._stored(url) or failed_page(url, _OFFLINE), rules), "library", 0.0
        return self._joined.run(
            (key, rules), lambda: self._read(url, rules, reader, key), JOIN_SECONDS
        )

    def _read(
        self, url: str, rules: Rules, reader: str | None, key: str
    ) -> tuple[Page, Origin, float]:
        kept = self._cache.get(key)
        if kept and kept.fresh:  # somebody was faster
            return inside(kept.page, rules), "cache", kept.age
        known = kept.page if kept else None
        try:
            page = self._reading.page(url, rules, reader, known)
        except (FetchFailed, FetchRefused) as error:
            # Only what was read before can be here, so nothing new is given away.
            if isinstance(error, FetchFailed):
                if kept:
                    return inside(kept.page, rules), "cache", kept.age
                if stored := self._stored(url):
                    return inside(stored, rules), "library", 0.0
            return failed_page(url, Problem(error.code, error.message, error.remedy)), "web", 0.0
        if page.status != "ok":
            return page, "web", 0.0
        self._cache.put(key, page)
        if known and page.text is known.text:  # it has not changed
            return page, "cache", 0.0
        if page.freshness.store:
            self._remember(page)
        return page, "web", 0.0

    def _own(self, url: str, scheme: str) -> Page:
        """A document of this machine."""
        if scheme not in self._shelves:
            return self._library.open(url) or failed_page(url, _NOT_IN_LIBRARY)
        try:
            return read_shelved(self._shelves[scheme](url), url, scheme)
        except SearchBackendError as error:
            return failed_page(url, Problem(error.code, error.message, error.remedy))

    def _stored(self, url: str) -> Page | None:
        with contextlib.suppress(SearchBackendError):
            return self._library.open(url)
        return None

    def _remember(self, page: Page) -> None:
        if len(page.text) < WORTH_KEEPING:
            return
        try:
            self._library.remember(page)
        except SearchBackendError as error:
            # The page was asked for, and here it is; a full disk does not change that.
            _log.warning("a page was not kept: %s", error.message)


def _found(page: Page, words: str, offset: int, most: int, origin: Origin) -> PageView:
    matches, count, more = find(page.text[offset:], words, most)
    moved = tuple(Match(m.start + offset, m.end + offset, m.text) for m in matches)
    content = BETWEEN.join(match.text for match in moved)
    further = None if more is None else more + offset
    # What is cut short here is the list of passages, not the page.
    partial = page.cut or further is not None
    return PageView(page, content, offset, further, partial, moved, count, origin)


_NOT_IN_LIBRARY = Problem(
    "not_found",
    "There is no document at this address in the library.",
    "Search the library; it may have been changed or removed since.",
)
_OFFLINE = Problem(
    "offline",
    "The page was not opened: SEARCHLOOP_OFFLINE is set, and the library does not hold it.",
    "Unset SEARCHLOOP_OFFLINE, or use a document of the library.",
)
