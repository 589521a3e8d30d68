"""Wikipedia in the language of the question, by the search of MediaWiki.

https://www.mediawiki.org/wiki/API:Search, https://www.mediawiki.org/wiki/API:Etiquette
"""

from __future__ import annotations

from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A full-text search with the beginning of each page."""
    return {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "redirects": 1,
        "uselang": query.language or "en",
        "generator": "search",
        "gsrsearch": query.text,
        "gsrlimit": query.max_results,
        "prop": "info|extracts",
        "inprop": "url",
        "exintro": 1,
        "explaintext": 1,
        "exchars": 600,
        "exlimit": "max",
    }


ENGINE = site_engine(
    *("wikipedia", "Wikipedia", "GET /w/api.php"),
    ("WIKIPEDIA_BASE_URL", "https://{language}.wikipedia.org"),
    ask,
    "query pages",
    ("fullurl", "title", "extract"),
    sign="batchcomplete",
    place="index",
    applies=frozenset({"language"}),
    rate=2.0,
    kinds=("encyclopedia", "place", "general"),
    sites=("wikipedia.org",),
)
