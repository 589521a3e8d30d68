"""Crawl4AI: a browser on a server of one's own that gives pages as Markdown.

Its package is asynchronous and drives a browser inside the process that imports it; its server does
the same behind an HTTP API, where it can be limited and restarted, so the server is what is asked.
https://docs.crawl4ai.com/core/docker-deployment/
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, misshapen
from searchloop.search_backend.readers import Service
from searchloop.search_backend.readers._served import failed, said, served
from searchloop.search_backend.types import Page

TITLE = "Crawl4AI"
SETTINGS = (
    Setting(
        "CRAWL4AI_URL",
        "Your Crawl4AI server, e.g. http://localhost:11235 (its token as http://:TOKEN@localhost)",
    ),
)


def request(url: str, keys: Keys) -> HttpRequest:
    """The main content (`fit`), not from the server's cache (`c`). A password in the server's
    address is its token."""
    address = urlsplit(base(keys, "CRAWL4AI_URL", ""))
    headers = {"Authorization": f"Bearer {unquote(key)}"} if (key := address.password) else {}
    place = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
    return post(place + "/md", {"url": url, "f": "fit", "q": None, "c": "0"}, headers)


def parse(response: HttpResponse, url: str, _keys: Keys) -> Page:
    """{url, markdown, success}; the title is the first heading."""
    value = checked(response, TITLE)
    if not isinstance(value, Mapping) or "success" not in value:
        raise misshapen(TITLE)
    if value["success"] is not True:
        why = said(value.get("error_message") or value.get("error"))
        return failed(url, "page_error", f"{TITLE} could not open the page: {why}.")
    return served(url, value.get("markdown"), final_url=value.get("url"))


SERVICE = Service("crawl4ai", TITLE, request, parse, needs=("CRAWL4AI_URL",), settings=SETTINGS)
