"""OpenStreetMap: places and addresses, by Nominatim.

https://nominatim.org/release-docs/latest/api/Search/; its terms allow one request a second.
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "OpenStreetMap"
BASE = "https://nominatim.openstreetmap.org"
SETTINGS = (CONTACT, Setting("NOMINATIM_BASE_URL", "Your own Nominatim", BASE))


def request(query: Query, keys: Keys) -> HttpRequest:
    """A free search for places."""
    parameters: dict[str, object] = {
        "q": query.text,
        "format": "jsonv2",
        "limit": query.max_results,
        "accept-language": (query.language or "en").lower(),
    }
    if query.country:
        parameters["countrycodes"] = query.country.lower()
    return get(base(keys, "NOMINATIM_BASE_URL", BASE) + "/search", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """A list of places."""
    found = rows(checked(response, TITLE), title=TITLE)
    made = (
        result(
            "openstreetmap",
            f"https://www.openstreetmap.org/{r.get('osm_type')}/{r.get('osm_id')}",
            r.get("display_name"),
            f"{r.get('category')}: {r.get('type')}, at {r.get('lat')}, {r.get('lon')}. "
            f"{r.get('licence', '')}",
        )
        for r in found
        if r.get("osm_type") in ("node", "way", "relation")
    )
    return usable(made, TITLE)


ENGINE = Engine(
    "openstreetmap",
    TITLE,
    applies=frozenset({"country", "language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
    kinds=("address", "place"),
    sites=("openstreetmap.org",),
)
