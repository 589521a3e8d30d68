"""Wikidata: entities by name, with a short description in the language of the question.

https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Wikidata"
BASE = "https://www.wikidata.org"
SETTINGS = (CONTACT, Setting("WIKIDATA_BASE_URL", "Another server of Wikidata's API", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search for names; `language` is that of the name and of the description."""
    language = (query.language or "en").lower()
    parameters = {
        "action": "wbsearchentities",
        "format": "json",
        "search": query.text,
        "language": language,
        "uselang": language,
        "limit": query.max_results,
    }
    return get(base(keys, "WIKIDATA_BASE_URL", BASE) + "/w/api.php", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """search[]; `url` has no scheme."""
    found = rows(checked(response, TITLE), "search", title=TITLE)
    made = (
        result("wikidata", f"https:{r.get('url')}", r.get("label"), r.get("description"))
        for r in found
    )
    return usable(made, TITLE)


ENGINE = Engine(
    "wikidata",
    TITLE,
    applies=frozenset({"language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=2.0,
    kinds=("person",),
    sites=("wikidata.org",),
)
