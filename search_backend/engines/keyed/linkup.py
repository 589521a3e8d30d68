"""Linkup: a search for programs; asked for results, not for an answer.

https://docs.linkup.so/pages/documentation/endpoints/search
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, first_day, results, rows
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Linkup"
BASE = "https://api.linkup.so/v1"
SETTINGS = (
    Setting("LINKUP_API_KEY", "Key of Linkup", secret=True),
    Setting("LINKUP_BASE_URL", "Another server of the Linkup API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search of the depth "standard"."""
    body: dict[str, Any] = {
        "q": query.text,
        "depth": "standard",
        "outputType": "searchResults",
        "maxResults": query.max_results,
    }
    if query.allowed_domains:
        body["includeDomains"] = list(query.allowed_domains)
    if query.blocked_domains:
        body["excludeDomains"] = list(query.blocked_domains)
    if first := first_day(query):
        body["fromDate"] = first
    headers = {"Authorization": f"Bearer {keys.get('LINKUP_API_KEY', '')}"}
    return post(base(keys, "LINKUP_BASE_URL", BASE) + "/search", body, headers)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]; some are images."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    pages = [row for row in found if row.get("type") != "image"]
    return results(pages, "linkup", TITLE, "url", "name", "content", "date")


ENGINE = Engine(
    "linkup",
    TITLE,
    needs=("LINKUP_API_KEY",),
    applies=frozenset({"domains", "time_range"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
