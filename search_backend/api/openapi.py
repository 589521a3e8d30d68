"""GET /api/openapi.json: every route of the backend as data, those of `shapes` included."""

from __future__ import annotations

from typing import Any

from searchloop.analysis.schemas import TEXT, Schema, ref
from searchloop.search_backend.api.schemas import SCHEMAS, TABLES
from searchloop.search_backend.other_apis import Route, find_shapes


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
