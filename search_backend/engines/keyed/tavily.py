"""Tavily: search made for models, by credits; a basic search costs one.

https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.types import TIME_WORDS, Query

# 402 is nobody's but the standard's; the other two are this engine's own for plan and budget.
QUOTA = (402, 432, 433)


def ask(query: Query) -> dict[str, object]:
    """A basic search: the depth is said aloud, or the engine may choose the dearer one."""
    return {
        "query": query.text,
        "search_depth": "basic",
        "max_results": query.max_results,
        "time_range": TIME_WORDS.get(query.time_range or ""),
        "include_domains": query.allowed_domains,
        "exclude_domains": query.blocked_domains,
    }


ENGINE = json_engine(
    *("tavily", "Tavily", "POST /search"),
    ("TAVILY_BASE_URL", "https://api.tavily.com"),
    ask,
    "results",
    ("url", "title", "content", "published_date"),
    key=Setting("TAVILY_API_KEY", "Key of Tavily", secret=True),
    quota=QUOTA,
    applies=frozenset({"domains", "time_range"}),  # it knows countries by English names only
)
