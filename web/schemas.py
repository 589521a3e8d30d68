"""The shapes that requests and answers have, as JSON Schemas; `web.openapi` names them by route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from agent.approvals import DECISIONS
from agent.egress import Mixed
from agent.search_path import SEARCHES
from agent.tools import ALLOWED
from web.event_schemas import EVENT_SCHEMAS
from web.mcp_schemas import MCP_BODIES, MCP_SCHEMAS
from web.shapes import COUNT, MAYBE, MAYBE_COUNT, PROBLEM, TEXT, Schema, list_of, object_of

MODES = tuple(ALLOWED)
FORMATS = ("md", "html", "json", "trace")

_TIME: Schema = {"type": "number", "description": "Seconds since 1970"}
_ANY: Schema = {"type": "object"}
_MODE: Schema = {"type": "string", "enum": list(MODES)}
_SEARCH: Schema = {"type": "string", "enum": list(SEARCHES)}
_MODEL: Schema = {"type": "string", "description": "provider:model"}
_DOMAINS: Schema = {"type": "array", "items": TEXT}
_PATTERNS: Schema = {"type": ["array", "null"], "items": TEXT}
_AGENT: Schema = {
    "description": TEXT,
    "system": {**TEXT, "description": "What the model is told in every turn"},
    "model": MAYBE,
    "mode": {"type": ["string", "null"], "enum": [*MODES, None]},
    "search": _SEARCH,
    "tools": {**_PATTERNS, "description": "Patterns of tools it may use; null: all"},
    "servers": {**_PATTERNS, "description": "Patterns of MCP servers it may use; null: all"},
}

_CHANGED: Schema = {"type": "boolean", "description": "Built in and edited; DELETE puts it back"}

BODIES: Mapping[str, Schema] = {
    **MCP_BODIES,
    "NewSession": object_of(
        {
            "model": MAYBE,
            "mode": _MODE,
            "search": _SEARCH,
            "workspace": MAYBE,
            "agent": MAYBE,
            "temporary": {"type": "boolean", "description": "Not listed, forgotten in a day"},
        },
        closed=True,
    ),
    "SessionChanges": object_of(
        {
            "title": TEXT,
            "model": _MODEL,
            "mode": _MODE,
            "search": _SEARCH,
            "workspace": {**MAYBE, "description": "Full path of a folder; null takes it away"},
            "agent": {**MAYBE, "description": "Name of an agent; null takes it away"},
            "pinned": {"type": "boolean"},
        },
        closed=True,
    ),
    "NewAgent": object_of({"name": TEXT, **_AGENT}, "name", closed=True),
    "AgentChanges": object_of(_AGENT, closed=True),
    "NewMessage": object_of(
        {
            "text": TEXT,
            "model": _MODEL,
            "mode": _MODE,
            "search": _SEARCH,
            "replaces": {**COUNT, "description": "The question beside which this one stands"},
        },
        "text",
        closed=True,
    ),
    "TurnChange": object_of(
        {"shown": {"type": "boolean", "enum": [True]}, "removed": {"type": "boolean"}}, closed=True
    ),
    "ModelName": object_of({"model": _MODEL}, "model", closed=True),
    "SettingChanges": object_of(
        {"settings": {"type": "object", "description": "Text by name; null puts the default back"}},
        "settings",
        closed=True,
    ),
    "Policy": object_of(
        {
            "review_queries": {"type": "boolean"},
            "private_and_untrusted": {"type": "string", "enum": list(get_args(Mixed))},
            "rules": {"type": "array", "items": {"type": "object"}},
        },
        closed=True,
    ),
    "NewKey": object_of({"value": {**TEXT, "writeOnly": True}}, "value", closed=True),
    "LibraryPath": object_of({"path": TEXT}, "path", closed=True),
    "Nothing": object_of({}, closed=True),
    "Decision": object_of(
        {"decision": {"type": "string", "enum": list(DECISIONS)}, "arguments": _ANY},
        "decision",
        closed=True,
    ),
    "Decided": object_of(
        {"call_id": TEXT, "decision": {"type": "string", "enum": list(DECISIONS)}},
        *("call_id", "decision"),
    ),
    "WebSearch": object_of(
        {
            "query": TEXT,
            "max_results": {"type": "integer"},
            "allowed_domains": _DOMAINS,
            "blocked_domains": _DOMAINS,
            "time_range": {"type": "string", "enum": ["d", "w", "m", "y", "all"]},
            "country": TEXT,
            "language": TEXT,
            "safe_search": {"type": "string", "enum": ["off", "moderate", "strict"]},
            "engine": TEXT,
        },
        "query",
    ),
    "OpenPage": object_of(
        {
            "url": TEXT,
            "find": MAYBE,
            "offset": {"type": "integer"},
            "max_length": {"type": "integer"},
            "allowed_domains": _DOMAINS,
            "blocked_domains": _DOMAINS,
            "reader": TEXT,
        },
        "url",
    ),
}

SCHEMAS: Schema = {
    **BODIES,
    **MCP_SCHEMAS,
    **EVENT_SCHEMAS,
    "Error": object_of({"error": PROBLEM}, "error"),
    "Health": object_of({"name": TEXT, "status": TEXT, "version": TEXT}, "status"),
    "Session": object_of(
        {
            "id": TEXT,
            "title": TEXT,
            "model": _MODEL,
            "mode": _MODE,
            "search": _SEARCH,
            "search_path": {"type": "string", "description": "The way the last turn really took"},
            "workspace": MAYBE,
            **dict.fromkeys(("created", "updated"), _TIME),
            "messages": COUNT,
            "running": {"type": "boolean"},
            "settings": {"type": "object", "description": "What few sessions have set"},
            "agent": {**MAYBE, "description": "The preset it runs as"},
            "native_search": {"type": ["boolean", "null"], "description": "Of its model's own"},
        },
        *("id", "title", "model", "mode", "search", "search_path", "created", "updated"),
    ),
    "Sessions": object_of({"sessions": list_of("Session")}, "sessions"),
    "Agent": object_of(
        {"name": TEXT, **_AGENT, "builtin": {"type": "boolean"}, "changed": _CHANGED},
        *("name", *_AGENT, "builtin", "changed"),
    ),
    "Agents": object_of({"agents": list_of("Agent")}, "agents"),
    "Undone": object_of({"files": {"type": "array", "items": TEXT}}, "files"),
    "Plan": object_of(
        {
            "plan_id": TEXT,
            "title": TEXT,
            "steps": {"type": "array", "items": _ANY},
            "files": {"type": "array", "items": TEXT},
            "sources": {"type": "array", "items": _ANY},
            "by": {"type": "string", "enum": ["model", "text"]},
        },
        *("plan_id", "title", "steps", "files", "sources", "by"),
    ),
    "Started": object_of(
        {
            "run_id": TEXT,
            "session_id": TEXT,
            "seq": {"type": "integer", "description": "Follow the events after this one"},
        },
        *("run_id", "session_id", "seq"),
    ),
    "Cancelled": object_of({"cancelled": {"type": "boolean"}}, "cancelled"),
    "ShownTurns": object_of(
        {"shown": {"type": "array", "items": COUNT, "description": "Numbers of questions"}},
        "shown",
    ),
    "Settings": object_of(
        {
            "settings": {
                "type": "array",
                "items": object_of(
                    {
                        **dict.fromkeys(("name", "value", "default", "origin", "help"), TEXT),
                        "changeable": {"type": "boolean"},
                    },
                    *("name", "value", "origin", "changeable"),
                ),
            }
        },
        "settings",
    ),
    "Keys": object_of(
        {
            "keys": {
                "type": "array",
                "items": object_of(
                    {
                        **dict.fromkeys(("name", "help", "origin"), TEXT),
                        **{flag: {"type": "boolean"} for flag in ("set", "saved")},
                        "strayed": {**MAYBE, "description": "The address that was changed since"},
                    },
                    *("name", "set", "origin", "saved"),
                ),
            }
        },
        "keys",
    ),
    "Library": object_of({"collections": {"type": "array", "items": _ANY}}, "collections"),
    "LibraryAdded": object_of({"collection": TEXT, "added": COUNT, "skipped": COUNT}, "collection"),
    "LibraryRemoved": object_of({"removed": COUNT}, "removed"),
    "Model": object_of(
        {
            "id": _MODEL,
            "title": TEXT,
            "capabilities": _ANY,
            "available": {"type": "boolean"},
            "local": {"type": "boolean"},
            "missing": MAYBE,
            "remedy": MAYBE,
            "calls": MAYBE,
            "disk": MAYBE_COUNT,
            "search_usd": {"type": ["number", "null"], "description": "Price of its own search"},
            "loaded": {"type": ["object", "null"], "description": "Its place in memory"},
        },
        *("id", "available"),
    ),
    "Models": object_of(
        {
            "models": list_of("Model"),
            "servers": list_of("ModelServer"),
            "default": _MODEL,
            "modes": _DOMAINS,
            "searches": _DOMAINS,
            "search": _SEARCH,
            "held_back": object_of(dict.fromkeys(("now", "private"), MAYBE)),
        },
        "models",
    ),
    "ModelServer": object_of(
        {
            "provider": TEXT,
            "name": TEXT,
            "address": TEXT,
            "version": {**MAYBE, "description": "null while nobody answers"},
            "cloud": {"type": ["boolean", "null"], "description": "Whether it may use a cloud"},
        },
        *("provider", "name", "address"),
    ),
    "Pull": object_of(
        {
            "model": _MODEL,
            "state": {"type": "string", "enum": ["running", "done", "failed", "cancelled"]},
            "status": TEXT,
            "done": COUNT,
            "total": COUNT,
            "error": {"type": ["object", "null"]},
        },
        *("model", "state", "status", "done", "total"),
    ),
    "Pulls": object_of({"pulls": list_of("Pull")}, "pulls"),
    "Engines": object_of(
        {"engines": {"type": "array", "items": _ANY}, "offline": {"type": "boolean"}}, "engines"
    ),
    "SearchAnswer": object_of(
        {
            "query": TEXT,
            "engine": MAYBE,
            "status": TEXT,
            "results": {"type": "array", "items": _ANY},
            "attempts": {"type": "array", "items": _ANY},
        },
        *("query", "status", "results", "attempts"),
    ),
    "Page": object_of(
        {
            "url": TEXT,
            "final_url": MAYBE,
            "title": MAYBE,
            "content": MAYBE,
            "content_length": MAYBE_COUNT,
            "original_length": MAYBE_COUNT,
            "invisible": COUNT,
            "truncated": {"type": ["boolean", "null"]},
            "next_offset": MAYBE_COUNT,
            "blocks": {"type": "array", "description": "With view=page: the text to be shown"},
        },
        "url",
    ),
}
