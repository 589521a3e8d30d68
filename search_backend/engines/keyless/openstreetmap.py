"""OpenStreetMap: places and addresses, by Nominatim.

https://nominatim.org/release-docs/latest/api/Search/; its terms allow one request a second.
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, joined
from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A free search for places."""
    return {
        "q": query.text,
        "format": "jsonv2",
        "limit": query.max_results,
        "accept-language": query.language or "en",
        "countrycodes": query.country,
    }


def fields(row: Row) -> tuple[object, ...]:
    """The snippet is the kind of place, where it is, and the licence."""
    number, lat, lon = (joined("", row.get(name)) for name in ("osm_id", "lat", "lon"))
    known = number.isdecimal() and row.get("osm_type") in ("node", "way", "relation")
    page = f"https://www.openstreetmap.org/{row['osm_type']}/{number}" if known else None
    kind = joined(": ", row.get("category"), row.get("type"))
    about = joined(", ", kind, lat and lon and f"at {lat}, {lon}")
    told = joined(". ", about, row.get("licence"))
    return page, row.get("display_name"), told


ENGINE = site_engine(
    *("openstreetmap", "OpenStreetMap", "GET /search"),
    ("NOMINATIM_BASE_URL", "https://nominatim.openstreetmap.org"),
    ask,
    "",
    fields,
    applies=frozenset({"country", "language"}),
    rate=1.0,
    kinds=("place",),
    sites=("openstreetmap.org",),
)
