"""Ollama's hosted web search: a key of ollama.com, free within limits, no options but the count.

https://docs.ollama.com/capabilities/web-search
"""

from __future__ import annotations

from search_backend.answers import base, checked, result, rows, usable, with_sites
from search_backend.engines import Engine, Wire
from search_backend.http_values import HttpRequest, HttpResponse, post
from search_backend.keys import Keys, Setting
from search_backend.types import Query, SearchResult

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
    made = (result("ollama", r.get("url"), r.get("title"), r.get("content")) for r in found)
    return usable(made, TITLE)


ENGINE = Engine(
    "ollama",
    TITLE,
    needs=("OLLAMA_API_KEY",),
    wire=Wire(request, parse),
    settings=SETTINGS,
    off_by="OLLAMA_NO_CLOUD",
)
