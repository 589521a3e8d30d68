"""Exa: search by meaning, paid by the request; asks for highlights, or it gives titles alone.

https://docs.exa.ai/reference/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, json_engine, upper
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import first_day
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search with highlights; a time range becomes a first day of publication."""
    first = first_day(query)
    return {
        "query": query.text,
        "numResults": query.max_results,
        "contents": {"highlights": True},
        "includeDomains": query.allowed_domains,
        "excludeDomains": query.blocked_domains,
        "startPublishedDate": first and f"{first}T00:00:00.000Z",
        "userLocation": upper(query.country),
        "moderation": query.safe_search in ("moderate", "strict") or None,
    }


def fields(row: Row) -> tuple[object, ...]:
    """The snippet is made of highlights, else it is the summary or the text."""
    snippet, highlights = row.get("summary") or row.get("text"), row.get("highlights")
    if isinstance(highlights, list) and highlights:
        snippet = " … ".join(text for text in highlights if isinstance(text, str))
    return row.get("url"), row.get("title"), snippet, row.get("publishedDate")


ENGINE = json_engine(
    *("exa", "Exa", "POST /search"),
    ("EXA_BASE_URL", "https://api.exa.ai"),
    ask,
    "results",
    fields,
    key=Setting("EXA_API_KEY", "Key of Exa", secret=True),
    header="x-api-key",
    applies=frozenset({"domains", "time_range", "country", "safe_search"}),
    untested=True,
)
