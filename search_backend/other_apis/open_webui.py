"""Open WebUI: its "external" web loader; it searches as it asks SearXNG.

POST /external/load {urls} -> [{page_content, metadata}]. An unreadable page is left out: the answer
has no place for a reason.

Spec: https://docs.openwebui.com/features/chat-conversations/web-search/providers/external
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from searchloop.search_backend.other_apis import (
    MOST_CHARACTERS,
    Contract,
    Route,
    Shape,
    Values,
    opened,
    sentence_error,
)
from searchloop.search_backend.types import PageView, SearchBackendError

MOST_URLS, AT_ONCE = 20, 5


def _load(values: Values, service: Contract) -> list[Any]:
    urls = values.get("urls")
    if not isinstance(urls, list) or not 1 <= len(urls) <= MOST_URLS:
        what = f"urls is not a list of 1 to {MOST_URLS} addresses."
        raise SearchBackendError("bad_request", what, "Send fewer.")
    asked = [{"url": url, "max_length": MOST_CHARACTERS} for url in urls]
    with ThreadPoolExecutor(min(len(asked), AT_ONCE)) as pool:
        # Each thread knows the request, whose asker may go away meanwhile.
        opening = [pool.submit(copy_context().run, service.open_page, each) for each in asked]
        views = [one.result() for one in opening]
    read = [view for view in views if view.page.error is None] or [opened(views[0])]
    return [_document(view) for view in read]


def _document(view: PageView) -> dict[str, Any]:
    page = view.page
    known = {"title": page.title, "published": page.published}
    about = {name: value for name, value in known.items() if value}
    return {"page_content": view.content, "metadata": {"source": page.url, **about}}


_LOAD = "Read pages, as Open WebUI asks an external loader"
SHAPE = Shape((Route("/external/load", ("POST",), _LOAD, _load),), sentence_error)
