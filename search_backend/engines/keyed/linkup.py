"""Linkup: a search for programs; asked for results, not for an answer.

https://docs.linkup.so/pages/documentation/endpoints/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import first_day
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search of the depth "standard"."""
    return {
        "q": query.text,
        "depth": "standard",
        "outputType": "searchResults",
        "maxResults": query.max_results,
        "includeDomains": query.allowed_domains,
        "excludeDomains": query.blocked_domains,
        "fromDate": first_day(query),
    }


ENGINE = json_engine(
    *("linkup", "Linkup", "POST /search"),
    ("LINKUP_BASE_URL", "https://api.linkup.so/v1"),
    ask,
    "results",
    ("url", "name", "content", "date"),
    key=Setting("LINKUP_API_KEY", "Key of Linkup", secret=True),
    keep=lambda row: row.get("type") != "image",
    applies=frozenset({"domains", "time_range"}),
    untested=True,
)
