"""SearXNG: /search?q=...&format=json, for clients that know SearXNG.

Only the first page has results. Failing engines are listed in `unresponsive_engines`, as there; the
status is 200 even if all of them failed.

Spec: https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from searchloop.search_backend.other_apis import Contract, Route, Shape, Values, sentence_error
from searchloop.search_backend.types import TIME_WORDS, SearchAnswer, SearchBackendError

RESULTS = 10
_TIME = {word: letter for letter, word in TIME_WORDS.items()}
_SAFE = {"0": "off", "1": "moderate", "2": "strict"}
# Why an engine has no results though nothing is wrong with it.
_NO_FAULT = frozenset({"overtaken", "filtered"})
_PAGE = re.compile(r"[1-9][0-9]{0,3}")
_LANGUAGE = re.compile(r"([A-Za-z]{2})(?:[-_]([A-Za-z]{2}))?")


def _answer(values: Values, service: Contract) -> dict[str, Any]:
    if (form := values.get("format") or "html") != "json":
        what = f"The format {form[:20]!r} is not served."
        raise SearchBackendError("unknown_format", what, "Ask with format=json.")
    asked = {"query": values.get("q"), "max_results": RESULTS}
    asked["time_range"] = _named(values, "time_range", _TIME)
    asked["safe_search"] = _named(values, "safesearch", _SAFE)
    # "all", "auto" and what we cannot read leave the choice to the engines.
    if found := _LANGUAGE.fullmatch(values.get("language") or ""):
        asked["language"], asked["country"] = found.groups()
    page = values.get("pageno") or "1"
    if not _PAGE.fullmatch(page):
        raise SearchBackendError("bad_request", "pageno is not a number from 1.", "Leave it out.")
    answer = service.search(asked)
    rows = list(_rows(answer)) if page == "1" else []
    failed = [
        [attempt.engine, attempt.error.message]
        for attempt in answer.attempts
        if attempt.error and attempt.error.code not in _NO_FAULT
    ]
    return {
        "query": answer.query,
        "number_of_results": len(rows),
        "results": rows,
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": failed,
    }


def _named(values: Values, name: str, words: dict[str, str]) -> str | None:
    given = values.get(name) or ""
    if given and given not in words:
        what = f"{name} is not one of {', '.join(words)}."
        raise SearchBackendError("bad_request", what, f"Send one of them, or leave {name} out.")
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


_READ = ("GET", "POST")
_MAIN = "Search, as SearXNG's main page is asked"
SHAPE = Shape(
    (
        Route("/", _READ, _MAIN, _answer, form=True),
        Route("/search", _READ, "Search, as SearXNG is asked", _answer, form=True),
    ),
    sentence_error,
)
