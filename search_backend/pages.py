"""`open_page`: fetch, read, keep, and hand out slices or the passages round some words.

A page is fetched and read once; the slices after the first come from a bounded cache. Pages that
could be read go into the library as well, which answers for them when there is no network.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Protocol

from search_backend.challenge import judge
from search_backend.errors import FetchFailed, FetchRefused, SearchBackendError
from search_backend.fetched import Fetched
from search_backend.library import SCHEME, Library
from search_backend.paging import cut, find
from search_backend.readers import read
from search_backend.types import Match, Page, PageView, Problem

DEFAULT_LENGTH = 8_000
LONGEST_SLICE = 100_000
BETWEEN = "\n\n[...]\n\n"
# Shorter texts are not worth finding again.
WORTH_KEEPING = 200

Origin = Literal["web", "cache", "library"]

_log = logging.getLogger(__name__)


class Fetch(Protocol):
    """The guarded fetch."""

    def __call__(self, url: str) -> Fetched:
        """The answer at `url`; raises FetchRefused or FetchFailed."""


class PageCache:
    """The pages read last, bounded in number, characters and age."""

    def __init__(
        self,
        entries: int = 100,
        characters: int = 8_000_000,
        seconds: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries = entries
        self._characters = characters
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[float, Page]] = OrderedDict()
        self._held = 0

    def get(self, url: str) -> Page | None:
        """The page, unless it is too old."""
        with self._lock:
            found = self._pages.get(url)
            if found is None:
                return None
            if self._clock() - found[0] > self._seconds:
                self._forget(url)
                return None
            self._pages.move_to_end(url)
            return found[1]

    def put(self, url: str, page: Page) -> None:
        """Keep the page; the ones not used for longest make room."""
        if _weight(page) > self._characters:
            return
        with self._lock:
            if url in self._pages:
                self._forget(url)
            self._pages[url] = (self._clock(), page)
            self._held += _weight(page)
            while len(self._pages) > self._entries or self._held > self._characters:
                self._forget(next(iter(self._pages)))

    def _forget(self, url: str) -> None:
        self._held -= _weight(self._pages.pop(url)[1])


def _weight(page: Page) -> int:
    return len(page.text) + sum(map(len, page.links)) + 500


class Pages:
    """Opens pages of the web and of the library."""

    def __init__(
        self,
        fetch: Fetch,
        library: Library,
        *,
        offline: bool = False,
        cache: PageCache | None = None,
    ) -> None:
        self._fetch = fetch
        self._library = library
        self._offline = offline
        self._cache = cache or PageCache()

    def open_page(
        self,
        url: str,
        find: str | None = None,
        offset: int | None = None,
        max_length: int = DEFAULT_LENGTH,
    ) -> PageView:
        """A slice of the page from `offset`, or the passages round `find` from there on.

        Lengths and offsets are code points. Without an offset a library address with a fragment
        begins at its section. What kept the page from being read is told by the page's status and
        error; SearchBackendError is raised only for an offset beyond the end.
        """
        page, origin = self._page(url)
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
            return _found(page, find, offset, max_length, origin)
        end = cut(page.text, offset, max_length)
        content = page.text[offset:end]
        more = end if end < len(page.text) else None
        partial = page.cut or len(content) < len(page.text)
        return PageView(page, content, offset, more, partial, origin=origin)

    def _page(self, url: str) -> tuple[Page, Origin]:
        if url.startswith(SCHEME):
            return self._library.open(url) or _failed(url, _NOT_IN_LIBRARY), "library"
        if page := self._cache.get(url):
            return page, "cache"
        if self._offline:
            return self._stored(url) or _failed(url, _OFFLINE), "library"
        try:
            fetched = self._fetch(url)
        except (FetchFailed, FetchRefused) as error:
            # Only what was read before can be in the library, so nothing new is given away.
            if isinstance(error, FetchFailed) and (stored := self._stored(url)):
                return stored, "library"
            return _failed(url, Problem(error.code, error.message, error.remedy)), "web"
        page = _read(fetched)
        if page.status == "ok":
            self._cache.put(url, page)
            self._remember(page)
        return page, "web"

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


def _read(fetched: Fetched) -> Page:
    try:
        page = read(
            fetched.body,
            url=fetched.final_url,
            content_type=fetched.content_type,
            charset=fetched.charset,
        )
    except Exception:
        _log.exception("a page could not be read")
        page = _failed(fetched.url, _UNREADABLE)
    page = replace(page, url=fetched.url, cut=page.cut or fetched.truncated)
    status, problem = judge(fetched.status, page.title, page.text)
    if status != "ok":
        return replace(page, text="", links=(), status=status, error=problem)
    if page.status == "ok" and not page.text:
        return replace(page, status="error", error=_NO_TEXT)
    return page


def _found(page: Page, words: str, offset: int, most: int, origin: Origin) -> PageView:
    matches, count, more = find(page.text[offset:], words, most)
    moved = tuple(Match(m.start + offset, m.end + offset, m.text) for m in matches)
    content = BETWEEN.join(match.text for match in moved)
    further = None if more is None else more + offset
    partial = page.cut or len(content) < len(page.text)
    return PageView(page, content, offset, further, partial, moved, count, origin)


def _failed(url: str, problem: Problem) -> Page:
    return Page(url=url, final_url=url, title="", text="", status="error", error=problem)


_NOT_IN_LIBRARY = Problem(
    "not_found",
    "There is no document at this address in the library.",
    "Search the library, or run `searchloop library list`.",
)
_OFFLINE = Problem(
    "offline",
    "The page was not opened: SEARCHLOOP_OFFLINE is set, and the library does not hold it.",
    "Unset SEARCHLOOP_OFFLINE, or use a document of the library.",
)
_UNREADABLE = Problem(
    "unreadable", "The text of this page could not be made out.", "Use another source."
)
_NO_TEXT = Problem("no_text", "There is no text on this page.", "Use another source.")
