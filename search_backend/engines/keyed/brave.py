"""Brave Search: an index of its own, a key, one request a second on the smallest plan.

https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine, upper
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites
from searchloop.search_backend.types import Query

LONGEST, MOST_WORDS = 400, 50


def ask(query: Query) -> dict[str, object]:
    """A web search; domains go into the query text."""
    words = with_sites(query).split()
    return {
        "q": " ".join(words[:MOST_WORDS])[:LONGEST],
        "count": query.max_results,
        "text_decorations": "false",
        "result_filter": "web",
        "freshness": query.time_range and f"p{query.time_range}",
        "country": upper(query.country),
        "search_lang": query.language,
        "safesearch": query.safe_search,
    }


ENGINE = json_engine(
    *("brave", "Brave Search", "GET /web/search"),
    ("BRAVE_BASE_URL", "https://api.search.brave.com/res/v1"),
    ask,
    "web results",
    ("url", "title", "description", "page_age age"),
    key=Setting(
        "BRAVE_API_KEY", "Key of Brave Search", aliases=("BRAVE_SEARCH_API_KEY",), secret=True
    ),
    header="X-Subscription-Token",
    sign="query",
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
    rate=1.0,
)
