"""GET /api/openapi.json: every route of the backend as data, other people's APIs included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from search_backend import pages, payload
from search_backend.shapes import Route, Schema, find_shapes

_TEXT: Schema = {"type": "string"}
_MAYBE: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_UNSEEN: Schema = {**_COUNT, "description": "Characters nobody sees, taken out of it"}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
_FLAG: Schema = {"type": "boolean"}
_DOMAINS: Schema = {"type": "array", "items": _TEXT}
_CODE: Schema = {**_TEXT, "pattern": "^[A-Za-z]{2}$"}


def _object(properties: Mapping[str, Schema], *required: str, closed: bool = False) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False} if closed else schema


def _list(of: str) -> Schema:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{of}"}}


def _asked(properties: Mapping[str, Schema], needed: str, *, closed: bool = False) -> Schema:
    """A body: what is not needed may be null, which is the same as leaving it out."""
    loose = {
        name: schema if name == needed else {"anyOf": [schema, {"type": "null"}]}
        for name, schema in properties.items()
    }
    return _object(loose, needed, closed=closed)


_PROBLEM = _object(dict.fromkeys(("code", "message", "remedy"), _TEXT), "code", "message")
_SCHEMAS: Mapping[str, Schema] = {
    "Error": _object({"error": _PROBLEM}, "error"),
    "WebSearch": _asked(
        {
            "query": {**_TEXT, "minLength": 1, "maxLength": payload.LONGEST_QUERY},
            "max_results": {"type": "integer", "minimum": 1, "maximum": payload.MOST_RESULTS},
            "allowed_domains": _DOMAINS,
            "blocked_domains": _DOMAINS,
            "time_range": {**_TEXT, "enum": [*payload.TIME_RANGES, payload.ANY_TIME]},
            "country": _CODE,
            "language": _CODE,
            "safe_search": {**_TEXT, "enum": list(payload.SAFE_SEARCHES)},
            "engine": {**_TEXT, "minLength": 1, "maxLength": 100},
        },
        "query",
        closed=True,
    ),
    "Attempt": _object(
        {
            "engine": _TEXT,
            "status": {**_TEXT, "enum": ["ok", "empty", "blocked", "error", "skipped"]},
            "ms": _COUNT,
            "waited_ms": _COUNT,
            "error": _PROBLEM,
        },
        *("engine", "status", "ms"),
    ),
    "Result": _object(
        {
            **dict.fromkeys(("title", "url", "snippet", "source", "published"), _TEXT),
            "invisible": _UNSEEN,
        },
        *("title", "url", "snippet", "source"),
    ),
    "SearchAnswer": _object(
        {
            "query": _TEXT,
            "engine": _MAYBE,
            "status": {**_TEXT, "enum": ["ok", "empty", "blocked", "error"]},
            "results": _list("Result"),
            "attempts": _list("Attempt"),
            "filtered": _object({"rule": _TEXT, "dropped": _COUNT, "lifted": _FLAG}),
            "not_applied": _DOMAINS,
            "cached": _FLAG,
            "age": _COUNT,
        },
        *("query", "engine", "status", "results", "attempts"),
    ),
    "OpenPage": _asked(
        {
            "url": {**_TEXT, "minLength": 1, "maxLength": payload.LONGEST_URL},
            "find": {**_TEXT, "minLength": 1, "maxLength": payload.LONGEST_FIND},
            "offset": {**_COUNT, "maximum": 2**53},
            "max_length": {"type": "integer", "minimum": 1, "maximum": pages.LONGEST_SLICE},
            "allowed_domains": _DOMAINS,
            "blocked_domains": _DOMAINS,
            "reader": {**_TEXT, "minLength": 1, "maxLength": 100},
        },
        "url",
        closed=True,
    ),
    "Page": _object(
        {
            "url": _TEXT,
            "final_url": _TEXT,
            "title": _TEXT,
            "content": _TEXT,
            "content_length": _COUNT,
            "original_length": _COUNT,
            "offset": _COUNT,
            "truncated": _FLAG,
            "next_offset": _MAYBE_COUNT,
            "status": {**_TEXT, "enum": ["ok", "blocked", "needs_js", "error"]},
            "error": {"anyOf": [_PROBLEM, {"type": "null"}]},
            "links": _DOMAINS,
            "invisible": _UNSEEN,
            "origin": {**_TEXT, "enum": ["web", "cache", "library"]},
            "reader": _TEXT,
            "attempts": {"type": "array", "items": {"type": "object"}},
            "cached": _FLAG,
            "age": _COUNT,
            "matches": {"type": "array", "items": {"type": "object"}},
            "match_count": _COUNT,
        },
        *("url", "final_url", "content", "content_length", "original_length", "truncated"),
        *("next_offset", "status", "error"),
    ),
    "Engines": _object(
        {"engines": {"type": "array"}, "readers": {"type": "array"}, "offline": _FLAG},
        *("engines", "readers", "offline"),
    ),
    "Document": _object({"url": _TEXT, "title": _TEXT, "content": _TEXT}, "url", "content"),
    "Health": _object({"status": _TEXT, "service": _TEXT, "routes": _DOMAINS}, "status"),
}

# method, path, what it does, body, answer
_OWN: tuple[tuple[str, str, str, str | None, str], ...] = (
    ("post", "/api/web-search", "Search the web", "WebSearch", "SearchAnswer"),
    ("post", "/api/open-page", "Read a page", "OpenPage", "Page"),
    ("get", "/api/engines", "Engines, and what each one lacks", None, "Engines"),
    ("get", "/api/library/{path}", "A document of the library", None, "Document"),
    ("get", "/api/health", "Whether it is up; needs no token", None, "Health"),
)


def document(*, secured: bool = False) -> dict[str, Any]:
    """The OpenAPI 3.1 document; `secured`: every route but health wants the token."""
    paths: dict[str, Any] = {}
    for method, path, words, body, answer in _OWN:
        refused = _content({"$ref": "#/components/schemas/Error"})
        operation = _operation(words, {"$ref": f"#/components/schemas/{answer}"}, refused)
        if body:
            content = _content({"$ref": f"#/components/schemas/{body}"})
            operation["requestBody"] = {"required": True, "content": content}
        if "{path}" in path:
            operation["parameters"] = [_parameter("path", "path", _TEXT, True)]
        if path == "/api/health":
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    for shape in find_shapes():
        for route in shape.routes:
            paths[route.path] = {
                method.lower(): _foreign(route, method) for method in route.methods
            }
    described = _operation("This description", {"type": "object"}, None)
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
    """The answer of GET /api/health."""
    return {"status": "ok", "service": "search_backend", "routes": routes()}


def routes() -> list[str]:
    """METHOD PATH of every route."""
    return [f"{m.upper()} {p}" for p, methods in document()["paths"].items() for m in methods]


def _foreign(route: Route, method: str) -> dict[str, Any]:
    operation = _operation(route.summary, route.answered, _content({"type": "object"}))
    if method == "GET":
        operation["parameters"] = [
            _parameter(name, "query", schema, name == route.needed)
            for name, schema in route.asked.items()
        ]
        return operation
    kind = "application/x-www-form-urlencoded" if route.form else "application/json"
    schema = (_object if route.form else _asked)(route.asked, route.needed)
    operation["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return operation


def _operation(words: str, answer: Schema, refused: Schema | None) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": words, "content": _content(answer)}}
    told: Iterable[tuple[str, str]] = (
        ("4XX", "Refused; the body says why and what to do"),
        ("5XX", "Failed; the body says what to do"),
    )
    for status, what in told:
        content = refused or _content({"$ref": "#/components/schemas/Error"})
        responses[status] = {"description": what, "content": content}
    return {"summary": words, "responses": responses}


def _parameter(name: str, place: str, schema: Schema, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": required}


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
