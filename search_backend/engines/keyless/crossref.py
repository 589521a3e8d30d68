"""Crossref: what publishers register under a DOI.

https://www.crossref.org/documentation/retrieve-metadata/rest-api/
"""

from __future__ import annotations

from collections.abc import Mapping

from searchloop.search_backend.engines._json import Row, joined
from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search in titles, authors and journals; a DOI in the query finds its work."""
    return {
        "query.bibliographic": query.text,
        "rows": query.max_results,
        "select": "DOI,URL,title,author,container-title,issued,abstract",
    }


def fields(row: Row) -> tuple[object, ...]:
    """Titles and journals are lists, a date is {date-parts: [[y, m, d]]}."""
    return row.get("URL"), _first(row, "title"), _about(row), _issued(row)


def _first(row: Row, name: str) -> object:
    value = row.get(name)
    return value[0] if isinstance(value, list) and value else None


def _about(row: Row) -> str:
    authors = row.get("author") if isinstance(row.get("author"), list) else []
    names = [a.get("family") for a in authors or () if isinstance(a, Mapping)][:4]
    return joined(". ", joined(", ", *names), _first(row, "container-title"), row.get("abstract"))


def _issued(row: Row) -> str | None:
    issued = row.get("issued")
    parts = _first(issued, "date-parts") if isinstance(issued, Mapping) else None
    numbers = [n for n in parts if isinstance(n, int)] if isinstance(parts, list) else []
    return "-".join(f"{n:02}" for n in numbers) if len(numbers) == 3 else None


ENGINE = site_engine(
    *("crossref", "Crossref", "GET /works"),
    ("CROSSREF_BASE_URL", "https://api.crossref.org"),
    ask,
    "message items",
    fields,
    rate=2.0,
    kinds=("doi", "paper"),
)
