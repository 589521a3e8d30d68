"""Hacker News: stories and the discussions about them, by the search of Algolia.

https://hn.algolia.com/api
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Hacker News"
BASE = "https://hn.algolia.com/api/v1"
SETTINGS = (CONTACT, Setting("HACKERNEWS_BASE_URL", "Another server of Hacker News Search", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search for stories."""
    parameters = {"query": query.text, "tags": "story", "hitsPerPage": query.max_results}
    return get(base(keys, "HACKERNEWS_BASE_URL", BASE) + "/search", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """hits[]; a story without an address of its own is its discussion."""
    found = rows(checked(response, TITLE), "hits", title=TITLE)
    made = (
        result(
            "hackernews",
            r.get("url") or f"https://news.ycombinator.com/item?id={r.get('objectID')}",
            r.get("title"),
            r.get("story_text") or f"{r.get('points')} points, {r.get('num_comments')} comments",
            r.get("created_at"),
        )
        for r in found
    )
    return usable(made, TITLE)


ENGINE = Engine(
    "hackernews",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=2.0,
    kinds=("technews",),
)
