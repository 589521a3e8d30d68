"""GET /api/openapi.json: every route of the backend as data, those of `shapes` included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.search_backend.api import payload
from searchloop.search_backend.other_apis import (
    OPTIONAL_TEXT,
    TEXT,
    Route,
    Schema,
    find_shapes,
    list_of,
    record,
)
from searchloop.search_backend.pages.open_page import LONGEST_SLICE
from searchloop.search_backend.types import MOST_RESULTS

_COUNT: Schema = {"type": "integer", "minimum": 0}
_UNSEEN: Schema = {**_COUNT, "description": "Number of invisible characters removed"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS = list_of(TEXT)
_CODE: Schema = {**TEXT, "pattern": "^[A-Za-z]{2}$"}


def _list(of: str) -> Schema:
    return list_of({"$ref": f"#/components/schemas/{of}"})


def _asked(properties: Mapping[str, Schema], needed: str) -> Schema:
    """Returns the schema of a body; null means the same as leaving a value out."""
    loose = {
        name: schema if name == needed else {"anyOf": [schema, {"type": "null"}]}
        for name, schema in properties.items()
    }
    return record(loose, needed)


_CLOSED: Schema = {"additionalProperties": False}
_PROBLEM = record(dict.fromkeys(("code", "message", "remedy"), TEXT), "code", "message")
_CHAT: Schema = {**TEXT, "minLength": 1, "maxLength": payload.LONGEST_CHAT}
_FOR: Mapping[str, Schema] = {
    "chat": {**_CHAT, "description": "The chat that asks, for POST /api/forget"},
    "temporary": {**_FLAG, "description": "Write nothing of this to the disk"},
}
_SCHEMAS: Mapping[str, Schema] = {
    "Error": record({"error": _PROBLEM}, "error"),
    "WebSearch": _CLOSED
    | _asked(
        {
            "query": {**TEXT, "minLength": 1, "maxLength": payload.LONGEST_QUERY},
            "max_results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
            "allowed_domains": _TEXTS,
            "blocked_domains": _TEXTS,
            "time_range": {**TEXT, "enum": [*payload.TIME_RANGES, payload.ANY_TIME]},
            "country": _CODE,
            "language": _CODE,
            "safe_search": {**TEXT, "enum": list(payload.SAFE_SEARCHES)},
            "engine": {**TEXT, "minLength": 1, "maxLength": 100},
            "folders": {**_TEXTS, "maxItems": payload.MOST_FOLDERS},
            **_FOR,
            "explain": _FLAG,
        },
        "query",
    ),
    "Attempt": record(
        {
            "engine": TEXT,
            "status": {**TEXT, "enum": ["ok", "empty", "blocked", "error", "skipped"]},
            "ms": _COUNT,
            "waited_ms": _COUNT,
            "error": _PROBLEM,
            **dict.fromkeys(("why", "query", "how"), TEXT),
        },
        *("engine", "status", "ms"),
    ),
    "Result": record(
        {
            **dict.fromkeys(("title", "url", "snippet", "source", "published"), TEXT),
            "invisible": _UNSEEN,
        },
        *("title", "url", "snippet", "source"),
    ),
    "SearchAnswer": record(
        {
            "query": TEXT,
            "engine": OPTIONAL_TEXT,
            "status": {**TEXT, "enum": ["ok", "empty", "blocked", "error"]},
            "results": _list("Result"),
            "attempts": _list("Attempt"),
            "filtered": record({"rule": TEXT, "dropped": _COUNT, "lifted": _FLAG}),
            "not_applied": _TEXTS,
            "cached": _FLAG,
            "age": _COUNT,
            "ranking": list_of(record({"url": TEXT, "reasons": _TEXTS}, "url", "reasons")),
        },
        *("query", "engine", "status", "results", "attempts"),
    ),
    "OpenPage": _CLOSED
    | _asked(
        {
            "url": {**TEXT, "minLength": 1, "maxLength": payload.LONGEST_URL},
            "find": {**TEXT, "minLength": 1, "maxLength": payload.LONGEST_FIND},
            "offset": {**_COUNT, "maximum": 2**53},
            "max_length": {"type": "integer", "minimum": 1, "maximum": LONGEST_SLICE},
            "allowed_domains": _TEXTS,
            "blocked_domains": _TEXTS,
            "reader": {**TEXT, "minLength": 1, "maxLength": 100},
            **_FOR,
        },
        "url",
    ),
    "Page": record(
        {
            **dict.fromkeys(("url", "final_url", "title", "content", "reader"), TEXT),
            **dict.fromkeys(("content_length", "original_length", "offset"), _COUNT),
            **dict.fromkeys(("age", "match_count"), _COUNT),
            **dict.fromkeys(("attempts", "matches"), list_of({"type": "object"})),
            **dict.fromkeys(("truncated", "cached", "cut"), _FLAG),
            "stale": _PROBLEM,
            "next_offset": {"type": ["integer", "null"]},
            "status": {**TEXT, "enum": ["ok", "blocked", "needs_js", "error"]},
            "error": {"anyOf": [_PROBLEM, {"type": "null"}]},
            "links": _TEXTS,
            "invisible": _UNSEEN,
            "origin": {**TEXT, "enum": ["web", "cache", "library"]},
        },
        *("url", "final_url", "content", "content_length", "original_length", "truncated"),
        *("next_offset", "status", "error"),
    ),
    "ReadFile": _CLOSED
    | _asked(
        {
            "data": {**TEXT, "contentEncoding": "base64"},
            "name": {**TEXT, "minLength": 1, "maxLength": 300},
            "media_type": {**TEXT, "minLength": 1, "maxLength": 200},
        },
        "data",
    ),
    "FilePages": record(
        {
            "title": TEXT,
            "pages": _TEXTS,
            "cut": _FLAG,
            "status": {**TEXT, "enum": ["ok", "error"]},
            "error": {"anyOf": [_PROBLEM, {"type": "null"}]},
        },
        *("title", "pages", "cut", "status", "error"),
    ),
    "Engines": record(
        {"engines": {"type": "array"}, "readers": {"type": "array"}, "offline": _FLAG},
        *("engines", "readers", "offline"),
    ),
    "Forget": _CLOSED | _asked({"chat": _CHAT}, "chat"),
    "Forgotten": record({"pages": _COUNT, "kept": _COUNT}, "pages", "kept"),
    "Document": record({"url": TEXT, "title": TEXT, "content": TEXT}, "url", "content"),
    "Health": record({"status": TEXT, "service": TEXT, "routes": _TEXTS}, "status"),
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
        operation = _operation(words, {"$ref": f"#/components/schemas/{answer}"})
        if body:
            content = _content({"$ref": f"#/components/schemas/{body}"})
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
            _parameter(name, "query", schema, name == route.needed)
            for name, schema in route.asked.items()
        ]
        return operation
    kind = "application/x-www-form-urlencoded" if route.form else "application/json"
    schema = (record if route.form else _asked)(route.asked, route.needed)
    operation["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return operation


def _operation(words: str, answer: Schema, refused: Schema | None = None) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": words, "content": _content(answer)}}
    content = refused or _content({"$ref": "#/components/schemas/Error"})
    said = "Refused; the body says why and what to do"
    responses["4XX"] = {"description": said, "content": content}
    responses["5XX"] = {"description": "Failed; the body says what to do", "content": content}
    return {"summary": words, "responses": responses}


def _parameter(name: str, place: str, schema: Schema, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": required}


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
