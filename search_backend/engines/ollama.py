"""Ollama's hosted web search: a key of ollama.com, free within limits, no options but the count.

https://docs.ollama.com/capabilities/web-search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.plugin.answers import with_sites

MOST = 10
ENGINE = json_engine(
    *("ollama", "Ollama web search", "POST /api/web_search"),
    ("OLLAMA_SEARCH_BASE_URL", "https://ollama.com"),
    lambda query: {"query": with_sites(query), "max_results": min(query.max_results, MOST)},
    "results",
    ("url", "title", "content"),
    key=Setting("OLLAMA_API_KEY", "Key for ollama.com", secret=True),
    more=(Setting("OLLAMA_NO_CLOUD", "1 = nothing of Ollama's cloud is used"),),
    off_by="OLLAMA_NO_CLOUD",
    untested=True,
)
