"""Exa: search by meaning, paid by the request; asks for highlights, or it gives titles alone.

https://docs.exa.ai/reference/search
"""

from __future__ import annotations

from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, first_day, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Exa"
BASE = "https://api.exa.ai"
MOST = 25  # the dearer price begins above
SETTINGS = (
    Setting("EXA_API_KEY", "Key of Exa", secret=True),
    Setting("EXA_BASE_URL", "Another server of the Exa API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search with highlights; a time range becomes a first day of publication."""
    body: dict[str, Any] = {
        "query": query.text,
        "numResults": min(query.max_results, MOST),
        "contents": {"highlights": True},
    }
    if query.allowed_domains:
        body["includeDomains"] = list(query.allowed_domains)
    if query.blocked_domains:
        body["excludeDomains"] = list(query.blocked_domains)
    if first := first_day(query):
        body["startPublishedDate"] = f"{first}T00:00:00.000Z"
    if query.country:
        body["userLocation"] = query.country.upper()
    if query.safe_search in ("moderate", "strict"):
        body["moderation"] = True
    url = base(keys, "EXA_BASE_URL", BASE) + "/search"
    return post(url, body, {"x-api-key": keys.get("EXA_API_KEY", "")})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[], the snippet from highlights, else summary or text."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    made = (
        result("exa", r.get("url"), r.get("title"), _snippet(r), r.get("publishedDate"))
        for r in found
    )
    return usable(made, TITLE)


def _snippet(row: Any) -> object:
    highlights = row.get("highlights")
    if isinstance(highlights, list) and highlights:
        return " … ".join(text for text in highlights if isinstance(text, str))
    return row.get("summary") or row.get("text")


ENGINE = Engine(
    "exa",
    TITLE,
    needs=("EXA_API_KEY",),
    applies=frozenset({"domains", "time_range", "country", "safe_search"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
