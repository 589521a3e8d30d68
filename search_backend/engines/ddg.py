"""DuckDuckGo and others through the `ddgs` package: no key, no price, no promise.

`ddgs` reads result pages and reports every refusal (202, 403, 429) as "no results", so an empty
answer and a ban look alike; the error says so. The chain gives up a call that hangs.
https://github.com/deedy5/ddgs
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.plugin.answers import usable, with_sites
from searchloop.search_backend.types import EngineError, Query, SearchResult

# The sites asked through the package, and the options that each respects (read from its source).
BACKENDS: Mapping[str, frozenset[str]] = {
    "duckduckgo": frozenset({"time_range", "country", "language"}),
    "brave": frozenset({"time_range", "safe_search"}),
    "mojeek": frozenset({"country", "language", "safe_search"}),
}
# Of options that no site respects together, the first ones count.
ORDER = ("safe_search", "time_range", "language", "country")
SAFE = {"off": "off", "moderate": "moderate", "strict": "on"}


def _table(pairs: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in pairs.split())


# The package wants a place and a language in one code. These are the usual partners of a code that
# is not its own partner, and the codes that the sites write in their own way.
LANGUAGES = _table(
    "us:en uk:en au:en ca:en nz:en ie:en in:en za:en sg:en ph:en at:de ch:de mx:es ar:es cl:es "
    "co:es pe:es be:nl br:pt cn:zh tw:tzh hk:tzh se:sv dk:da cz:cs gr:el ua:uk il:he ee:et"
)
PLACES = _table(
    "en:us zh:cn sv:se da:dk cs:cz el:gr uk:ua he:il et:ee ja:jp ko:kr ar:xa nb:no ca:ct"
)
OWN_PLACES, OWN_LANGUAGES = _table("gb:uk"), _table("ja:jp ko:kr nb:no")
CALL_TIMEOUT = 5
_FAILURES = tomllib.loads(Path(__file__).with_name("ddg.toml").read_text("utf-8"))["failures"]

Rows = Iterable[Mapping[str, Any]]


class Searcher(Protocol):
    """The one method of `ddgs.DDGS` that is used."""

    def text(self, query: str, **options: Any) -> Rows:
        """Returns rows of {title, href, body}."""


def make_engine(client_factory: Callable[[], Searcher]) -> Engine:
    """Builds the engine over `client_factory`, called once per search: clients are not shared."""

    def search(query: Query, _access: Access) -> list[SearchResult]:
        options: dict[str, str] = {}
        if query.country or query.language:
            options["region"] = region(query)
        if query.safe_search:
            options["safesearch"] = SAFE[query.safe_search]
        try:
            rows = client_factory().text(
                with_sites(query),
                max_results=query.max_results,
                timelimit=query.time_range,
                backend=",".join(backends(query)),
                **options,
            )
            return usable(map(_result, list(rows)), "DuckDuckGo")
        except EngineError:
            raise
        except Exception as error:  # the package raises errors of many libraries
            raise _classified(error) from error

    applies = frozenset({"domains", *ORDER})
    return Engine("ddg", "DuckDuckGo", search, applies=applies, cannot=left_out)


def backends(query: Query) -> list[str]:
    """Returns the sites that respect the options of `query`; all of them when it has none."""
    able = list(BACKENDS)
    for wish in ORDER:
        if getattr(query, wish):
            able = [name for name in able if _respects(name, wish, query)] or able
    return able


def left_out(query: Query) -> frozenset[str]:
    """Returns the options that at least one of the sites to be asked does not respect."""
    asked = backends(query)
    wished = (wish for wish in ORDER if getattr(query, wish))
    return frozenset(w for w in wished if not all(_respects(name, w, query) for name in asked))


def _respects(name: str, wish: str, query: Query) -> bool:
    # Mojeek filters strictly or not at all.
    half = name == "mojeek" and wish == "safe_search" and query.safe_search == "moderate"
    return wish in BACKENDS[name] and not half


def region(query: Query) -> str:
    """Returns PLACE-LANGUAGE; the usual partner stands for the one that `query` leaves out."""
    place, language = query.country or "", query.language or ""
    place = OWN_PLACES.get(place, place) or PLACES.get(language, language)
    language = OWN_LANGUAGES.get(language, language) or LANGUAGES.get(place, place)
    return f"{place}-{language}"


def _classified(error: Exception) -> EngineError:
    kind = type(error).__name__
    text = f"{kind} {error}"
    for each in _FAILURES:
        if any(sign in text for sign in each["signs"]):
            return EngineError(each["kind"], each["message"], each["remedy"])
    what = f"DuckDuckGo's answer could not be read ({kind})."
    return EngineError("parse", what, "Update the package ddgs, or choose another engine.")


def _result(row: object) -> SearchResult | None:
    if not isinstance(row, Mapping):
        return None
    url = row.get("href")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    return SearchResult(str(row.get("title") or url), url, str(row.get("body") or ""), source="ddg")


def _client() -> Searcher:
    from ddgs import DDGS

    client: Searcher = DDGS(timeout=CALL_TIMEOUT)
    return client


ENGINE = make_engine(_client)
