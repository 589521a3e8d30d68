"""Parallel: a search for programs, which answers with excerpts.

https://docs.parallel.ai/api-reference/search/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, json_engine, lower, said
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import first_day
from searchloop.search_backend.types import Query

LONGEST = 200  # characters of a query


def ask(query: Query) -> dict[str, object]:
    """A search by words in its quicker mode; domains and dates are its policy for sources."""
    policy = {
        "include_domains": query.allowed_domains,
        "exclude_domains": query.blocked_domains,
        "after_date": first_day(query),
    }
    settings = {
        "max_results": query.max_results,
        "source_policy": said(policy),
        "location": lower(query.country),
    }
    return {
        "search_queries": [query.text[:LONGEST]],
        "mode": "basic",
        "advanced_settings": said(settings),
    }


def fields(row: Row) -> tuple[object, ...]:
    """The snippet is made of its excerpts."""
    excerpts = row.get("excerpts")
    texts = excerpts if isinstance(excerpts, list) else []
    snippet = " … ".join(text for text in texts if isinstance(text, str))
    return row.get("url"), row.get("title"), snippet, row.get("publish_date")


ENGINE = json_engine(
    *("parallel", "Parallel", "POST /v1/search"),
    ("PARALLEL_BASE_URL", "https://api.parallel.ai"),
    ask,
    "results",
    fields,
    key=Setting(
        "PARALLEL_API_KEY", "Key of Parallel", aliases=("PARALLEL_AI_API_KEY",), secret=True
    ),
    header="x-api-key",
    applies=frozenset({"domains", "time_range", "country"}),
    untested=True,
)
