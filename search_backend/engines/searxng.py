"""SearXNG: a metasearch server of the user's own, often on this machine. No key.

It answers 200 even when its engines failed. `unresponsive_engines` names those that did, nothing
the others: without results the search has failed, but maybe not in all of them. JSON must be
switched on in its settings, or it answers 403.
https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines._json import joined
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import (
    base,
    challenged,
    checked,
    results,
    rows,
    with_sites,
)
from searchloop.search_backend.text.clean import one_line
from searchloop.search_backend.types import TIME_WORDS, EngineError, Query, SearchResult

TITLE = "SearXNG"
SETTINGS = (
    Setting(
        "SEARXNG_URL",
        "Address of your SearXNG, e.g. http://localhost:8080",
        aliases=("SEARXNG_INSTANCE_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL"),
    ),
)
SAFE = {"off": "0", "moderate": "1", "strict": "2"}


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search in JSON. The address may be that of the server or of its search page."""
    url = base({"SEARXNG_URL": keys.get("SEARXNG_URL", "").partition("?")[0]}, "SEARXNG_URL", "")
    if not url.endswith("/search"):
        url += "/search"
    parameters = {"q": with_sites(query), "format": "json"}
    if query.time_range:
        parameters["time_range"] = TIME_WORDS[query.time_range]
    if query.language:
        country = f"-{query.country.upper()}" if query.country else ""
        parameters["language"] = query.language + country
    if query.safe_search:
        parameters["safesearch"] = SAFE[query.safe_search]
    return get(url, parameters)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[], unless there are none because its engines failed."""
    if response.status == 403 and not challenged(response, 403):
        what = "SearXNG refuses JSON (HTTP 403)."
        remedy = "Write formats: [html, json] under search in its settings.yml and restart it."
        raise EngineError("config", what, remedy)
    answer = checked(response, TITLE)
    found = rows(answer, "results", title=TITLE)
    listed = results(found, "searxng", TITLE, "url", "title", "content", "publishedDate")
    if not listed and (failed := _unresponsive(answer)):
        what = f"SearXNG found nothing, and engines behind it failed ({failed})."
        remedy = "Wait, choose other engines in its settings, or use another engine here."
        raise EngineError("network", what, remedy)
    return listed


def _unresponsive(answer: Mapping[str, Any]) -> str:
    """Names and reasons of its engines that failed: pairs, for all we know."""
    listed = answer.get("unresponsive_engines")
    pairs = listed if isinstance(listed, list) else []
    told = (joined(": ", *pair) if isinstance(pair, list) else pair for pair in pairs)
    return one_line(joined(", ", *told), 200)


ENGINE = Engine(
    "searxng",
    TITLE,
    needs=("SEARXNG_URL",),
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    # It has languages, of a region if need be ("de-AT"), and no regions alone.
    cannot=lambda query: frozenset() if query.language else frozenset({"country"}),
)
