"""Brave Search: an index of its own, a key, one request a second on the smallest plan.

https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Brave Search"
BASE = "https://api.search.brave.com/res/v1"
MOST = 20
LONGEST, MOST_WORDS = 400, 50
SETTINGS = (
    Setting("BRAVE_API_KEY", "Key of Brave Search", aliases=("BRAVE_SEARCH_API_KEY",), secret=True),
    Setting("BRAVE_BASE_URL", "Another server of the Brave Search API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A web search; domains go into the query text."""
    words = with_sites(query).split()
    parameters: dict[str, object] = {
        "q": " ".join(words[:MOST_WORDS])[:LONGEST],
        "count": min(query.max_results, MOST),
        "text_decorations": "false",
        "result_filter": "web",
    }
    if query.time_range:
        parameters["freshness"] = f"p{query.time_range}"
    if query.country:
        parameters["country"] = query.country.upper()
    if query.language:
        parameters["search_lang"] = query.language.lower()
    if query.safe_search:
        parameters["safesearch"] = query.safe_search
    url = base(keys, "BRAVE_BASE_URL", BASE) + "/web/search"
    return get(url, parameters, {"X-Subscription-Token": keys.get("BRAVE_API_KEY", "")})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """web.results[]."""
    found = rows(checked(response, TITLE), "web", "results", title=TITLE, sign="query")
    return results(found, "brave", TITLE, "url", "title", "description", "page_age age")


ENGINE = Engine(
    "brave",
    TITLE,
    needs=("BRAVE_API_KEY",),
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
)
