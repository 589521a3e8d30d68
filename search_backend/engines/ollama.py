"""Ollama's hosted web search: a key of ollama.com, free within limits, no options but the count.

https://docs.ollama.com/capabilities/web-search
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows, with_sites
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Ollama web search"
BASE = "https://ollama.com"
MOST = 10
SETTINGS = (
    Setting("OLLAMA_API_KEY", "Key for ollama.com", secret=True),
    Setting("OLLAMA_SEARCH_BASE_URL", "Another server of Ollama's web search", BASE),
    Setting("OLLAMA_NO_CLOUD", "1 = nothing of Ollama's cloud is used"),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A query and a count, more cannot be said."""
    body = {"query": with_sites(query), "max_results": min(query.max_results, MOST)}
    url = base(keys, "OLLAMA_SEARCH_BASE_URL", BASE) + "/api/web_search"
    return post(url, body, {"Authorization": f"Bearer {keys.get('OLLAMA_API_KEY', '')}"})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    return results(found, "ollama", TITLE, "url", "title", "content")


ENGINE = Engine(
    "ollama",
    TITLE,
    needs=("OLLAMA_API_KEY",),
    wire=Wire(request, parse),
    settings=SETTINGS,
    off_by="OLLAMA_NO_CLOUD",
    untested=True,
)
