"""The values and errors of the search backend. Imports the standard library only.

Values are frozen; their `as_json` methods return the shapes of the HTTP contract.

    SearchBackendError(code, message, remedy)
     +-- SettingError                   a setting that the user must correct
     +-- EngineError(kind)              a search engine failed: wait, pay, or ask another one
     +-- FetchRefused                   the policy does not allow this address
     +-- FetchFailed                    the network or the server did not deliver
          +-- NotReachable              one of the last two, and the caller may not learn which

A private address, an unknown name and a closed port must look alike, or a web page could map the
network behind this machine by having a model open addresses. So NotReachable always has the same
words; `detail` holds the true cause for the local log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from searchloop.analysis.told import Told

TimeRange = Literal["d", "w", "m", "y"]
SafeSearch = Literal["off", "moderate", "strict"]
AttemptStatus = Literal["ok", "empty", "blocked", "error", "skipped"]
SearchStatus = Literal["ok", "empty", "blocked", "error"]
PageStatus = Literal["ok", "blocked", "needs_js", "error"]

# How most engines write a time range.
TIME_WORDS: Mapping[str, str] = {"d": "day", "w": "week", "m": "month", "y": "year"}
MOST_RESULTS = 20  # of one search


class _Shape:
    """A dataclass with a JSON form."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Returns the fields as JSON, without those that have their default value."""
        found = ((f.name, getattr(self, f.name), f.default) for f in fields(self))  # type: ignore[arg-type]
        return {name: _plain(part) for name, part, default in found if part != default}


def _plain(part: Any) -> Any:
    if isinstance(part, tuple):
        return [_plain(each) for each in part]
    return part.as_json() if isinstance(part, _Shape) else part


@dataclass(frozen=True, slots=True)
class Problem(_Shape):
    """What went wrong, and who can do what about it."""

    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Query:
    """One search. Domain rules are canonical host names; `max_results` is 1 to 20.

    `country` is an ISO 3166 code, `language` an ISO 639 code, both in small letters; None leaves
    the choice to the engine. The library keeps to `folders` of it, by path or name (none = all). An
    `offline` one asks no engine beyond this machine.
    """

    text: str
    max_results: int = 8
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    country: str | None = None
    language: str | None = None
    safe_search: SafeSearch | None = None
    folders: tuple[str, ...] = ()
    offline: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult(_Shape):
    """One hit. `source` is the name of the engine that found it, `published` an ISO date.

    `invisible` counts the invisible characters removed from title and snippet.
    """

    title: str
    url: str
    snippet: str
    source: str
    published: str | None = None
    invisible: int = 0


@dataclass(frozen=True, slots=True)
class Attempt(_Shape):
    """One engine asked, or skipped for the reason in `error`.

    `ms` is wall time with that for the engine's rate limit. `why` says why an official site was
    asked in place of the chain, `query` the keywords that it got.
    """

    engine: str
    status: AttemptStatus
    ms: int
    error: Problem | None = None
    why: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Filtered(_Shape):
    """A rule of the query that removed results, or that was lifted because none were left."""

    rule: str
    dropped: int
    lifted: bool


