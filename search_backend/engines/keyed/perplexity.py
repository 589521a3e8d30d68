"""Perplexity's search API: ranked pages with long extracts, paid by the request.

https://docs.perplexity.ai/api-reference/search-post
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Perplexity"
BASE = "https://api.perplexity.ai"
MOST, MOST_DOMAINS = 20, 20
SETTINGS = (
    Setting(
        "PERPLEXITY_API_KEY", "Key of Perplexity", aliases=("PERPLEXITYAI_API_KEY",), secret=True
    ),
    Setting("PERPLEXITY_BASE_URL", "Another server of the Perplexity search API", BASE),
)
RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}


def request(query: Query, keys: Keys) -> HttpRequest:
    """One query. Its list of domains either allows or, with a minus each, blocks."""
    body: dict[str, Any] = {
        "query": query.text,
        "max_results": min(query.max_results, MOST),
        # Extracts are for choosing a page; the page itself is opened when it matters.
        "max_tokens_per_page": 512,
    }
    if query.allowed_domains:
        body["search_domain_filter"] = list(query.allowed_domains[:MOST_DOMAINS])
    elif query.blocked_domains:
        body["search_domain_filter"] = [f"-{d}" for d in query.blocked_domains[:MOST_DOMAINS]]
    if query.time_range:
        body["search_recency_filter"] = RANGES[query.time_range]
    if query.country:
        body["country"] = query.country.upper()
    if query.language:
        body["search_language_filter"] = [query.language.lower()]
    url = base(keys, "PERPLEXITY_BASE_URL", BASE) + "/search"
    return post(url, body, {"Authorization": f"Bearer {keys.get('PERPLEXITY_API_KEY', '')}"})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    return results(found, "perplexity", TITLE, "url", "title", "snippet", "date last_updated")


ENGINE = Engine(
    "perplexity",
    TITLE,
    needs=("PERPLEXITY_API_KEY",),
    applies=frozenset({"domains", "time_range", "country", "language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
