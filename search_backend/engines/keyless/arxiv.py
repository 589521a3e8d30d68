"""arXiv: preprints of physics, mathematics and computer science, as an Atom feed.

https://info.arxiv.org/help/api/user-manual.html; its terms allow one request in three seconds.
"""

from __future__ import annotations

import re

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, get
from searchloop.search_backend.plugin.markup import Markup
from searchloop.search_backend.types import Query, SearchResult

TITLE = "arXiv"
BASE = "https://export.arxiv.org"
SETTINGS = (CONTACT, Setting("ARXIV_BASE_URL", "Another server of the arXiv API", BASE))
MARKUP = Markup(
    "entry", {name: name for name in ("id", "title", "summary", "published")}, empty="feed"
)
_ID = re.compile(r"\b(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?\b")


def request(query: Query, keys: Keys) -> HttpRequest:
    """All words in any field; an id in the query asks for that paper."""
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", query.text)
    parameters: dict[str, object] = {
        "search_query": " AND ".join(f"all:{word}" for word in words),
        "max_results": query.max_results,
        "sortBy": "relevance",
    }
    if named := _ID.search(query.text):
        parameters = {"id_list": named[0], "max_results": 1}
    return get(answers.base(keys, "ARXIV_BASE_URL", BASE) + "/api/query", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """feed/entry; an error is an entry as well, whose id leads to /api/errors."""
    if not 200 <= response.status < 300:
        raise answers.refusal(response, TITLE)
    if response.rows is None:
        raise answers.unreadable(response, TITLE)
    if any("/api/errors" in row["id"] for row in response.rows):
        raise answers.misshapen(TITLE)
    found = (
        {**row, "id": row["id"].strip().replace("http:", "https:", 1)} for row in response.rows
    )
    return answers.results(found, "arxiv", TITLE, "id", "title", "summary", "published")


ENGINE = Engine(
    "arxiv",
    TITLE,
    wire=Wire(request, parse, markup=MARKUP),
    settings=SETTINGS,
    rate=1 / 3,
    kinds=("preprint", "paper"),
    sites=("arxiv.org",),
)
