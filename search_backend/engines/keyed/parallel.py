"""Parallel: a search for programs, which answers with excerpts.

https://docs.parallel.ai/api-reference/search/search
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, first_day, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Parallel"
BASE = "https://api.parallel.ai"
LONGEST = 200  # characters of a query
SETTINGS = (
    Setting("PARALLEL_API_KEY", "Key of Parallel", aliases=("PARALLEL_AI_API_KEY",), secret=True),
    Setting("PARALLEL_BASE_URL", "Another server of the Parallel API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search by words in its quicker mode; domains and dates are its policy for sources."""
    policy: dict[str, Any] = {}
    if query.allowed_domains:
        policy["include_domains"] = list(query.allowed_domains)
    if query.blocked_domains:
        policy["exclude_domains"] = list(query.blocked_domains)
    if first := first_day(query):
        policy["after_date"] = first
    settings: dict[str, Any] = {"max_results": query.max_results}
    if policy:
        settings["source_policy"] = policy
    if query.country:
        settings["location"] = query.country.lower()
    body = {
        "search_queries": [query.text[:LONGEST]],
        "mode": "basic",
        "advanced_settings": settings,
    }
    url = base(keys, "PARALLEL_BASE_URL", BASE) + "/v1/search"
    return post(url, body, {"x-api-key": keys.get("PARALLEL_API_KEY", "")})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]; the snippet is made of its excerpts."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    made = (
        result("parallel", r.get("url"), r.get("title"), _text(r), r.get("publish_date"))
        for r in found
    )
    return usable(made, TITLE)


def _text(row: Any) -> str:
    excerpts = row.get("excerpts")
    texts = excerpts if isinstance(excerpts, list) else []
    return " … ".join(text for text in texts if isinstance(text, str))


ENGINE = Engine(
    "parallel",
    TITLE,
    needs=("PARALLEL_API_KEY",),
    applies=frozenset({"domains", "time_range", "country"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
