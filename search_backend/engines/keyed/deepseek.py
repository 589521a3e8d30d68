"""DeepSeek Search: an index of its own, with the key of DeepSeek's models.

https://api-docs.deepseek.com/guides/search/, https://docs.litellm.ai/docs/search/deepseek
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "DeepSeek Search"
BASE = "https://api.deepseek.com"
LONGEST = 128  # characters of a query
SETTINGS = (
    Setting("DEEPSEEK_API_KEY", "Key of DeepSeek", secret=True),
    Setting("DEEPSEEK_SEARCH_BASE_URL", "Another server of DeepSeek's search API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search; sites and the language are operators in its text."""
    text = with_sites(query) + (f" lang:{query.language.lower()}" if query.language else "")
    if len(text) > LONGEST:  # rules are applied to the results again
        text = query.text[:LONGEST]
    url = base(keys, "DEEPSEEK_SEARCH_BASE_URL", BASE) + "/v1/tools/search"
    headers = {"Authorization": f"Bearer {keys.get('DEEPSEEK_API_KEY', '')}"}
    return post(url, {"query": text, "count": query.max_results}, headers)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    return results(found, "deepseek", TITLE, "url", "title", "summary snippet", "date")


ENGINE = Engine(
    "deepseek",
    TITLE,
    needs=("DEEPSEEK_API_KEY",),
    applies=frozenset({"domains", "language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=5.0,
    untested=True,
)
