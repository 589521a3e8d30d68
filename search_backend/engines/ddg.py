"""DuckDuckGo and friends through the `ddgs` package: no key, no price, no promise.

`ddgs` scrapes result pages and treats every refusal (202, 403, 429) as "no results", so an empty
answer and a ban look alike. We say so instead of guessing. It does its own networking in native
code, so the call runs in a thread of its own with a deadline: a hang costs the deadline and
nothing else. https://github.com/deedy5/ddgs
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from search_backend.answers import usable, with_sites
from search_backend.engines import Access, Engine
from search_backend.errors import EngineError
from search_backend.types import Query, SearchResult

# The sites asked through the package, and which wishes each one respects (read from its source).
BACKENDS: Mapping[str, frozenset[str]] = {
    "duckduckgo": frozenset({"time_range", "country", "language"}),
    "brave": frozenset({"time_range", "safe_search"}),
    "mojeek": frozenset({"country", "language", "safe_search"}),
}
# Of wishes that no site respects together, those that come first count.
ORDER = ("safe_search", "time_range", "language", "country")
SAFE = {"off": "off", "moderate": "moderate", "strict": "on"}
# Codes of places differ from those of languages, and the package wants both: the usual partner of
# a code where it is not the code itself, and the sites' own codes.
LANGUAGES = {
    **dict.fromkeys(("us", "uk", "au", "ca", "nz", "ie", "in", "za", "sg", "ph"), "en"),
    **dict.fromkeys(("at", "ch"), "de"),
    **dict.fromkeys(("mx", "ar", "cl", "co", "pe"), "es"),
    "be": "nl",
    "br": "pt",
    "cn": "zh",
    "tw": "tzh",
    "hk": "tzh",
    "se": "sv",
    "dk": "da",
    "cz": "cs",
    "gr": "el",
    "ua": "uk",
    "il": "he",
    "ee": "et",
}
PLACES = {
    "en": "us",
    "zh": "cn",
    "sv": "se",
    "da": "dk",
    "cs": "cz",
    "el": "gr",
    "uk": "ua",
    "he": "il",
    "et": "ee",
    "ja": "jp",
    "ko": "kr",
    "ar": "xa",
    "nb": "no",
    "ca": "ct",
}
OWN_PLACES, OWN_LANGUAGES = {"gb": "uk"}, {"ja": "jp", "ko": "kr", "nb": "no"}
CALL_TIMEOUT = 5
DEADLINE = 8.0

Rows = Iterable[Mapping[str, Any]]


class Client(Protocol):
    """The one method of `ddgs.DDGS` that is used."""

    def text(self, query: str, **options: Any) -> Rows:
        """Rows of {title, href, body}."""


def make_engine(client_factory: Callable[[], Client], deadline: float = DEADLINE) -> Engine:
    """The engine over `client_factory`, called once per search: clients are not shared."""

    def search(query: Query, _access: Access) -> list[SearchResult]:
        def call() -> list[Mapping[str, Any]]:
            options: dict[str, str] = {}
            if query.country or query.language:
                options["region"] = region(query)
            if query.safe_search:
                options["safesearch"] = SAFE[query.safe_search]
            rows = client_factory().text(
                with_sites(query),
                max_results=query.max_results,
                timelimit=query.time_range,
                backend=",".join(backends(query)),
                **options,
            )
            return list(rows)

        return usable(map(_result, _within(deadline, call)), "DuckDuckGo")

    applies = frozenset({"domains", *ORDER})
    return Engine("ddg", "DuckDuckGo", search, applies=applies, cannot=left_out)


def backends(query: Query) -> list[str]:
    """The sites that respect what is wished; all of them when nothing is."""
    able = list(BACKENDS)
    for wish in ORDER:
        if getattr(query, wish):
            able = [name for name in able if _respects(name, wish, query)] or able
    return able


def left_out(query: Query) -> frozenset[str]:
    """Wishes that one of the sites that are asked does not respect."""
    wished = [wish for wish in ORDER if getattr(query, wish)]
    asked = backends(query)
    return frozenset(w for w in wished if not all(_respects(name, w, query) for name in asked))


def _respects(name: str, wish: str, query: Query) -> bool:
    # Mojeek filters strictly or not at all.
    half = name == "mojeek" and wish == "safe_search" and query.safe_search == "moderate"
    return wish in BACKENDS[name] and not half


def region(query: Query) -> str:
    """PLACE-LANGUAGE; what was not wished is the usual partner of what was."""
    place, language = query.country or "", query.language or ""
    place = OWN_PLACES.get(place, place) or PLACES.get(language, language)
    language = OWN_LANGUAGES.get(language, language) or LANGUAGES.get(place, place)
    return f"{place}-{language}"


def _within(
    deadline: float, call: Callable[[], list[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    answer: queue.SimpleQueue[list[Mapping[str, Any]] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put(call())
        except Exception as error:  # whatever it is, the waiting thread judges it
            answer.put(error)

    threading.Thread(target=work, name="ddg", daemon=True).start()
    try:
        outcome = answer.get(timeout=deadline)
    except queue.Empty:
        raise EngineError(
            "network",
            f"DuckDuckGo did not answer within {deadline:g} s.",
            "Check the network connection, or choose another engine.",
        ) from None
    if isinstance(outcome, Exception):
        raise _classified(outcome) from outcome
    return outcome


def _classified(error: Exception) -> EngineError:
    text, kind = str(error), type(error).__name__
    if "No results found" in text:
        return EngineError(
            "blocked",
            "DuckDuckGo gave no results or refused; it does not say which.",
            "Try other words, wait a minute, or set up an engine with a key.",
        )
    if kind == "RatelimitException":
        return EngineError(
            "rate",
            "DuckDuckGo limits the rate of requests.",
            "Wait a minute, or use another engine.",
        )
    if isinstance(error, ImportError):
        return EngineError("config", "The package ddgs is missing.", "Install it: pip install ddgs")
    if "DNSError" in text or "dns error" in text:
        return EngineError(
            "network",
            "The name of the search engine could not be resolved.",
            "Check the network connection; without one, search the library.",
        )
    if (
        "timed out" in text
        or "Timeout" in kind
        or "ConnectError" in text
        or "error sending" in text
    ):
        return EngineError(
            "network",
            "DuckDuckGo could not be reached.",
            "Check the network connection, or choose another engine.",
        )
    return EngineError(
        "parse",
        f"DuckDuckGo's answer could not be read ({kind}).",
        "Update the package ddgs, or choose another engine.",
    )


def _result(row: object) -> SearchResult | None:
    if not isinstance(row, Mapping):
        return None
    url = row.get("href")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    return SearchResult(str(row.get("title") or url), url, str(row.get("body") or ""), source="ddg")


def _client() -> Client:
    from ddgs import DDGS

    client: Client = DDGS(timeout=CALL_TIMEOUT)
    return client


ENGINE = make_engine(_client)
