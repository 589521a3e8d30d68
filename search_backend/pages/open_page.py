"""`open_page`: fetches, reads and caches a page, and returns slices or passages around some words.

A page is fetched and read once. While it is fresh, and for the slices after the first, it comes
from the cache. Pages that could be read are stored in the library, which answers for them without a
network.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from searchloop.search_backend.cache.kept import Cache, SingleFlight
from searchloop.search_backend.cache.pages import KeptPage, lifetime
from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.library.roots import SCHEME
from searchloop.search_backend.pages.reading import Reading, inside, read_fetched
from searchloop.search_backend.text.slices import cut, find
from searchloop.search_backend.types import (
    NOBODY,
    FetchFailed,
    FetchRefused,
    Match,
    Owner,
    Page,
    PageView,
    Problem,
    SearchBackendError,
    failed_page,
)

DEFAULT_LENGTH = 8_000
LONGEST_SLICE = 100_000
BETWEEN = "\n\n[...]\n\n"
# The longest time of a fetch and the readers after it.
JOIN_SECONDS = 45.0
# Shorter texts are not worth finding again.
WORTH_KEEPING = 200

Origin = Literal["web", "cache", "library"]
# Returns the document at an address of its own scheme; raises SearchBackendError.
Shelf = Callable[[str], Fetched]

_log = logging.getLogger(__name__)


class _Got(NamedTuple):
    """A page, where it came from, its age, and why a stale copy stands in for it."""

    page: Page
    origin: Origin = "web"
    age: float = 0.0
    stale: Problem | None = None


class Pages:
    """Opens pages of the web, of the library and of shelves.

    `shelves` open addresses of a scheme or a host of their own (an engine's `open`); `rules` are
    those of the settings, which a request may narrow.
    """

    def __init__(
        self,
        reading: Reading,
        library: Library,
        *,
        shelves: Mapping[str, Shelf] | None = None,
        rules: Rules = ANYWHERE,
        offline: bool = False,
        cache: Cache | None = None,
    ) -> None:
        self._reading = reading
        self._library = library
        self._shelves = shelves or {}
        self._rules = rules
        self._offline = offline
        self._cache = cache or Cache()
        self._joined = SingleFlight[_Got]()

    def open_page(
        self,
        url: str,
        find: str | None = None,
        offset: int | None = None,
        max_length: int = DEFAULT_LENGTH,
        *,
        rules: Rules = ANYWHERE,
        reader: str | None = None,
        chat: Owner = NOBODY,
        offline: bool = False,
    ) -> PageView:
        """Returns a slice of the page from `offset`, or the passages around `find` from there on.

        Lengths and offsets are code points. Without an offset a library address with a fragment
        begins at its section. `rules` apply to the address, each redirect and the address that a
        reader reports; `reader` names the only one to ask. The page's status and error say why it
        could not be read. Only what a `chat` that is kept has opened enters the library, under its
        name; nothing of a temporary one is written. `offline` opens only what is on this machine.
        SearchBackendError is raised only for an
        unknown reader, rules that allow nothing, and an offset beyond the end.
        """
        self._reading.check(reader)
        goes_on = find is not None or bool(offset)
        rules = rules.within(self._rules)
        got = self._page(url, rules, reader, goes_on, chat, offline or self._offline)
        self._remember(got, chat)
        page, origin = got.page, got.origin
        if origin != "web" and rules != ANYWHERE:  # what is new was read under these rules
            page = inside(page, rules)
        if offset is None:
            offset = self._library.section(page) if url.startswith(SCHEME) and not find else 0
        if offset > len(page.text) and page.status == "ok":
            what = f"offset {offset} is beyond the end of the page ({len(page.text)} characters)."
            raise SearchBackendError("bad_offset", what, "Use the next_offset of the slice before.")
        if page.status != "ok":
            return PageView(page, "", 0, None, page.cut, origin=origin)
        told = PageView(page, "", offset, None, page.cut, None, 0, origin, int(got.age), got.stale)
        if find:
            return _found(told, find, offset, max_length)
        end = cut(page.text, offset, max_length)
        content = page.text[offset:end]
        more = end if end < len(page.text) else None
        partial = page.cut or len(content) < len(page.text)
        return replace(told, content=content, next_offset=more, truncated=partial)

    def _page(
        self, url: str, rules: Rules, reader: str | None, goes_on: bool, chat: Owner, offline: bool
    ) -> _Got:
        scheme, _, rest = url.partition("://")
        places = (scheme.lower(), rest.partition("/")[0].lower())
        place = next((each for each in places if each in self._shelves), "")
        if place or url.startswith(SCHEME):
            return self._own(url, place)
        key = f"{reader} {url}" if reader else url
        kept = self._kept(key, chat)
        if kept and (kept.fresh or offline or (goes_on and kept.readable)):
            return _Got(kept.page, "cache", kept.age)
        if offline:
            return self._stored(url) or _Got(failed_page(url, _OFFLINE), "library")
        got = self._joined.run(
            (key, rules), lambda: self._read(url, rules, reader, key, chat), JOIN_SECONDS
        )
        self._kept(key, chat)  # another chat may have been opening it
        return got

    def _kept(self, key: str, chat: Owner) -> KeptPage | None:
        """Returns the page of before, even if stale; from now on it is the chat's as well."""
        found = self._cache.get(Page, key, chat)
        return KeptPage(*found) if found else None

    def _read(self, url: str, rules: Rules, reader: str | None, key: str, chat: Owner) -> _Got:
        kept = self._kept(key, chat)
        if kept and kept.fresh:  # another thread was faster
            return _Got(kept.page, "cache", kept.age)
        try:
            page = self._reading.page(url, rules, reader)
        except (FetchFailed, FetchRefused) as error:
            problem = error.problem
            # These copies were read before, so they reveal nothing new.
            if isinstance(error, FetchFailed):
                if kept:
                    return _Got(kept.page, "cache", kept.age, problem)
                if stored := self._stored(url):
                    return stored._replace(stale=problem)
            return _Got(failed_page(url, problem))
        if page.status != "ok":
            return _Got(page)
        self._cache.put(key, page, lifetime(page), chat)
        return _Got(page)

    def _own(self, url: str, place: str) -> _Got:
        """Opens a document of this machine; one whose file is away says so."""
        if not place:
            page = self._library.open(url) or failed_page(url, _NOT_IN_LIBRARY)
            trouble = self._library.trouble(url)
            stale = Problem("old_text", f"{trouble}.", _FILE_AWAY) if trouble else None
            return _Got(page, "library", self._library.age(url) if trouble else 0.0, stale)
        try:
            return _Got(_read_shelved(self._shelves[place](url), url, place), "library")
        except SearchBackendError as error:
            return _Got(failed_page(url, error.problem), "library")

    def _stored(self, url: str) -> _Got | None:
        with contextlib.suppress(SearchBackendError):
            if page := self._library.open(url):
                return _Got(page, "library", self._library.age(url))
        return None

    def _remember(self, got: _Got, chat: Owner) -> None:
        page = got.page
        may = chat.kept and page.status == "ok" and page.freshness.store
        if not may or not page.final_url.startswith("http") or len(page.text) < WORTH_KEEPING:
            return
        try:
            self._library.remember(page, chat.id, got.age)
        except SearchBackendError as error:
            # A full disk must not fail the request.
            _log.warning("a page was not kept: %s", error.message)


def _read_shelved(fetched: Fetched, url: str, scheme: str) -> Page:
    """Reads a document of a shelf, with links that open in the same archive.

    Readers resolve links as the web does, so the document is read as if it stood at
    https://NAME.SCHEME.invalid/PATH (RFC 6761); afterwards its links get their own scheme back.
    """
    page = read_fetched(fetched)
    stand_in = re.compile(rf"https://([a-z0-9_-]+)\.{re.escape(scheme)}\.invalid/")

    def own(text: str) -> str:
        return stand_in.sub(rf"{scheme}://\1/", text)

    links = tuple(own(link) for link in page.links)
    return replace(page, url=url, final_url=own(page.final_url), text=own(page.text), links=links)


def _found(view: PageView, words: str, offset: int, most: int) -> PageView:
    matches, count, more = find(view.page.text[offset:], words, most)
    moved = tuple(Match(m.start + offset, m.end + offset, m.text) for m in matches)
    content = BETWEEN.join(match.text for match in moved)
    further = None if more is None else more + offset
    # What is cut short here is the list of passages, not the page.
    return replace(
        view,
        content=content,
        next_offset=further,
        truncated=view.truncated or further is not None,
        matches=moved,
        match_count=count,
    )


_FILE_AWAY = "Make the file readable again and add its folder once more."
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
