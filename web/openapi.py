"""Every route, described as data; request bodies are checked against these same schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent import __version__
from agent.search_path import SEARCHES
from agent.tools import ALLOWED

MODES = tuple(ALLOWED)
FORMATS = ("md", "html", "json", "trace")
DECISIONS = ("once", "always", "deny")

Schema = dict[str, Any]


def _object(properties: Schema, *required: str, closed: bool = False) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False} if closed else schema


def _list(of: str) -> Schema:
    return {"type": "array", "items": _ref(of)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Schema = {"type": "string"}
_MAYBE: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
_TIME: Schema = {"type": "number", "description": "Seconds since 1970"}
_ANY: Schema = {"type": "object"}
_MODE: Schema = {"type": "string", "enum": list(MODES)}
_SEARCH: Schema = {"type": "string", "enum": list(SEARCHES)}
_MODEL: Schema = {"type": "string", "description": "provider:model"}
_DOMAINS: Schema = {"type": "array", "items": _TEXT}

BODIES: Mapping[str, Schema] = {
    "NewSession": _object(
        {"model": _MODEL, "mode": _MODE, "search": _SEARCH, "workspace": _MAYBE}, closed=True
    ),
    "SessionChanges": _object(
        {"title": _TEXT, "model": _MODEL, "mode": _MODE, "search": _SEARCH}, closed=True
    ),
    "NewMessage": _object(
        {"text": _TEXT, "model": _MODEL, "mode": _MODE, "search": _SEARCH}, "text", closed=True
    ),
    "Nothing": _object({}, closed=True),
    "Decision": _object(
        {"decision": {"type": "string", "enum": list(DECISIONS)}, "arguments": _ANY},
        "decision",
        closed=True,
    ),
    "WebSearch": _object(
        {
            "query": _TEXT,
            "max_results": {"type": "integer"},
            "allowed_domains": _DOMAINS,
            "blocked_domains": _DOMAINS,
            "time_range": {"type": "string", "enum": ["d", "w", "m", "y", "all"]},
            "country": _TEXT,
            "language": _TEXT,
            "safe_search": {"type": "string", "enum": ["off", "moderate", "strict"]},
            "engine": _TEXT,
        },
        "query",
    ),
    "OpenPage": _object(
        {
            "url": _TEXT,
            "find": _MAYBE,
            "offset": {"type": "integer"},
            "max_length": {"type": "integer"},
        },
        "url",
    ),
}

_SCHEMAS: Schema = {
    **BODIES,
    "Error": _object(
        {"error": _object({"code": _TEXT, "message": _TEXT, "remedy": _TEXT}, "code", "message")},
        "error",
    ),
    "Health": _object({"name": _TEXT, "status": _TEXT, "version": _TEXT}, "status"),
    "Session": _object(
        {
            "id": _TEXT,
            "title": _TEXT,
            "model": _MODEL,
            "mode": _MODE,
            "search": _SEARCH,
            "search_path": {"type": "string", "description": "The way the last turn really took"},
            "workspace": _MAYBE,
            "created": _TIME,
            "updated": _TIME,
            "messages": _COUNT,
            "running": {"type": "boolean"},
            "settings": {"type": "object", "description": "What few sessions have set"},
        },
        *("id", "title", "model", "mode", "search", "search_path", "created", "updated"),
    ),
    "Sessions": _object({"sessions": _list("Session")}, "sessions"),
    "Started": _object(
        {
            "run_id": _TEXT,
            "session_id": _TEXT,
            "seq": {"type": "integer", "description": "Follow the events after this one"},
        },
        *("run_id", "session_id", "seq"),
    ),
    "Cancelled": _object({"cancelled": {"type": "boolean"}}, "cancelled"),
    "Model": _object(
        {
            "id": _MODEL,
            "title": _TEXT,
            "capabilities": _ANY,
            "available": {"type": "boolean"},
            "local": {"type": "boolean"},
            "missing": _MAYBE,
            "remedy": _MAYBE,
            "calls": _MAYBE,
        },
        *("id", "available"),
    ),
    "Models": _object(
        {"models": _list("Model"), "default": _MODEL, "modes": _DOMAINS, "searches": _DOMAINS},
        "models",
    ),
    "Engines": _object(
        {"engines": {"type": "array", "items": _ANY}, "offline": {"type": "boolean"}}, "engines"
    ),
    "SearchAnswer": _object(
        {
            "query": _TEXT,
            "engine": _MAYBE,
            "status": _TEXT,
            "results": {"type": "array", "items": _ANY},
            "attempts": {"type": "array", "items": _ANY},
        },
        *("query", "status", "results", "attempts"),
    ),
    "Page": _object(
        {
            "url": _TEXT,
            "final_url": _MAYBE,
            "title": _MAYBE,
            "content": _MAYBE,
            "content_length": _MAYBE_COUNT,
            "original_length": _MAYBE_COUNT,
            "truncated": {"type": ["boolean", "null"]},
            "next_offset": _MAYBE_COUNT,
        },
        "url",
    ),
}


def _query(name: str, schema: Schema, words: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": words}


_FORMAT = _query("format", {"type": "string", "enum": list(FORMATS)}, "md when left out")
_AFTER = _query("after", _COUNT, "The last event that you have")
_VIEW = _query("view", {"type": "string", "enum": ["events", "page"]}, "page adds rendered text")
_Q = _query("q", _TEXT, "Words in the title or in a question")
_STREAM, _FILE = "text/event-stream", "*/*"

# method, path, what it does, body, answer (a schema's name, a media type or None), status, query
ROUTES: tuple[tuple[str, str, str, str | None, str | None, int, tuple[Schema, ...]], ...] = (
    ("get", "/", "The page", None, "text/html", 200, ()),
    ("get", "/static/{name}", "A file of the page", None, _FILE, 200, ()),
    ("get", "/api/health", "Whether the server is up; needs no token", None, "Health", 200, ()),
    ("get", "/api/openapi.json", "This description", None, "application/json", 200, ()),
    ("get", "/api/models", "Models, and what each one lacks", None, "Models", 200, ()),
    ("get", "/api/engines", "Search engines, and what each one lacks", None, "Engines", 200, ()),
    ("get", "/api/sessions", "Sessions, newest first", None, "Sessions", 200, (_Q,)),
    ("post", "/api/sessions", "A new session", "NewSession", "Session", 201, ()),
    ("get", "/api/sessions/{id}", "One session", None, "Session", 200, ()),
    ("patch", "/api/sessions/{id}", "Change a session", "SessionChanges", "Session", 200, ()),
    ("delete", "/api/sessions/{id}", "Stop and delete a session", None, None, 204, ()),
    ("post", "/api/sessions/{id}/messages", "Ask", "NewMessage", "Started", 202, ()),
    (
        *("get", "/api/sessions/{id}/events", "The session's events, stored ones and then live"),
        *(None, _STREAM, 200, (_AFTER, _VIEW)),
    ),
    ("post", "/api/sessions/{id}/cancel", "Stop the answer", "Nothing", "Cancelled", 200, ()),
    (
        *("post", "/api/sessions/{id}/approvals/{call_id}", "Decide on a call that waits"),
        *("Decision", "Session", 200, ()),
    ),
    ("get", "/api/sessions/{id}/export", "The session as a file", None, _FILE, 200, (_FORMAT,)),
    ("post", "/api/web-search", "Search the web", "WebSearch", "SearchAnswer", 200, ()),
    ("post", "/api/open-page", "Read a page", "OpenPage", "Page", 200, ()),
)


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, Any] = {}
    for method, path, words, body, answer, status, query in ROUTES:
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
        operation: dict[str, Any] = {
            "summary": words,
            "parameters": [*parameters, *query],
            "responses": {
                str(status): _answer(words, answer),
                "4XX": _answer("Refused; the body says why and what to do", "Error"),
                "5XX": _answer("Failed; the body says what to do", "Error"),
            },
        }
        if body:
            content = {"application/json": {"schema": _ref(body)}}
            required = bool(BODIES[body].get("required"))
            operation["requestBody"] = {"required": required, "content": content}
        if path == "/api/health":
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "searchloop", "version": __version__},
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "searchloop_PORT"},
            },
        },
    }


def _answer(words: str, answer: str | None) -> dict[str, Any]:
    if answer is None:
        return {"description": words}
    if answer in _SCHEMAS:
        content = {"application/json": {"schema": _ref(answer)}}
    else:
        content = {answer: {"schema": {}}}
    return {"description": words, "content": content}
