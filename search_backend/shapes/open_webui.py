"""Open WebUI: its "external" search and its "external" web loader, as it asks servers of one's own.

POST /external/search {query, count} -> [{link, title, snippet}], and POST /external/load {urls} ->
[{page_content, metadata}]. A page that cannot be read is left out, as it has no place for a reason.

Spec: https://docs.openwebui.com/features/chat-conversations/web-search/providers/external
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from search_backend.errors import SearchBackendError
from search_backend.payload import MOST_RESULTS
from search_backend.shapes import Route, Service, Shape, Values, answered, opened
from search_backend.types import PageView, Problem

RESULTS, MOST_URLS, AT_ONCE = 8, 20, 5
LONGEST = 100_000  # characters of a page


def _search(values: Values, service: Service) -> list[Any]:
    count = values.get("count")
    # It may be set to more than an engine is asked for; it takes what comes.
    most = min(count, MOST_RESULTS) if isinstance(count, int) else count
    asked = {"query": values.get("query"), "max_results": RESULTS if most is None else most}
    answer = answered(service.search(asked))
    return [
        {"link": result.url, "title": result.title, "snippet": result.snippet}
        for result in answer.results
    ]


def _load(values: Values, service: Service) -> list[Any]:
    urls = values.get("urls")
    if not isinstance(urls, list) or not 1 <= len(urls) <= MOST_URLS:
        raise SearchBackendError(
            "bad_request", f"urls is not a list of 1 to {MOST_URLS} addresses.", "Send fewer."
        )
    asked = [{"url": url, "max_length": LONGEST} for url in urls]
    with ThreadPoolExecutor(min(len(asked), AT_ONCE)) as pool:
        views = list(pool.map(service.open_page, asked))
    read = [view for view in views if view.page.error is None] or [opened(views[0])]
    return [_document(view) for view in read]


def _document(view: PageView) -> dict[str, Any]:
    page = view.page
    known = {"title": page.title, "language": page.language, "published": page.published}
    about = {name: value for name, value in known.items() if value}
    return {"page_content": view.content, "metadata": {"source": page.url, **about}}


def _error(_status: int, problem: Problem) -> dict[str, Any]:
    return {"error": f"{problem.message} {problem.remedy}".strip()}


_TEXT = {"type": "string"}
SHAPE = Shape(
    "open_webui",
    (
        Route(
            "/external/search",
            ("POST",),
            "Search, as Open WebUI asks an external engine",
            {
                "query": {**_TEXT, "minLength": 1, "maxLength": 2000},
                "count": {"type": "integer", "minimum": 1},
            },
            "query",
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": dict.fromkeys(("link", "title", "snippet"), _TEXT),
                    "required": ["link", "title", "snippet"],
                },
            },
            _search,
        ),
        Route(
            "/external/load",
            ("POST",),
            "Read pages, as Open WebUI asks an external loader",
            {
                "urls": {
                    "type": "array",
                    "items": {**_TEXT, "minLength": 1, "maxLength": 8192},
                    "minItems": 1,
                    "maxItems": MOST_URLS,
                }
            },
            "urls",
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"page_content": _TEXT, "metadata": {"type": "object"}},
                    "required": ["page_content", "metadata"],
                },
            },
            _load,
        ),
    ),
    _error,
)
