"""GitHub: public repositories.

https://docs.github.com/en/rest/search/search; ten searches a minute are allowed without a key.
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "GitHub"
BASE = "https://api.github.com"
SETTINGS = (CONTACT, Setting("GITHUB_API_BASE_URL", "Another server of the GitHub API", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search in names, descriptions and topics."""
    headers = polite(keys) | {"Accept": "application/vnd.github+json"}
    url = base(keys, "GITHUB_API_BASE_URL", BASE) + "/search/repositories"
    return get(url, {"q": query.text, "per_page": query.max_results}, headers)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """items[]; the date is that of the last push."""
    found = rows(checked(response, TITLE), "items", title=TITLE)
    made = (
        result(
            *("github", r.get("html_url"), r.get("full_name")),
            f"{r.get('description') or ''} ({r.get('stargazers_count')} stars)",
            r.get("pushed_at"),
        )
        for r in found
    )
    return usable(made, TITLE)


ENGINE = Engine(
    "github",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1 / 6,
    kinds=("repository",),
    sites=("github.com",),
)
