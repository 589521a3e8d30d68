"""Wikidata: entities by name, with a short description in the language of the question.

https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, lower
from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search for names; `language` is that of the name and of the description."""
    language = lower(query.language) or "en"
    return {
        "action": "wbsearchentities",
        "format": "json",
        "search": query.text,
        "language": language,
        "uselang": language,
        "limit": query.max_results,
    }


def fields(row: Row) -> tuple[object, ...]:
    """`url` has no scheme."""
    return f"https:{row.get('url')}", row.get("label"), row.get("description")


ENGINE = site_engine(
    *("wikidata", "Wikidata", "GET /w/api.php"),
    ("WIKIDATA_BASE_URL", "https://www.wikidata.org"),
    ask,
    "search",
    fields,
    applies=frozenset({"language"}),
    rate=2.0,
    kinds=("person",),
    sites=("wikidata.org",),
)
