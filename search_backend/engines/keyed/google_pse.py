"""Google's Programmable Search Engine: 100 searches a day are free.

https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Google Programmable Search"
BASE = "https://www.googleapis.com"
MOST = 10
SETTINGS = (
    Setting("GOOGLE_PSE_API_KEY", "Key of Google's Custom Search API", secret=True),
    Setting("GOOGLE_PSE_ENGINE_ID", "Id of your search engine (cx)"),
    Setting("GOOGLE_PSE_BASE_URL", "Another server of the Custom Search API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search of at most ten results."""
    parameters: dict[str, object] = {
        "q": with_sites(query),
        "cx": keys.get("GOOGLE_PSE_ENGINE_ID", ""),
        "num": min(query.max_results, MOST),
    }
    if query.time_range:
        parameters["dateRestrict"] = f"{query.time_range}1"
    if query.country:
        parameters["gl"] = query.country.lower()
    if query.language:
        parameters["lr"] = f"lang_{query.language.lower()}"
    if query.safe_search:
        parameters["safe"] = "off" if query.safe_search == "off" else "active"
    url = base(keys, "GOOGLE_PSE_BASE_URL", BASE) + "/customsearch/v1"
    return get(url, parameters, {"X-Goog-Api-Key": keys.get("GOOGLE_PSE_API_KEY", "")})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """items[], which is left out where nothing is found."""
    found = rows(checked(response, TITLE), "items", title=TITLE, sign="searchInformation")
    return results(found, "google_pse", TITLE, "link", "title", "snippet", "date")


ENGINE = Engine(
    "google_pse",
    TITLE,
    needs=("GOOGLE_PSE_API_KEY", "GOOGLE_PSE_ENGINE_ID"),
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
