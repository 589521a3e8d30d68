"""Kagi: results without advertisements, paid by the search.

https://help.kagi.com/kagi/api/search.html
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import first_day, with_sites
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search of the web; a time range becomes a first day."""
    first = first_day(query)
    return {
        "query": with_sites(query),
        "workflow": "search",
        "limit": query.max_results,
        "filters": first and {"after": first},
    }


ENGINE = json_engine(
    *("kagi", "Kagi", "POST /search"),
    ("KAGI_BASE_URL", "https://kagi.com/api/v1"),
    ask,
    "data search",
    ("url", "title", "snippet", "time"),
    key=Setting("KAGI_API_KEY", "Key of Kagi's search API", secret=True),
    sign="data",
    applies=frozenset({"domains", "time_range"}),
    untested=True,
)
