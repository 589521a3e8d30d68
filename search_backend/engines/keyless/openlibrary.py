"""Open Library: books, with authors and the year of the first edition.

https://openlibrary.org/dev/docs/api/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row
from searchloop.search_backend.engines.keyless import site_engine

BASE = "https://openlibrary.org"
FIELDS = "key,title,author_name,first_publish_year"


def fields(row: Row) -> tuple[object, ...]:
    """`key` is the path of a work."""
    names, key = row.get("author_name"), row.get("key")
    by = ", ".join(map(str, names[:4])) if isinstance(names, list) else "an unknown author"
    about = f"A book by {by}, first published in {row.get('first_publish_year', '?')}."
    page = f"{BASE}{key}" if isinstance(key, str) and key.startswith("/works/") else None
    return page, row.get("title"), about


ENGINE = site_engine(
    *("openlibrary", "Open Library", "GET /search.json"),
    ("OPENLIBRARY_BASE_URL", BASE),
    lambda query: {"q": query.text, "limit": query.max_results, "fields": FIELDS},
    "docs",
    fields,
    rate=1.0,
    kinds=("book",),
    sites=("openlibrary.org",),
)
