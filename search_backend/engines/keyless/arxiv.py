"""arXiv: preprints of physics, mathematics and computer science, as an Atom feed.

https://info.arxiv.org/help/api/user-manual.html; its terms allow one request in three seconds.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, get
from searchloop.search_backend.types import Query, SearchResult

TITLE = "arXiv"
BASE = "https://export.arxiv.org"
ATOM = "{http://www.w3.org/2005/Atom}"
SETTINGS = (CONTACT, Setting("ARXIV_BASE_URL", "Another server of the arXiv API", BASE))
MOST_TAGS = 100_000  # some papers have thousands of authors
_ID = re.compile(r"\b(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?\b")


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses what a feed has not: its entities and attributes can grow without end.

    The parser tells it in each encoding, and before it reads any of them.
    """

    def doctype(self, *_: object) -> None:
        """Raises ParseError."""
        raise ElementTree.ParseError


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
    if response.body.count(b"<") > MOST_TAGS:
        raise answers.misshapen(TITLE)
    try:
        feed = ElementTree.fromstring(response.body, ElementTree.XMLParser(target=_NoDoctype()))
    except ElementTree.ParseError:
        raise answers.unreadable(response, TITLE) from None
    if feed.tag != f"{ATOM}feed":
        raise answers.unreadable(response, TITLE)
    made = []
    for entry in feed.iter(f"{ATOM}entry"):
        text = {k: entry.findtext(ATOM + k) or "" for k in ("id", "title", "summary", "published")}
        if "/api/errors" in text["id"]:
            raise answers.misshapen(TITLE)
        page = text["id"].replace("http:", "https:", 1)
        made.append(
            answers.result("arxiv", page, text["title"], text["summary"], text["published"])
        )
    return answers.usable(made, TITLE)


ENGINE = Engine(
    "arxiv",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1 / 3,
    kinds=("preprint", "paper"),
    sites=("arxiv.org",),
)
