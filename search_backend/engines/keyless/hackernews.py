"""Hacker News: stories and the discussions about them, by the search of Algolia.

https://hn.algolia.com/api
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row
from searchloop.search_backend.engines.keyless import site_engine


def fields(row: Row) -> tuple[object, ...]:
    """A story without an address of its own is its discussion."""
    discussion = f"https://news.ycombinator.com/item?id={row.get('objectID')}"
    about = (
        row.get("story_text") or f"{row.get('points')} points, {row.get('num_comments')} comments"
    )
    return row.get("url") or discussion, row.get("title"), about, row.get("created_at")


ENGINE = site_engine(
    *("hackernews", "Hacker News", "GET /search"),
    ("HACKERNEWS_BASE_URL", "https://hn.algolia.com/api/v1"),
    lambda query: {"query": query.text, "tags": "story", "hitsPerPage": query.max_results},
    "hits",
    fields,
    rate=2.0,
    kinds=("technews",),
)
