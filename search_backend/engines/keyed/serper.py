"""Serper: Google's results as JSON, by credits.

https://serper.dev
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Serper (Google)"
BASE = "https://google.serper.dev"
SETTINGS = (
    Setting("SERPER_API_KEY", "Key of Serper", aliases=("SERPER_DEV_API_KEY",), secret=True),
    Setting("SERPER_BASE_URL", "Another server of the Serper API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search; ten results cost one credit, more cost two."""
    body: dict[str, Any] = {"q": with_sites(query), "num": 10 if query.max_results <= 10 else 20}
    if query.time_range:
        body["tbs"] = f"qdr:{query.time_range}"
    if query.country:
        body["gl"] = query.country.lower()
    if query.language:
        body["hl"] = query.language.lower()
    url = base(keys, "SERPER_BASE_URL", BASE) + "/search"
    return post(url, body, {"X-API-KEY": keys.get("SERPER_API_KEY", "")})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """organic[]."""
    found = rows(checked(response, TITLE), "organic", title=TITLE, sign="searchParameters")
    return results(found, "serper", TITLE, "link", "title", "snippet", "date")


ENGINE = Engine(
    "serper",
    TITLE,
    needs=("SERPER_API_KEY",),
    applies=frozenset({"domains", "time_range", "country", "language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
