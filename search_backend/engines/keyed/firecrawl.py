"""Firecrawl's search, without the contents of pages, which would cost credits for each.

https://docs.firecrawl.dev/api-reference/endpoint/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine, upper
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search of the web."""
    return {
        "query": with_sites(query),
        "limit": query.max_results,
        "sources": ["web"],
        "tbs": query.time_range and f"qdr:{query.time_range}",
        "country": upper(query.country),
    }


ENGINE = json_engine(
    *("firecrawl", "Firecrawl search", "POST /v2/search"),
    ("FIRECRAWL_BASE_URL", "https://api.firecrawl.dev"),
    ask,
    "data web",
    ("url", "title", "description", "date"),
    key=Setting("FIRECRAWL_API_KEY", "Key of Firecrawl", secret=True),
    sign="data",
    applies=frozenset({"domains", "time_range", "country"}),
)
