"""The nouns of the search backend. Imports the standard library only.

Everything here is frozen: a value is made once and handed on. `as_json` methods give the exact
shapes that the HTTP contract promises (see the table of routes in docs/).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

TimeRange = Literal["d", "w", "m", "y"]
SafeSearch = Literal["off", "moderate", "strict"]
AttemptStatus = Literal["ok", "empty", "blocked", "error", "skipped"]
SearchStatus = Literal["ok", "empty", "blocked", "error"]
PageStatus = Literal["ok", "blocked", "needs_js", "error"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, and who can do what about it."""

    code: str
    message: str
    remedy: str

    def as_json(self) -> dict[str, str]:
        """The error object of the contract: {code, message, remedy}."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Query:
    """One search. Domain rules are canonical host names; `max_results` is 1 to 20.

    `country` is an ISO 3166 code ("DE"), `language` an ISO 639 code ("de"); None leaves the choice
    to the engine.
    """

    text: str
    max_results: int = 8
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    country: str | None = None
    language: str | None = None
    safe_search: SafeSearch | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One hit. `source` is the name of the engine that found it, `published` an ISO date.

    `invisible` counts the characters that nobody sees and that were taken out of title and snippet.
    """

    title: str
    url: str
    snippet: str
    source: str
    published: str | None = None
    invisible: int = 0

    def as_json(self) -> dict[str, str | int]:
        """Fields that are known; an unknown date is left out, as is a count of nothing."""
        shape: dict[str, str | int] = {
            "title": self.title,
            "url": self.url,
            "snippet": self.snippet,
            "source": self.source,
        }
        if self.published is not None:
            shape["published"] = self.published
        if self.invisible:
            shape["invisible"] = self.invisible
        return shape


@dataclass(frozen=True, slots=True)
class Attempt:
    """One engine asked, or passed over with the reason in `error`.

    `ms` is wall time, of which `waited_ms` went by until the engine's own limit allowed to ask.
    """

    engine: str
    status: AttemptStatus
    ms: int
    error: Problem | None = None
    waited_ms: int = 0

    def as_json(self) -> dict[str, Any]:
        """{engine, status, ms}, `waited_ms` if it waited, and `error` when there is one."""
        shape: dict[str, Any] = {"engine": self.engine, "status": self.status, "ms": self.ms}
        if self.waited_ms:
            shape["waited_ms"] = self.waited_ms
        if self.error is not None:
            shape["error"] = self.error.as_json()
        return shape


@dataclass(frozen=True, slots=True)
class Filtered:
    """A rule of the query that took results away, or was lifted because nothing was left."""

    rule: str
    dropped: int
    lifted: bool = False

    def as_json(self) -> dict[str, Any]:
        """{rule, dropped, lifted}."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What the chain found, which engine found it, and every attempt on the way.

    After a merged search `engine` is the one that gave the most results. `cached`: nobody was asked
    just now, the attempts are those of the search that was, `age` seconds ago.
    """

    query: str
    engine: str | None
    status: SearchStatus
    results: tuple[SearchResult, ...]
    attempts: tuple[Attempt, ...]
    filtered: Filtered | None = None
    not_applied: tuple[str, ...] = ()
    cached: bool = False
    age: int = 0

    def as_json(self) -> dict[str, Any]:
        """The answer of POST /api/web-search."""
        shape: dict[str, Any] = {
            "query": self.query,
            "engine": self.engine,
            "status": self.status,
            "results": [result.as_json() for result in self.results],
            "attempts": [attempt.as_json() for attempt in self.attempts],
        }
        if self.filtered is not None:
            shape["filtered"] = self.filtered.as_json()
        if self.not_applied:
            shape["not_applied"] = list(self.not_applied)
        if self.cached:
            shape["cached"] = True
            shape["age"] = self.age
        return shape


@dataclass(frozen=True, slots=True)
class ReaderAttempt:
    """One reader that had a page to read, and why it could not."""

    reader: str
    status: PageStatus
    error: Problem | None = None

    def as_json(self) -> dict[str, Any]:
        """{reader, status}, and `error` when there is one."""
        shape: dict[str, Any] = {"reader": self.reader, "status": self.status}
        return shape | ({"error": self.error.as_json()} if self.error else {})


@dataclass(frozen=True, slots=True)
class Freshness:
    """For how many seconds a page may be shown again, counted from when it came; whether it may be
    written down at all; and by what its server tells one version from another ("" = by nothing)."""

    seconds: float = 900.0
    store: bool = True
    etag: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as read. `text` is its main content as Markdown, empty unless the status is ok.

    `cut` tells that the source was longer than the caps, so `text` is not all of it; `invisible`
    how many characters that nobody sees were taken out of it. `reader` is the one that read it;
    `attempts` are there when it was not the first. `redirects` are the addresses that led to
    `final_url`, where they are known.
    """

    url: str
    final_url: str
    title: str
    text: str
    links: tuple[str, ...] = ()
    byline: str | None = None
    published: str | None = None
    language: str | None = None
    status: PageStatus = "ok"
    error: Problem | None = None
    cut: bool = False
    invisible: int = 0
    reader: str = "local"
    attempts: tuple[ReaderAttempt, ...] = ()
    freshness: Freshness = Freshness()
    redirects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A passage round places where the words occur; offsets are code points of the page."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class PageView:
    """One slice of a page, or the passages that hold the text to find.

    With the origin "cache" the text was there already, `age` seconds after its server last gave it
    or said that it is unchanged.
    """

    page: Page
    content: str
    offset: int
    next_offset: int | None
    truncated: bool
    matches: tuple[Match, ...] | None = None
    match_count: int = 0
    origin: Literal["web", "cache", "library"] = "web"
    age: int = 0

    def as_json(self) -> dict[str, Any]:
        """The answer of POST /api/open-page."""
        page = self.page
        shape: dict[str, Any] = {
            "url": page.url,
            "final_url": page.final_url,
            "title": page.title,
            "content": self.content,
            "content_length": len(self.content),
            "original_length": len(page.text),
            "offset": self.offset,
            "truncated": self.truncated,
            "next_offset": self.next_offset,
            "status": page.status,
            "error": page.error.as_json() if page.error else None,
            "links": list(page.links),
            "byline": page.byline,
            "published": page.published,
            "language": page.language,
            "invisible": page.invisible,
            "origin": self.origin,
            "reader": page.reader,
        }
        if self.origin == "cache":
            shape["cached"] = True
            shape["age"] = self.age
        if page.attempts:
            shape["attempts"] = [attempt.as_json() for attempt in page.attempts]
        if self.matches is not None:
            shape["matches"] = [asdict(match) for match in self.matches]
            shape["match_count"] = self.match_count
        return shape
