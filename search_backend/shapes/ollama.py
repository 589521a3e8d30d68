"""Ollama: POST /api/web_search and /api/web_fetch, hosted ones and those of a local server.

A search that failed and a page that could not be read are errors there, with the sentence that says
why; a search that found nothing is an empty list.

Spec: https://docs.ollama.com/capabilities/web-search
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from search_backend.shapes import Route, Service, Shape, Values, answered, opened
from search_backend.types import Problem

RESULTS = 5
LONGEST = 100_000  # characters of a page


def _search(values: Values, service: Service) -> dict[str, Any]:
    count = values.get("max_results")
    asked = {"query": values.get("query"), "max_results": RESULTS if count is None else count}
    answer = answered(service.search(asked))
    return {
        "results": [
            {"title": result.title, "url": result.url, "content": result.snippet}
            for result in answer.results
        ]
    }


def _fetch(values: Values, service: Service) -> dict[str, Any]:
    view = opened(service.open_page({"url": values.get("url"), "max_length": LONGEST}))
    return {"title": view.page.title, "content": view.content, "links": list(view.page.links)}


def _error(_status: int, problem: Problem) -> dict[str, Any]:
    return {"error": f"{problem.message} {problem.remedy}".strip()}


_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_SEARCH = Route(
    "/api/web_search",
    ("POST",),
    "Search, as Ollama is asked",
    {
        "query": {**_TEXT, "minLength": 1, "maxLength": 2000},
        "max_results": {"type": "integer", "minimum": 1, "maximum": 20},
    },
    "query",
    {
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"title": _TEXT, "url": _TEXT, "content": _TEXT},
                    "required": ["title", "url", "content"],
                },
            }
        },
        "required": ["results"],
    },
    _search,
)
_FETCH = Route(
    "/api/web_fetch",
    ("POST",),
    "Read a page, as Ollama is asked",
    {"url": {**_TEXT, "minLength": 1, "maxLength": 8192}},
    "url",
    {
        "type": "object",
        "properties": {
            "title": _MAYBE,
            "content": _TEXT,
            "links": {"type": "array", "items": _TEXT},
        },
        "required": ["title", "content", "links"],
    },
    _fetch,
)
SHAPE = Shape(
    "ollama",
    (
        _SEARCH,
        _FETCH,
        # Where a local server has them.
        replace(_SEARCH, path="/api/experimental/web_search"),
        replace(_FETCH, path="/api/experimental/web_fetch"),
    ),
    _error,
)
