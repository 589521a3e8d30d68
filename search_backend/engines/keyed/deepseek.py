"""DeepSeek Search: an index of its own, with the key of DeepSeek's models.

https://api-docs.deepseek.com/guides/search/, https://docs.litellm.ai/docs/search/deepseek
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites
from searchloop.search_backend.types import Query

LONGEST = 128  # characters of a query


def ask(query: Query) -> dict[str, object]:
    """A search; sites and the language are operators in its text."""
    text = with_sites(query) + (f" lang:{query.language.lower()}" if query.language else "")
    if len(text) > LONGEST:  # rules are applied to the results again
        text = query.text[:LONGEST]
    return {"query": text, "count": query.max_results}


ENGINE = json_engine(
    *("deepseek", "DeepSeek Search", "POST /v1/tools/search"),
    ("DEEPSEEK_SEARCH_BASE_URL", "https://api.deepseek.com"),
    ask,
    "results",
    ("url", "title", "summary snippet", "date"),
    key=Setting("DEEPSEEK_API_KEY", "Key of DeepSeek", secret=True),
    applies=frozenset({"domains", "language"}),
    rate=5.0,
    untested=True,
)
