"""OpenAlex: works of science of every field, by title, abstract and full text.

Without a key it allows some ten searches a day; a free one allows a thousand.
https://developers.openalex.org/api-reference/authentication
"""

from __future__ import annotations

from collections.abc import Mapping

from searchloop.search_backend.engines._json import Row
from searchloop.search_backend.engines.keyless import CONTACT, site_engine
from searchloop.search_backend.plugin import Setting

KEY = Setting("OPENALEX_API_KEY", "Key of OpenAlex, which works without at a low rate", secret=True)


def fields(row: Row) -> tuple[object, ...]:
    """The page of a work is its DOI, else its publisher's, else its id."""
    place = row.get("primary_location")
    landing = place.get("landing_page_url") if isinstance(place, Mapping) else None
    page = row.get("doi") or landing or row.get("id")
    return page, row.get("display_name"), _abstract(row), row.get("publication_date")


def _abstract(row: Row) -> str:
    """abstract_inverted_index: {word: [places]}."""
    index = row.get("abstract_inverted_index")
    pairs = index.items() if isinstance(index, Mapping) else ()
    spots = ((at, word) for word, places in pairs if isinstance(places, list) for at in places)
    words = sorted((at, word) for at, word in spots if isinstance(at, int))
    return " ".join(word for _, word in words[:150])


ENGINE = site_engine(
    *("openalex", "OpenAlex", "GET /works"),
    ("OPENALEX_BASE_URL", "https://api.openalex.org"),
    lambda query: {"search": query.text, "per-page": query.max_results},
    "results",
    fields,
    given={"api_key": KEY.name},  # the API takes it in the address only
    more=(CONTACT, KEY),
    rate=2.0,
    kinds=("paper",),
    untested=True,
)
