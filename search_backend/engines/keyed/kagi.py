"""Kagi: results without advertisements, paid by the search.

https://help.kagi.com/kagi/api/search.html
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import (
    base,
    checked,
    first_day,
    results,
    rows,
    with_sites,
)
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Kagi"
BASE = "https://kagi.com/api/v1"
SETTINGS = (
    Setting("KAGI_API_KEY", "Key of Kagi's search API", secret=True),
    Setting("KAGI_BASE_URL", "Another server of Kagi's API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search of the web; a time range becomes a first day."""
    text = with_sites(query)
    body: dict[str, Any] = {"query": text, "workflow": "search", "limit": query.max_results}
    if first := first_day(query):
        body["filters"] = {"after": first}
    headers = {"Authorization": f"Bearer {keys.get('KAGI_API_KEY', '')}"}
    return post(base(keys, "KAGI_BASE_URL", BASE) + "/search", body, headers)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """data.search[]."""
    found = rows(checked(response, TITLE), "data", "search", title=TITLE, sign="data")
    return results(found, "kagi", TITLE, "url", "title", "snippet", "time")


ENGINE = Engine(
    "kagi",
    TITLE,
    needs=("KAGI_API_KEY",),
    applies=frozenset({"domains", "time_range"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
