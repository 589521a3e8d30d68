"""Ollama: POST /api/web_search and /api/web_fetch, as its cloud and a local server have them.

A failed search and an unreadable page are errors there; a search without results is an empty list.

Spec: https://docs.ollama.com/capabilities/web-search
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from searchloop.search_backend.other_apis import (
    MOST_CHARACTERS,
    Contract,
    Route,
    Shape,
    Values,
    answered,
    opened,
    sentence_error,
)

RESULTS = 5


def _search(values: Values, service: Contract) -> dict[str, Any]:
    count = values.get("max_results")
    asked = {"query": values.get("query"), "max_results": RESULTS if count is None else count}
    answer = answered(service.search(asked))
    return {
        "results": [
            {"title": result.title, "url": result.url, "content": result.snippet}
            for result in answer.results
        ]
    }


def _fetch(values: Values, service: Contract) -> dict[str, Any]:
    view = opened(service.open_page({"url": values.get("url"), "max_length": MOST_CHARACTERS}))
    return {"title": view.page.title, "content": view.content, "links": list(view.page.links)}


_SEARCH = Route("/api/web_search", ("POST",), "Search, as Ollama is asked", _search)
_FETCH = Route("/api/web_fetch", ("POST",), "Read a page, as Ollama is asked", _fetch)
SHAPE = Shape(
    (
        _SEARCH,
        _FETCH,
        # Where a local server has them.
        replace(_SEARCH, path="/api/experimental/web_search"),
        replace(_FETCH, path="/api/experimental/web_fetch"),
    ),
    sentence_error,
)
