"""Wikipedia in the language of the question, by the search of MediaWiki.

https://www.mediawiki.org/wiki/API:Search, https://www.mediawiki.org/wiki/API:Etiquette
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Wikipedia"
BASE = "https://{language}.wikipedia.org"
SETTINGS = (CONTACT, Setting("WIKIPEDIA_BASE_URL", "Another wiki; {language} is replaced", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A full-text search with the beginning of each page."""
    language = query.language or "en"
    address = (keys.get("WIKIPEDIA_BASE_URL") or BASE).replace("{language}", language)
    parameters = {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "redirects": 1,
        "uselang": language,
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
    url = base({"WIKIPEDIA_BASE_URL": address}, "WIKIPEDIA_BASE_URL", BASE) + "/w/api.php"
    return get(url, parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """query.pages[], whose order is in `index`; without results there is no `query`."""
    found = rows(checked(response, TITLE), "query", "pages", title=TITLE, sign="batchcomplete")
    found.sort(key=lambda row: row["index"] if isinstance(row.get("index"), int) else 99)
    made = (result("wikipedia", r.get("fullurl"), r.get("title"), r.get("extract")) for r in found)
    return usable(made, TITLE)


ENGINE = Engine(
    "wikipedia",
    TITLE,
    applies=frozenset({"language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=2.0,
    kinds=("encyclopedia", "place", "general"),
    sites=("wikipedia.org",),
)
