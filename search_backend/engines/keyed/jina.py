"""Jina's search: results without the page contents, which would cost tokens for each page.

https://jina.ai/reader
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search; allowed domains have a parameter, blocked ones go into the text."""
    return {
        "q": query.text + "".join(f" -site:{site}" for site in query.blocked_domains[:8]),
        "num": query.max_results,
        "site": query.allowed_domains,
        "gl": query.country,
        "hl": query.language,
    }


ENGINE = json_engine(
    *("jina", "Jina", "GET /"),
    ("JINA_SEARCH_BASE_URL", "https://s.jina.ai"),
    ask,
    "data",
    ("url", "title", "description content", "date"),
    key=Setting("JINA_API_KEY", "Key of Jina", secret=True),
    headers=lambda _keys: {"X-Respond-With": "no-content"},
    applies=frozenset({"domains", "country", "language"}),
    untested=True,
)
