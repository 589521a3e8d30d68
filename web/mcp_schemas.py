"""The shapes of MCP servers over the API; see `agent.mcp.report` for what the fields say."""

from __future__ import annotations

from collections.abc import Mapping

from agent.mcp.server import EFFECTS
from web.shapes import COUNT, MAYBE, TEXT, Schema, list_of, object_of

_FLAG: Schema = {"type": "boolean"}
_ANY: Schema = {"type": "object"}
_TEXTS: Schema = {"type": "array", "items": TEXT}
_EFFECT: Schema = {"type": ["string", "null"], "enum": [*EFFECTS, None]}
_ERROR: Schema = {"type": ["object", "null"], "description": "{code, message, remedy}"}

MCP_BODIES: Mapping[str, Schema] = {
    "McpConfig": object_of(
        {
            "config": {**TEXT, "description": '"mcpServers" JSON'},
            "save": {**_FLAG, "description": "Without it nothing is kept, only shown"},
            "replace": {**_FLAG, "description": "A server of the same name gives way"},
        },
        "config",
        closed=True,
    ),
    "McpChanges": object_of(
        {
            "disabled": _FLAG,
            "private": _FLAG,
            "effect": _EFFECT,
            "tools": {**_ANY, "description": "{tool: {enabled?, effect?}}"},
        },
        closed=True,
    ),
    "McpTrust": object_of({"workspace": TEXT, "hash": TEXT}, "workspace", "hash", closed=True),
    "McpApproval": object_of(
        {"definition": {**TEXT, "description": "The hash of what was looked at"}},
        "definition",
        closed=True,
    ),
}

_PLANNED: Schema = {
    "name": TEXT,
    "file": TEXT,
    "workspace": MAYBE,
    "kind": {"type": "string", "enum": ["stdio", "http"]},
    "command": {**_TEXTS, "description": "What is run, or the address, as it stands in the file"},
    "cwd": MAYBE,
    "variables": {**_TEXTS, "description": "Names of the variables it gets"},
    "headers": {**_TEXTS, "description": "Names of the headers it is sent"},
    "disabled": _FLAG,
    "private": _FLAG,
    "effect": {"type": "string", "enum": list(EFFECTS)},
}
MCP_SCHEMAS: Mapping[str, Schema] = {
    **MCP_BODIES,
    "McpPlan": object_of({"servers": list_of("McpPlanned"), "saved": _FLAG}, "servers", "saved"),
    "McpPlanned": object_of(_PLANNED, *_PLANNED),
    "McpServers": object_of(
        {
            "file": TEXT,
            "servers": list_of("McpServer"),
            "problems": {"type": "array", "items": _ANY},
            "untrusted": {
                "type": ["object", "null"],
                "description": "A project's file that waits for trust: {file, hash, commands}",
            },
        },
        *("file", "servers", "problems", "untrusted"),
    ),
    "McpServer": object_of(
        {
            **_PLANNED,
            "state": {
                "type": "string",
                "enum": ["idle", "connecting", "ready", "failed", "disabled"],
            },
            "error": _ERROR,
            "retry_in": {"type": ["number", "null"], "description": "Seconds"},
            "protocol": TEXT,
            "title": TEXT,
            "version": TEXT,
            "oddities": _TEXTS,
            "tools": list_of("McpTool"),
            "tokens": {**COUNT, "description": "About what its tools take in each request"},
            "stderr": {**TEXT, "description": "After a test: the end of what it wrote there"},
        },
        *_PLANNED,
        *("state", "error", "retry_in", "protocol", "title", "version", "oddities"),
        *("tools", "tokens"),
    ),
    "McpTool": object_of(
        {
            "name": TEXT,
            "offered_as": TEXT,
            "title": TEXT,
            "description": TEXT,
            "enabled": _FLAG,
            "effect": {"type": "string", "enum": list(EFFECTS)},
            "hints": {**_ANY, "description": "What the server claims; it grants nothing"},
            "tokens": COUNT,
            "unusable": MAYBE,
            "definition": {**TEXT, "description": "SHA-256 of what the server says of it"},
            "suspended": {"type": ["object", "null"], "description": "{diff} once it changed"},
        },
        *("name", "offered_as", "enabled", "effect", "tokens", "definition", "suspended"),
    ),
}
