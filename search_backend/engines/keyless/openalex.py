"""OpenAlex: works of science of every field, by title, abstract and full text.

Without a key it allows some ten searches a day; a free one allows a thousand.
https://developers.openalex.org/api-reference/authentication
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "OpenAlex"
BASE = "https://api.openalex.org"
SETTINGS = (
    CONTACT,
    Setting("OPENALEX_API_KEY", "Key of OpenAlex, which works without at a low rate", secret=True),
    Setting("OPENALEX_BASE_URL", "Another server of the OpenAlex API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search of works; the API takes its key in the address only."""
    parameters: dict[str, object] = {"search": query.text, "per-page": query.max_results}
    if key := keys.get("OPENALEX_API_KEY"):
        parameters["api_key"] = key
    return get(base(keys, "OPENALEX_BASE_URL", BASE) + "/works", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]; the page of a work is its publisher's, else its DOI, else its id."""
    found = rows(checked(response, TITLE), "results", title=TITLE)
    made = (
        result("openalex", _page(r), r.get("display_name"), _abstract(r), r.get("publication_date"))
        for r in found
    )
    return usable(made, TITLE)


def _page(row: Mapping[str, Any]) -> object:
    place = row.get("primary_location")
    landing = place.get("landing_page_url") if isinstance(place, Mapping) else None
    return row.get("doi") or landing or row.get("id")


def _abstract(row: Mapping[str, Any]) -> str:
    """abstract_inverted_index: {word: [places]}."""
    index = row.get("abstract_inverted_index")
    pairs = index.items() if isinstance(index, Mapping) else ()
    spots = ((at, word) for word, places in pairs if isinstance(places, list) for at in places)
    words = sorted((at, word) for at, word in spots if isinstance(at, int))
    return " ".join(word for _, word in words[:150])


ENGINE = Engine(
    "openalex",
    TITLE,
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=2.0,
    kinds=("paper",),
    untested=True,
)
