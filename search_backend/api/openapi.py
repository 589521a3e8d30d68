"""GET /api/openapi.json: every route of the backend as data, those of `shapes` included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.analysis.schemas import COUNT, KINDS, TEXT, Schema, nullable, objects, one_of, ref
from searchloop.search_backend.api import payload
from searchloop.search_backend.other_apis import Route, find_shapes
from searchloop.search_backend.pages.open_page import LONGEST_SLICE
from searchloop.search_backend.types import MOST_RESULTS


def _words(most: int) -> Schema:
    return {**TEXT, "minLength": 1, "maxLength": most}


_KINDS: Mapping[str, Schema] = {
    **KINDS,
    "query": _words(payload.LONGEST_QUERY),
    "url": _words(payload.LONGEST_URL),
    "find": _words(payload.LONGEST_FIND),
    "chat": _words(payload.LONGEST_CHAT),
    "name": _words(100),
    "file": _words(300),
    "type": _words(200),
    "base64": {**TEXT, "contentEncoding": "base64"},
    "code": {**TEXT, "pattern": "^[A-Za-z]{2}$"},
    "results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
    "offset": {**COUNT, "maximum": 2**53},
    "slice": {"type": "integer", "minimum": 1, "maximum": LONGEST_SLICE},
    "folders": {"type": "array", "items": TEXT, "maxItems": payload.MOST_FOLDERS},
    "time": one_of([*payload.TIME_RANGES, payload.ANY_TIME]),
    "safety": one_of(payload.SAFE_SEARCHES),
}
# Bodies that hold these fields and no others.
_CLOSED = """
WebSearch     query:query max_results?:results allowed_domains?:[text] blocked_domains?:[text]
              time_range?:time country?:code language?:code safe_search?:safety engine?:name
              folders?:folders chat?:chat temporary?:boolean explain?:boolean
OpenPage      url:url find?:find offset?:offset max_length?:slice allowed_domains?:[text]
              blocked_domains?:[text] reader?:name chat?:chat temporary?:boolean
ReadFile      data:base64 name?:file media_type?:type
Forget        chat:chat
"""
_OPEN = """
Problem       code message remedy?
Error         error:Problem
Attempt       engine status:ok/empty/blocked/error/skipped ms:count waited_ms?:count error?:Problem
              why? query? how?
Result        title url snippet source published? invisible?:count
Filtered      rule? dropped?:count lifted?:boolean
Ranking       url reasons:[text]
SearchAnswer  query engine:text|null status:ok/empty/blocked/error results:[Result]
              attempts:[Attempt] filtered?:Filtered not_applied?:[text] cached?:boolean age?:count
              ranking?:[Ranking]
Page          url final_url title? content reader? content_length:count original_length:count
              offset?:count age?:count match_count?:count attempts?:[object] matches?:[object]
              truncated:boolean cached?:boolean cut?:boolean stale?:Problem
              next_offset:integer|null status:ok/blocked/needs_js/error error:Problem|null
              links?:[text] invisible?:count origin?:web/cache/library
FilePages     title pages:[text] cut:boolean status:ok/error error:Problem|null
Engines       engines:array readers:array offline:boolean
Forgotten     pages:count kept:count
Document      url title? content
Health        status service? routes?:[text]
"""
_DESCRIPTIONS: Mapping[str, str] = {
    "invisible": "Number of invisible characters removed",
    "WebSearch.chat": "The chat that asks, for POST /api/forget",
    "OpenPage.chat": "The chat that asks, for POST /api/forget",
    "temporary": "Write nothing of this to the disk",
}


def _loose(asked: Schema) -> Schema:
    """Returns the schema of a body in which null means the same as leaving a value out."""
    needed = asked.get("required", ())
    values = asked["properties"].items()
    loose = {name: value if name in needed else nullable(value) for name, value in values}
    return {**asked, "properties": loose}


_ASKED = objects(_CLOSED, _KINDS, _DESCRIPTIONS, additionalProperties=False)
_SCHEMAS: Mapping[str, Schema] = {
    **{name: _loose(asked) for name, asked in _ASKED.items()},
    **objects(_OPEN, _KINDS, _DESCRIPTIONS),
}

# Method, path, summary, schema of the body, schema of the answer.
_OWN: tuple[tuple[str, str, str, str | None, str], ...] = (
    ("post", "/api/web-search", "Search the web", "WebSearch", "SearchAnswer"),
    ("post", "/api/open-page", "Read a page", "OpenPage", "Page"),
    ("post", "/api/read-file", "Read a file, which is kept nowhere", "ReadFile", "FilePages"),
    ("post", "/api/forget", "Remove what only this chat brought", "Forget", "Forgotten"),
    ("get", "/api/engines", "Engines, and what each one lacks", None, "Engines"),
    ("get", "/api/library/{path}", "A document of the library", None, "Document"),
    ("get", "/api/health", "Health check; needs no token", None, "Health"),
)


def document(*, secured: bool = False) -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document; with `secured`, every route but health needs the token."""
    paths: dict[str, Any] = {}
    for method, path, words, body, answer in _OWN:
        operation = _operation(words, ref(answer))
        if body:
            content = _content(ref(body))
            operation["requestBody"] = {"required": True, "content": content}
        if "{path}" in path:
            operation["parameters"] = [_parameter("path", "path", TEXT, True)]
        if path in ("/api/health", "/healthz"):
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    for shape in find_shapes():
        for route in shape.routes:
            paths[route.path] = {
                method.lower(): _foreign(route, method) for method in route.methods
            }
    alive = _operation("Health check of one word; needs no token", TEXT)
    alive["responses"]["200"]["content"] = {"text/plain": {"schema": TEXT}}
    paths["/healthz"] = {"get": {**alive, "security": []}}
    described = _operation("This description", {"type": "object"})
    paths["/api/openapi.json"] = {"get": described}
    return {
        "openapi": "3.1.0",
        "info": {"title": "searchloop search backend", "version": "1"},
        "security": [{"bearer": []}, {"basic": []}] if secured else [],
        "paths": paths,
        "components": {
            "schemas": dict(_SCHEMAS),
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
    operation = _operation(route.summary, route.answered, _content({"type": "object"}))
    if route.moved:
        operation["responses"] = {"308": {"description": f"See {route.moved}"}} | {
            status: told for status, told in operation["responses"].items() if status != "200"
        }
    if method == "GET":
        operation["parameters"] = [
            _parameter(name, "query", schema, name in route.asked.get("required", ()))
            for name, schema in route.asked["properties"].items()
        ]
        return operation
    kind = "application/x-www-form-urlencoded" if route.form else "application/json"
    schema = route.asked if route.form else _loose(route.asked)
    operation["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return operation


def _operation(words: str, answer: Schema, refused: Schema | None = None) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": words, "content": _content(answer)}}
    content = refused or _content(ref("Error"))
    said = "Refused; the body says why and what to do"
    responses["4XX"] = {"description": said, "content": content}
    responses["5XX"] = {"description": "Failed; the body says what to do", "content": content}
    return {"summary": words, "responses": responses}


def _parameter(name: str, place: str, schema: Schema, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": required}


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
