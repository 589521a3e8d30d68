"""Stack Exchange: questions and answers of Stack Overflow, its largest site.

https://api.stackexchange.com/docs/advanced-search; 300 requests a day are allowed without a key.
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Stack Exchange"
BASE = "https://api.stackexchange.com/2.3"
SETTINGS = (
    CONTACT,
    Setting("STACKEXCHANGE_BASE_URL", "Another server of the Stack Exchange API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search for questions by relevance."""
    parameters = {
        "q": query.text,
        "site": "stackoverflow",
        "order": "desc",
        "sort": "relevance",
        "pagesize": query.max_results,
    }
    url = base(keys, "STACKEXCHANGE_BASE_URL", BASE) + "/search/advanced"
    return get(url, parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """items[]; the snippet says if there is an answer."""
    found = rows(checked(response, TITLE), "items", title=TITLE)
    made = (
        result(
            *("stackexchange", r.get("link"), r.get("title")),
            f"{r.get('answer_count')} answers, score {r.get('score')}; {_tags(r.get('tags'))}",
            r.get("creation_date"),
        )
        for r in found
    )
    return usable(made, TITLE)


def _tags(found: object) -> str:
    return ", ".join(map(str, found)) if isinstance(found, list) else "-"


ENGINE = Engine(
    "stackexchange",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
    kinds=("programming",),
    sites=("stackoverflow.com", "stackexchange.com", "superuser.com", "serverfault.com"),
)
