"""Jina Reader: opens a page in a browser and gives its text. Works without a key, at a lower rate.

https://github.com/jina-ai/reader
"""

from __future__ import annotations

from collections.abc import Mapping

from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, misshapen
from searchloop.search_backend.readers import Service
from searchloop.search_backend.readers._served import failed, said, served
from searchloop.search_backend.types import Page

TITLE = "Jina Reader"
BASE = "https://r.jina.ai"
SETTINGS = (
    Setting("JINA_API_KEY", "Key of Jina", secret=True),
    Setting("JINA_READER_BASE_URL", "Another server of Jina's reader", BASE),
)


def request(url: str, keys: Keys) -> HttpRequest:
    """A POST, so that the address travels in the body and its fragment with it."""
    headers = {"Accept": "application/json", "X-Timeout": "20"}
    if key := keys.get("JINA_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    return post(base(keys, "JINA_READER_BASE_URL", BASE) + "/", {"url": url}, headers)


def parse(response: HttpResponse, url: str, _keys: Keys) -> Page:
    """data.{title, url, content}; a fault of the page comes as data.warning or as a code."""
    value = checked(response, TITLE)
    data = value.get("data") if isinstance(value, Mapping) else None
    if not isinstance(data, Mapping):
        raise misshapen(TITLE)
    warning = data.get("warning")
    if isinstance(warning, str) and "returned error" in warning:
        return failed(url, "page_error", f"{TITLE} could not open the page: {said(warning)}.")
    return served(
        url,
        data.get("content"),
        final_url=data.get("url"),
        title=data.get("title"),
        date=data.get("publishedTime"),
    )


SERVICE = Service("jina", TITLE, request, parse, settings=SETTINGS)
