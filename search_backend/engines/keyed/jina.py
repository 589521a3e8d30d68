"""Jina's search: results without the page contents, which would cost tokens for each page.

https://jina.ai/reader
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, results, rows
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Jina"
BASE = "https://s.jina.ai"
MOST = 20
SETTINGS = (
    Setting("JINA_API_KEY", "Key of Jina", secret=True),
    Setting("JINA_SEARCH_BASE_URL", "Another server of Jina's search API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search; allowed domains have a parameter, blocked ones go into the text."""
    text = query.text + "".join(f" -site:{site}" for site in query.blocked_domains[:8])
    parameters: dict[str, object] = {"q": text, "num": min(query.max_results, MOST)}
    if query.allowed_domains:
        parameters["site"] = list(query.allowed_domains)
    if query.country:
        parameters["gl"] = query.country.lower()
    if query.language:
        parameters["hl"] = query.language.lower()
    headers = {
        "Authorization": f"Bearer {keys.get('JINA_API_KEY', '')}",
        "X-Respond-With": "no-content",
    }
    return get(base(keys, "JINA_SEARCH_BASE_URL", BASE) + "/", parameters, headers)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """data[]."""
    found = rows(checked(response, TITLE), "data", title=TITLE)
    return results(found, "jina", TITLE, "url", "title", "description content", "date")


ENGINE = Engine(
    "jina",
    TITLE,
    needs=("JINA_API_KEY",),
    applies=frozenset({"domains", "country", "language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    untested=True,
)
