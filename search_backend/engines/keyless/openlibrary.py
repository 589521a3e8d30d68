"""Open Library: books, with authors and the year of the first edition.

https://openlibrary.org/dev/docs/api/search
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Open Library"
BASE = "https://openlibrary.org"
SETTINGS = (CONTACT, Setting("OPENLIBRARY_BASE_URL", "Another server of Open Library", BASE))
FIELDS = "key,title,author_name,first_publish_year"


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search for works."""
    parameters = {"q": query.text, "limit": query.max_results, "fields": FIELDS}
    return get(base(keys, "OPENLIBRARY_BASE_URL", BASE) + "/search.json", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """docs[]; `key` is the path of a work."""
    found = rows(checked(response, TITLE), "docs", title=TITLE)
    made = []
    for row in found:
        names = row.get("author_name")
        by = ", ".join(map(str, names[:4])) if isinstance(names, list) else "an unknown author"
        about = f"A book by {by}, first published in {row.get('first_publish_year', '?')}."
        key = row.get("key")
        page = f"{BASE}{key}" if isinstance(key, str) and key.startswith("/works/") else None
        made.append(result("openlibrary", page, row.get("title"), about))
    return usable(made, TITLE)


ENGINE = Engine(
    "openlibrary",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
    kinds=("book",),
    sites=("openlibrary.org",),
)
