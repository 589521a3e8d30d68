"""Serper: Google's results as JSON, by credits.

https://serper.dev
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search; ten results cost one credit, more cost two."""
    return {
        "q": with_sites(query),
        "num": 10 if query.max_results <= 10 else 20,
        "tbs": query.time_range and f"qdr:{query.time_range}",
        "gl": query.country,
        "hl": query.language,
    }


ENGINE = json_engine(
    *("serper", "Serper (Google)", "POST /search"),
    ("SERPER_BASE_URL", "https://google.serper.dev"),
    ask,
    "organic",
    ("link", "title", "snippet", "date"),
    key=Setting("SERPER_API_KEY", "Key of Serper", aliases=("SERPER_DEV_API_KEY",), secret=True),
    header="X-API-KEY",
    sign="searchParameters",
    applies=frozenset({"domains", "time_range", "country", "language"}),
)
