"""PubMed: papers of medicine and biology, by the E-utilities of the NCBI in two requests.

https://www.ncbi.nlm.nih.gov/books/NBK25497/; three requests a second are allowed without a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines._json import joined
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, get
from searchloop.search_backend.types import Query, SearchResult

TITLE = "PubMed"
BASE = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
SETTINGS = (CONTACT, Setting("PUBMED_BASE_URL", "Another server of the E-utilities", BASE))
COMMON = {"db": "pubmed", "retmode": "json", "tool": "searchloop"}


def request(query: Query, keys: Keys) -> HttpRequest:
    """esearch: the ids of papers, best first."""
    parameters = COMMON | {"term": query.text, "retmax": query.max_results, "sort": "relevance"}
    return get(
        answers.base(keys, "PUBMED_BASE_URL", BASE) + "/esearch.fcgi", parameters, polite(keys)
    )


def then(response: HttpResponse, keys: Keys) -> HttpRequest | None:
    """esummary of the ids in esearchresult.idlist; None if there are none."""
    value = answers.checked(response, TITLE)
    ids = _part(value, "esearchresult").get("idlist")
    if not isinstance(ids, list) or not all(isinstance(one, str) and one.isdigit() for one in ids):
        raise answers.misshapen(TITLE)
    parameters = COMMON | {"id": ",".join(ids)}
    url = answers.base(keys, "PUBMED_BASE_URL", BASE) + "/esummary.fcgi"
    return get(url, parameters, polite(keys)) if ids else None


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """result.{uids[], ID: {title, fulljournalname, authors[], sortpubdate}}; nothing for the
    answer of an esearch without ids."""
    value = answers.checked(response, TITLE)
    if isinstance(value, Mapping) and "esearchresult" in value:
        return []
    found = _part(value, "result")
    ids = found.get("uids")
    if not isinstance(ids, list):
        raise answers.misshapen(TITLE)
    return answers.usable((_paper(uid, found.get(uid)) for uid in map(str, ids)), TITLE)


def _part(value: Any, name: str) -> Mapping[str, Any]:
    part = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(part, Mapping):
        raise answers.failure(value, TITLE, empty=False) or answers.misshapen(TITLE)
    return part


def _paper(uid: str, paper: Any) -> SearchResult | None:
    if not isinstance(paper, Mapping):
        return None
    names = paper.get("authors")
    known = names if isinstance(names, list) else []
    authors = [a.get("name") for a in known if isinstance(a, Mapping)][:4]
    about = joined(". ", joined(", ", *authors), paper.get("fulljournalname"))
    day = str(paper.get("sortpubdate") or "").partition(" ")[0]
    page = f"https://pubmed.ncbi.nlm.nih.gov/{uid}/" if uid.isdigit() else None
    return answers.result("pubmed", page, paper.get("title"), about, day)


ENGINE = Engine(
    "pubmed",
    TITLE,
    wire=Wire(request, parse, then),
    settings=SETTINGS,
    rate=1.5,
    kinds=("medicine",),
    sites=("pubmed.ncbi.nlm.nih.gov",),
)
