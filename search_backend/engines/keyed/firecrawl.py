"""Firecrawl's search, without the contents of pages, which would cost credits for each.

https://docs.firecrawl.dev/api-reference/endpoint/search
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Firecrawl search"
BASE = "https://api.firecrawl.dev"
SETTINGS = (
    Setting("FIRECRAWL_API_KEY", "Key of Firecrawl", secret=True),
    Setting("FIRECRAWL_BASE_URL", "Your own Firecrawl server", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search of the web."""
    text = with_sites(query)
    body: dict[str, Any] = {"query": text, "limit": query.max_results, "sources": ["web"]}
    if query.time_range:
        body["tbs"] = f"qdr:{query.time_range}"
    if query.country:
        body["country"] = query.country.upper()
    url = base(keys, "FIRECRAWL_BASE_URL", BASE) + "/v2/search"
    return post(url, body, {"Authorization": f"Bearer {keys.get('FIRECRAWL_API_KEY', '')}"})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """data.web[]."""
    found = rows(checked(response, TITLE), "data", "web", title=TITLE, sign="data")
    return results(found, "firecrawl", TITLE, "url", "title", "description", "date")


ENGINE = Engine(
    "firecrawl",
    TITLE,
    needs=("FIRECRAWL_API_KEY",),
    applies=frozenset({"domains", "time_range", "country"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
