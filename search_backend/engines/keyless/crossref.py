"""Crossref: what publishers register under a DOI.

https://www.crossref.org/documentation/retrieve-metadata/rest-api/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Crossref"
BASE = "https://api.crossref.org"
SETTINGS = (CONTACT, Setting("CROSSREF_BASE_URL", "Another server of the Crossref API", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search in titles, authors and journals; a DOI in the query finds its work."""
    parameters = {
        "query.bibliographic": query.text,
        "rows": query.max_results,
        "select": "DOI,URL,title,author,container-title,issued,abstract",
    }
    return get(base(keys, "CROSSREF_BASE_URL", BASE) + "/works", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """message.items[]; titles and journals are lists, a date is {date-parts: [[y, m, d]]}."""
    found = rows(checked(response, TITLE), "message", "items", title=TITLE)
    made = (
        result("crossref", r.get("URL"), _first(r, "title"), _about(r), _issued(r)) for r in found
    )
    return usable(made, TITLE)


def _first(row: Mapping[str, Any], name: str) -> object:
    value = row.get(name)
    return value[0] if isinstance(value, list) and value else None


def _about(row: Mapping[str, Any]) -> str:
    authors = row.get("author") if isinstance(row.get("author"), list) else []
    names = [str(a.get("family", "")) for a in authors or () if isinstance(a, Mapping)][:4]
    parts = (", ".join(filter(None, names)), _first(row, "container-title"), row.get("abstract"))
    return ". ".join(part for part in parts if isinstance(part, str) and part)


def _issued(row: Mapping[str, Any]) -> str | None:
    issued = row.get("issued")
    parts = _first(issued, "date-parts") if isinstance(issued, Mapping) else None
    numbers = [n for n in parts if isinstance(n, int)] if isinstance(parts, list) else []
    return "-".join(f"{n:02}" for n in numbers) if len(numbers) == 3 else None


ENGINE = Engine(
    "crossref",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=2.0,
    kinds=("doi", "paper"),
)
