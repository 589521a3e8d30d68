"""JSON Schemas of the backend's own API, and GET /api/openapi.json: every route as data.

`payload` checks bodies against the schemas. `schemas.toml` holds the routes and the tables, as
`searchloop.analysis.schemas` reads them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchloop.analysis.schemas import COUNT, KINDS, TEXT, Schema, nullable, objects, one_of, ref
from searchloop.search_backend.other_apis import Route, find_shapes
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


def document(*, secured: bool = False) -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document; with `secured`, every route but health needs the token."""
    paths: dict[str, Any] = {}
    for method, path, words, body, answer in TABLES["routes"]:
        operation = _operation(words, ref(answer))
        if body:
            content = _content(ref(body))
            operation["requestBody"] = {"required": True, "content": content}
        if "{path}" in path:
            named = {"name": "path", "in": "path", "schema": TEXT, "required": True}
            operation["parameters"] = [named]
        if path == "/api/health":
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    for shape in find_shapes():
        for route in shape.routes:
            paths[route.path] = {
                method.lower(): _foreign(route, method) for method in route.methods
            }
    described = _operation("This description", {"type": "object"})
    paths["/api/openapi.json"] = {"get": described}
    return {
        "openapi": "3.1.0",
        "info": {"title": "searchloop search backend", "version": "1"},
        "security": [{"bearer": []}, {"basic": []}] if secured else [],
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def health() -> dict[str, Any]:
    """Returns the answer of GET /api/health; a route is written METHOD PATH."""
    paths = document()["paths"].items()
    routes = [f"{method.upper()} {path}" for path, methods in paths for method in methods]
    return {"status": "ok", "service": "search_backend", "routes": routes}


def _foreign(route: Route, method: str) -> dict[str, Any]:
    """Describes a route of another vendor's API, which documents what its bodies hold."""
    operation = _operation(route.summary, {}, _content({"type": "object"}))
    if method == "POST":
        kind = "application/x-www-form-urlencoded" if route.form else "application/json"
        content = {kind: {"schema": {"type": "object"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _operation(words: str, answer: Schema, refused: Schema | None = None) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": words, "content": _content(answer)}}
    content = refused or _content(ref("Error"))
    said = "Refused; the body says why and what to do"
    responses["4XX"] = {"description": said, "content": content}
    responses["5XX"] = {"description": "Failed; the body says what to do", "content": content}
    return {"summary": words, "responses": responses}


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