@dataclass(frozen=True, slots=True)
class SearchAnswer(_Shape):
    """The answer of the chain, with every attempt.

    `engine` is the first one with results. If `cached`, no engine was asked now, and the attempts
    are those of the search `age` seconds ago.
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
        """Returns the body of POST /api/web-search."""
        return super(SearchAnswer, self).as_json() | ({"age": self.age} if self.cached else {})


@dataclass(frozen=True, slots=True)
class ReaderAttempt(_Shape):
    """One reader's attempt at a page, and its error."""

    reader: str
    status: PageStatus
    error: Problem | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """A page may be shown again for `seconds` after it came, and stored if `store`."""

    seconds: float = 900.0
    store: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page as read. `text` is its main content as Markdown, empty unless the status is ok.

    `cut`: the source was longer than the limits, so `text` is a part of it. `invisible` counts the
    invisible characters removed. `attempts` are set if `reader` was not the first one asked.
    `redirects` are the addresses that led to `final_url`, as far as known. `breaks` are the offsets
    in `text` where the pages of a document begin, also of one whose pages hold no text.
    `challenged`: its markup asks for proof that a person reads it.
    """

    url: str
    final_url: str
    title: str
    text: str
    links: tuple[str, ...] = ()
    published: str | None = None
    status: PageStatus = "ok"
    error: Problem | None = None
    cut: bool = False
    invisible: int = 0
    reader: str = "local"
    attempts: tuple[ReaderAttempt, ...] = ()
    freshness: Freshness = Freshness()
    redirects: tuple[str, ...] = ()
    breaks: tuple[int, ...] = ()
    challenged: bool = False


def failed_page(url: str, problem: Problem | None, status: PageStatus = "error") -> Page:
    """Returns a page without text."""
    return Page(url=url, final_url=url, title="", text="", status=status, error=problem)


@dataclass(frozen=True, slots=True)
class Match(_Shape):
    """A passage around places where the words occur; offsets are code points of the page."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class PageView:
    """One slice of a page, or the passages that contain the text to find.

    With another origin than "web", `age` is the seconds since the server sent the page or called it
    unchanged. `stale` says why a copy that is no longer fresh stands in for the page.
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
    stale: Problem | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the body of POST /api/open-page."""
        page = self.page
        same = ("url", "final_url", "title", "status", "published", "reader")
        more: dict[str, Any] = {
            "cached": self.origin == "cache",
            "stale": self.stale and self.stale.as_json(),
            "cut": page.cut,
            "attempts": [attempt.as_json() for attempt in page.attempts],
        }
        shape: dict[str, Any] = {
            **{name: getattr(page, name) for name in (*same, "invisible")},
            "content": self.content,
            "content_length": len(self.content),
            "original_length": len(page.text),
            "offset": self.offset,
            "truncated": self.truncated,
            "next_offset": self.next_offset,
            "error": page.error.as_json() if page.error else None,
            "links": list(page.links),
            "origin": self.origin,
            **{name: value for name, value in more.items() if value},
        }
        if self.origin == "cache" or self.age:
            shape["age"] = self.age
        if self.matches is not None:
            shape["matches"] = [match.as_json() for match in self.matches]
            shape["match_count"] = self.match_count
        return shape


class SearchBackendError(Told):
    """An error with a `code` for programs, a `message` of one sentence and a `remedy`."""

    @property
    def problem(self) -> Problem:
        """The same as a value."""
        return Problem(self.code, self.message, self.remedy)


class SettingError(SearchBackendError):
    """A setting is unusable."""


class EngineError(SearchBackendError):
    """A search engine gave no answer. `kind` (also the code): rate, quota, auth, blocked, network,
    parse or config. `retry_after` is the seconds that the engine asks to wait.

        raise EngineError("rate", "The wiki has had enough.", "Wait.", retry_after=60)
    """

    def __init__(
        self, kind: str, message: str, remedy: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(kind, message, remedy)
        self.kind = kind
        self.retry_after = retry_after


class FetchRefused(SearchBackendError):
    """This address may not be opened. Codes: refused_url (no web address with a single reading),
    refused_domain (the domain rules)."""


class Owner(NamedTuple):
    """The chat for which something is asked; without an id it is asked for none.

    What is asked for a `temporary` one is held in memory alone.
    """

    id: str = ""
    temporary: bool = False

    @property
    def kept(self) -> bool:
        """True if what it brings may be stored under its name."""
        return bool(self.id) and not self.temporary


NOBODY = Owner()


class FetchFailed(SearchBackendError):
    """The page did not come. Codes: timeout, too_large, too_many_redirects, bad_response, tls."""


class NotReachable(FetchFailed, FetchRefused):
    """No public web server answers there. Code: not_reachable, always with the same words."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            "not_reachable",
            "No public web server could be reached at this address.",
            "Check the address and the network connection, or use another source.",
        )
        self.detail = detail


def timed_out(seconds: float) -> FetchFailed:
    """Returns the error for a page that did not come before the deadline."""
    what = f"The page did not come within {seconds:g} s."
    return FetchFailed("timeout", what, "Try again later, or use another source.")


def too_large(most: int) -> FetchFailed:
    """Returns the error for a file over the limits, of a kind of which a part is useless."""
    what = f"The file is too large: more than {most:,} bytes are not loaded."
    return FetchFailed("too_large", what, "Use another source.")


def bad_response(host: str) -> FetchFailed:
    """Returns the error for an answer that is not HTTP or is incomplete."""
    what = f"The server of {host} broke off or gave an answer that is not valid HTTP."
    return FetchFailed("bad_response", what, "Try again later, or use another source.")
