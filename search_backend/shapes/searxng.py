"""SearXNG: GET or POST /search?q=...&format=json, for clients that know SearXNG.

There are no pages to turn: the second one is empty. Failing engines stand in
`unresponsive_engines`, as there; an answer is 200 even when all of them failed.

Spec: https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from search_backend.errors import SearchBackendError
from search_backend.shapes import Route, Service, Shape, Values
from search_backend.types import Problem, SearchAnswer

RESULTS = 10
_TIME = {"day": "d", "week": "w", "month": "m", "year": "y"}
_SAFE = {"0": "off", "1": "moderate", "2": "strict"}
# Why an engine has no results though nothing is wrong with it.
_NO_FAULT = frozenset({"overtaken", "filtered"})
_PAGE = re.compile(r"[1-9][0-9]{0,3}")
_LANGUAGE = re.compile(r"([A-Za-z]{2})(?:[-_]([A-Za-z]{2}))?")


def _answer(values: Values, service: Service) -> dict[str, Any]:
    if (form := values.get("format") or "html") != "json":
        raise SearchBackendError(
            "unknown_format", f"The format {form[:20]!r} is not served.", "Ask with format=json."
        )
    asked = {"query": values.get("q"), "max_results": RESULTS}
    asked["time_range"] = _named(values, "time_range", _TIME)
    asked["safe_search"] = _named(values, "safesearch", _SAFE)
    # "all", "auto" and what we cannot read leave the choice to the engines.
    if found := _LANGUAGE.fullmatch(values.get("language") or ""):
        asked["language"], asked["country"] = found.groups()
    page = values.get("pageno") or "1"
    if not _PAGE.fullmatch(page):
        raise SearchBackendError("bad_request", "pageno is not a number from 1.", "Leave it out.")
    if page != "1":
        service.check(asked)
        return _written(str(asked["query"]), ())
    answer = service.search(asked)
    return _written(answer.query, tuple(_rows(answer)), answer)


def _named(values: Values, name: str, words: dict[str, str]) -> str | None:
    given = values.get(name) or ""
    if given and given not in words:
        raise SearchBackendError(
            "bad_request",
            f"{name} is not one of {', '.join(words)}.",
            f"Send one of them, or leave {name} out.",
        )
    return words.get(given)


def _rows(answer: SearchAnswer) -> Iterator[dict[str, Any]]:
    for place, result in enumerate(answer.results, 1):
        yield {
            "url": result.url,
            "title": result.title,
            "content": result.snippet,
            "publishedDate": result.published,
            "engine": result.source,
            "engines": [result.source],
            "positions": [place],
            "score": round(1 / place, 4),
            "category": "general",
            "template": "default.html",
        }


def _written(
    query: str, rows: tuple[dict[str, Any], ...], answer: SearchAnswer | None = None
) -> dict[str, Any]:
    failed = [
        [attempt.engine, attempt.error.message]
        for attempt in (answer.attempts if answer else ())
        if attempt.error and attempt.error.code not in _NO_FAULT
    ]
    return {
        "query": query,
        "number_of_results": len(rows),
        "results": list(rows),
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": failed,
    }


def _error(_status: int, problem: Problem) -> dict[str, Any]:
    return {"error": f"{problem.message} {problem.remedy}".strip()}


_TEXT = {"type": "string"}
_LIST = {"type": "array"}
SHAPE = Shape(
    "searxng",
    (
        Route(
            "/search",
            ("GET", "POST"),
            "Search, as SearXNG is asked",
            {
                "q": {**_TEXT, "minLength": 1, "maxLength": 2000},
                "format": {**_TEXT, "enum": ["json"]},
                "language": _TEXT,
                "time_range": {**_TEXT, "enum": ["", *_TIME]},
                "safesearch": {**_TEXT, "enum": ["", *_SAFE]},
                "pageno": {**_TEXT, "pattern": "^[1-9][0-9]{0,3}$"},
            },
            "q",
            {
                "type": "object",
                "properties": {
                    "query": _TEXT,
                    "number_of_results": {"type": "integer"},
                    "results": {**_LIST, "items": {"type": "object"}},
                    "unresponsive_engines": {**_LIST, "items": {**_LIST, "items": _TEXT}},
                },
                "required": ["query", "results", "unresponsive_engines"],
            },
            _answer,
            form=True,
        ),
    ),
    _error,
)
