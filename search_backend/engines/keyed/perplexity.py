"""Perplexity's search API: ranked pages with long extracts, paid by the request.

https://docs.perplexity.ai/api-reference/search-post
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine, upper
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.types import TIME_WORDS, Query

MOST_DOMAINS = 20


def ask(query: Query) -> dict[str, object]:
    """One query. Its list of domains either allows or, with a minus each, blocks."""
    domains = query.allowed_domains or [f"-{domain}" for domain in query.blocked_domains]
    return {
        "query": query.text,
        "max_results": query.max_results,
        # Extracts are for choosing a page; the page itself is opened when it matters.
        "max_tokens_per_page": 512,
        "search_domain_filter": domains[:MOST_DOMAINS],
        "search_recency_filter": TIME_WORDS.get(query.time_range or ""),
        "country": upper(query.country),
        "search_language_filter": [query.language] if query.language else None,
    }


ENGINE = json_engine(
    *("perplexity", "Perplexity", "POST /search"),
    ("PERPLEXITY_BASE_URL", "https://api.perplexity.ai"),
    ask,
    "results",
    ("url", "title", "snippet", "date last_updated"),
    key=Setting(
        "PERPLEXITY_API_KEY", "Key of Perplexity", aliases=("PERPLEXITYAI_API_KEY",), secret=True
    ),
    applies=frozenset({"domains", "time_range", "country", "language"}),
    untested=True,
)
