"""Google's Programmable Search Engine: 100 searches a day are free.

https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine, lower
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites
from searchloop.search_backend.types import Query

MOST = 10


def ask(query: Query) -> dict[str, object]:
    """A search of at most ten results."""
    return {
        "q": with_sites(query),
        "num": min(query.max_results, MOST),
        "dateRestrict": query.time_range and f"{query.time_range}1",
        "gl": lower(query.country),
        "lr": query.language and f"lang_{query.language.lower()}",
        "safe": query.safe_search and ("off" if query.safe_search == "off" else "active"),
    }


ENGINE = json_engine(
    *("google_pse", "Google Programmable Search", "GET /customsearch/v1"),
    ("GOOGLE_PSE_BASE_URL", "https://www.googleapis.com"),
    ask,
    "items",
    ("link", "title", "snippet", "date"),
    key=Setting("GOOGLE_PSE_API_KEY", "Key of Google's Custom Search API", secret=True),
    header="X-Goog-Api-Key",
    given={"cx": "GOOGLE_PSE_ENGINE_ID"},
    more=(Setting("GOOGLE_PSE_ENGINE_ID", "Id of your search engine (cx)"),),
    needs=("GOOGLE_PSE_ENGINE_ID",),
    sign="searchInformation",  # `items` is left out where nothing is found
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
)
