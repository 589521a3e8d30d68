"""Tavily Extract: the text of a page, by credits; five pages that could be read cost one.

https://docs.tavily.com/documentation/api-reference/endpoint/extract
"""

from __future__ import annotations

from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, misshapen, rows
from searchloop.search_backend.readers import Service
from searchloop.search_backend.readers._served import failed, said, served
from searchloop.search_backend.types import Page

TITLE = "Tavily"
BASE = "https://api.tavily.com"
# This service's own statuses for a plan and a budget that are used up.
QUOTA = (402, 432, 433)
SETTINGS = (
    Setting("TAVILY_API_KEY", "Key of Tavily", secret=True),
    Setting("TAVILY_BASE_URL", "Another server of the Tavily API", BASE),
)


def request(url: str, keys: Keys) -> HttpRequest:
    """One page, at the cheaper depth."""
    body = {"urls": [url], "extract_depth": "basic", "format": "markdown", "timeout": 20}
    headers = {"Authorization": f"Bearer {keys.get('TAVILY_API_KEY', '')}"}
    return post(base(keys, "TAVILY_BASE_URL", BASE) + "/extract", body, headers)


def parse(response: HttpResponse, url: str, _keys: Keys) -> Page:
    """results[0], else failed_results[0]: the status is 200 either way."""
    value = checked(response, TITLE, QUOTA)
    if found := rows(value, "results", title=TITLE, sign="failed_results"):
        row = found[0]
        return served(url, row.get("raw_content"), final_url=row.get("url"), title=row.get("title"))
    if failures := rows(value, "failed_results", title=TITLE):
        why = said(failures[0].get("error"))
        return failed(url, "page_error", f"{TITLE} could not read the page: {why}.")
    raise misshapen(TITLE)


SERVICE = Service("tavily", TITLE, request, parse, needs=("TAVILY_API_KEY",), settings=SETTINGS)
