"""Firecrawl: opens a page in a browser and gives its main content as Markdown; one credit a page.

The service of that name, which gives a few pages without a key, or a server of one's own.
https://docs.firecrawl.dev/api-reference/endpoint/scrape
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, judge, misshapen
from searchloop.search_backend.readers import Service
from searchloop.search_backend.readers._served import served
from searchloop.search_backend.types import Page, failed_page

TITLE = "Firecrawl"
BASE = "https://api.firecrawl.dev"
# How long the service may take, and how old its copy may be, in milliseconds.
PATIENCE, OLDEST = 20_000, 3_600_000
SETTINGS = (
    Setting("FIRECRAWL_API_KEY", "Key of Firecrawl", secret=True),
    Setting("FIRECRAWL_BASE_URL", "Another Firecrawl server, e.g. your own", BASE),
)


def request(url: str, keys: Keys) -> HttpRequest:
    """The main content; a copy of the last hour will do."""
    body = {
        "url": url,
        "formats": ["markdown"],
        "onlyMainContent": True,
        "timeout": PATIENCE,
        "maxAge": OLDEST,
    }
    headers = {"Authorization": f"Bearer {key}"} if (key := keys.get("FIRECRAWL_API_KEY")) else {}
    return post(base(keys, "FIRECRAWL_BASE_URL", BASE) + "/v2/scrape", body, headers)


def parse(response: HttpResponse, url: str, _keys: Keys) -> Page:
    """data.markdown with data.metadata; the page's own status stands in the metadata."""
    value = checked(response, TITLE)
    data = value.get("data") if isinstance(value, Mapping) else None
    if not isinstance(data, Mapping):
        raise misshapen(TITLE)
    about = data.get("metadata")
    metadata: Mapping[str, Any] = about if isinstance(about, Mapping) else {}
    status = metadata.get("statusCode")
    if isinstance(status, int) and status >= 400:
        verdict, problem = judge(status)
        return failed_page(url, problem, verdict)
    return served(
        url,
        data.get("markdown"),
        final_url=metadata.get("url") or metadata.get("sourceURL"),
        title=metadata.get("title"),
        date=metadata.get("publishedTime"),
    )


SERVICE = Service("firecrawl", TITLE, request, parse, settings=SETTINGS)
