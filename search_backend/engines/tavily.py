"""Tavily: search made for models, by credits; a basic search costs one.

https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

from typing import Any

from search_backend.answers import base, checked, result, rows
from search_backend.engines import Engine, Wire
from search_backend.http_values import HttpRequest, HttpResponse, post
from search_backend.keys import Keys, Setting
from search_backend.types import Query, SearchResult

TITLE = "Tavily"
BASE = "https://api.tavily.com"
MOST = 20
# 402 is nobody's but the standard's; the other two are this engine's own for plan and budget.
QUOTA = (402, 432, 433)
SETTINGS = (
    Setting("TAVILY_API_KEY", "Key of Tavily", secret=True),
    Setting("TAVILY_BASE_URL", "Another server of the Tavily API", BASE),
)
RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}


def request(query: Query, keys: Keys) -> HttpRequest:
    """A basic search: the depth is said aloud, or the engine may choose the dearer one."""
    body: dict[str, Any] = {
        "query": query.text,
        "search_depth": "basic",
        "max_results": min(query.max_results, MOST),
    }
    if query.time_range:
        body["time_range"] = RANGES[query.time_range]
    if query.allowed_domains:
        body["include_domains"] = list(query.allowed_domains)
    if query.blocked_domains:
        body["exclude_domains"] = list(query.blocked_domains)
    url = base(keys, "TAVILY_BASE_URL", BASE) + "/search"
    return post(url, body, {"Authorization": f"Bearer {keys.get('TAVILY_API_KEY', '')}"})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]."""
    found = rows(checked(response, TITLE, QUOTA), "results", title=TITLE)
    made = (
        result("tavily", r.get("url"), r.get("title"), r.get("content"), r.get("published_date"))
        for r in found
    )
    return [one for one in made if one is not None]


ENGINE = Engine(
    "tavily",
    TITLE,
    needs=("TAVILY_API_KEY",),
    applies=frozenset({"domains", "time_range"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
