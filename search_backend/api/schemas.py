"""JSON Schemas of the backend's own API; bodies are checked against them (`payload`).

`schemas.toml` holds the routes and the tables, as `searchloop.analysis.schemas` reads them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from searchloop.analysis.schemas import COUNT, KINDS, TEXT, Schema, nullable, objects, one_of
from searchloop.search_backend.pages.open_page import LONGEST_SLICE
from searchloop.search_backend.types import MOST_RESULTS

ANY_TIME = "all"  # what people write for no time range
MOST_FILE = 20 * 2**20  # bytes of a file that is read


def _words(most: int) -> Schema:
    return {**TEXT, "minLength": 1, "maxLength": most}


_KINDS: Mapping[str, Schema] = {
    **KINDS,
    "query": _words(2_000),
    "url": _words(8_192),
    "find": _words(500),
    "chat": _words(100),
    "name": _words(100),
    "file": _words(300),
    "type": _words(200),
    "base64": {**_words(2 * MOST_FILE), "contentEncoding": "base64"},
    "code": {**TEXT, "pattern": "^[A-Za-z]{2}$"},
    "results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
    "offset": {**COUNT, "maximum": 2**53},
    "slice": {"type": "integer", "minimum": 1, "maximum": LONGEST_SLICE},
    "folders": {"type": "array", "items": _words(4_096), "maxItems": 20},
    "time": one_of(("d", "w", "m", "y", ANY_TIME)),
    "safety": one_of(("off", "moderate", "strict")),
}
TABLES = tomllib.loads(Path(__file__).with_name("schemas.toml").read_text("utf-8"))
_DESCRIPTIONS: Mapping[str, str] = TABLES["descriptions"]


def loose(asked: Schema) -> Schema:
    """Returns the schema of a body in which null means the same as leaving a value out."""
    needed = asked.get("required", ())
    values = asked["properties"].items()
    loose = {name: value if name in needed else nullable(value) for name, value in values}
    return {**asked, "properties": loose}


ASKED = objects(TABLES["closed"], _KINDS, _DESCRIPTIONS, additionalProperties=False)
SCHEMAS: Mapping[str, Schema] = {
    **{name: loose(asked) for name, asked in ASKED.items()},
    **objects(TABLES["open"], _KINDS, _DESCRIPTIONS),
}
