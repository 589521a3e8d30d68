"""JSON Schemas of the API: request bodies (which are checked against them), answers, and events.

`openapi` names them by route. A program that reads events finds here the parts that matter most:
citations, sources, and how a run ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from searchloop.agent.guard.approvals import DECISIONS
from searchloop.agent.guard.egress import Mixed
from searchloop.agent.mcp.server import EFFECTS
from searchloop.agent.tools import ALLOWED
from searchloop.agent.types import SEARCHES, USAGE_FIELDS, RunReason, SourceState, VerdictName

Schema = dict[str, Any]

MODES = tuple(ALLOWED)
FORMATS = ("md", "html", "json", "trace")


def object_of(*required: str, **properties: Schema) -> Schema:
    """Describes an object with these properties, of which `required` are always there."""
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def record(**properties: Schema) -> Schema:
    """Describes an object with exactly these properties always there."""
    return object_of(*properties, **properties)


def closed_object(*required: str, **properties: Schema) -> Schema:
    """Describes an object with these properties and no others, as request bodies are."""
    return {**object_of(*required, **properties), "additionalProperties": False}


def each(schema: Schema, *names: str) -> Schema:
    """Gives several properties the same schema."""
    return dict.fromkeys(names, schema)


def array_of(items: Schema) -> Schema:
    """Describes an array."""
    return {"type": "array", "items": items}


def list_of(name: str) -> Schema:
    """Describes an array of what the schema of this name describes."""
    return array_of(ref(name))


def one_of(*values: str) -> Schema:
    """Describes one of these texts."""
    return {"type": "string", "enum": list(values)}


def nullable(kind: str) -> Schema:
    """Describes a value of this type, or null."""
    return {"type": [kind, "null"]}


def ref(name: str) -> Schema:
    """Refers to the schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Schema, words: str) -> Schema:
    """Adds a description to a schema."""
    return {**schema, "description": words}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
WHOLE: Schema = {"type": "integer"}
ANY: Schema = {"type": "object"}
TEXTS = array_of(TEXT)
OBJECTS = array_of(ANY)
MAYBE_TEXT, MAYBE_COUNT, MAYBE_FLAG = nullable("string"), nullable("integer"), nullable("boolean")
MAYBE_NUMBER, MAYBE_OBJECT = nullable("number"), nullable("object")
PROBLEM = object_of("code", "message", code=TEXT, message=TEXT, remedy=TEXT)
_EFFECT = one_of(*EFFECTS)
_MAYBE_EFFECT: Schema = {"type": ["string", "null"], "enum": [*EFFECTS, None]}

_TIME: Schema = {"type": "number", "description": "Seconds since 1970"}
_MODE: Schema = one_of(*MODES)
_SEARCH: Schema = one_of(*SEARCHES)
_MODEL: Schema = described(TEXT, "provider:model")
_PATTERNS: Schema = {"type": ["array", "null"], "items": TEXT}
_AGENT: Schema = {
    "description": TEXT,
    "system": described(TEXT, "What the model is told in every turn"),
    "model": MAYBE_TEXT,
    "mode": {"type": ["string", "null"], "enum": [*MODES, None]},
    "search": _SEARCH,
    "tools": described(_PATTERNS, "Patterns of tools it may use; null: all"),
    "servers": described(_PATTERNS, "Patterns of MCP servers it may use; null: all"),
}

_CHANGED: Schema = described(FLAG, "Built in and edited; DELETE puts it back")

BODIES: Mapping[str, Schema] = {
    "NewSession": closed_object(
        **each(MAYBE_TEXT, "model", "workspace", "agent"),
        mode=_MODE,
        search=_SEARCH,
        temporary=described(FLAG, "Not listed, forgotten in a day"),
    ),
    "SessionChanges": closed_object(
        title=TEXT,
        model=_MODEL,
        mode=_MODE,
        search=_SEARCH,
        workspace=described(MAYBE_TEXT, "Full path of a folder; null takes it away"),
        agent=described(MAYBE_TEXT, "Name of an agent; null takes it away"),
        pinned=FLAG,
    ),
    "NewAgent": closed_object("name", name=TEXT, **_AGENT),
    "AgentChanges": closed_object(**_AGENT),
    "NewMessage": closed_object(
        "text",
        text=TEXT,
        model=_MODEL,
        mode=_MODE,
        search=_SEARCH,
        replaces=described(COUNT, "The question beside which this one stands"),
    ),
    "TurnChange": closed_object(shown={"type": "boolean", "enum": [True]}, removed=FLAG),
    "ModelName": closed_object("model", model=_MODEL),
    "SettingChanges": closed_object(
        "settings", settings=described(ANY, "Text by name; null puts the default back")
    ),
    "Policy": closed_object(
        review_queries=FLAG, private_and_untrusted=one_of(*get_args(Mixed)), rules=OBJECTS
    ),
    "NewKey": closed_object("value", value={**TEXT, "writeOnly": True}),
    "LibraryPath": closed_object("path", path=TEXT),
    "Nothing": closed_object(),
    "Decision": closed_object("decision", decision=one_of(*DECISIONS), arguments=ANY),
    "Decided": record(call_id=TEXT, decision=one_of(*DECISIONS)),
    "WebSearch": object_of(
        "query",
        **each(TEXT, "query", "country", "language", "engine"),
        max_results=WHOLE,
        allowed_domains=TEXTS,
        blocked_domains=TEXTS,
        time_range=one_of("d", "w", "m", "y", "all"),
        safe_search=one_of("off", "moderate", "strict"),
    ),
    "OpenPage": object_of(
        "url",
        url=TEXT,
        find=MAYBE_TEXT,
        offset=WHOLE,
        max_length=WHOLE,
        allowed_domains=TEXTS,
        blocked_domains=TEXTS,
        reader=TEXT,
    ),
    "McpConfig": closed_object(
        "config",
        config=described(TEXT, '"mcpServers" JSON'),
        save=described(FLAG, "Without it nothing is kept, only shown"),
        replace=described(FLAG, "A server of the same name gives way"),
    ),
    "McpChanges": closed_object(
        disabled=FLAG,
        private=FLAG,
        effect=_MAYBE_EFFECT,
        tools=described(ANY, "{tool: {enabled?, effect?}}"),
    ),
    "McpTrust": closed_object("workspace", "hash", workspace=TEXT, hash=TEXT),
    "McpApproval": closed_object(
        "definition", definition=described(TEXT, "The hash of what was looked at")
    ),
}

_PLANNED: Schema = {
    "name": TEXT,
    "file": TEXT,
    "workspace": MAYBE_TEXT,
    "kind": one_of("stdio", "http"),
    "command": described(TEXTS, "What is run, or the address, as it stands in the file"),
    "cwd": MAYBE_TEXT,
    "variables": described(TEXTS, "Names of the variables it gets"),
    "headers": described(TEXTS, "Names of the headers it is sent"),
    "disabled": FLAG,
    "private": FLAG,
    "effect": _EFFECT,
}
_SPAN: Schema = {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}
_VERIFIED: Schema = {
    "type": ["boolean", "null"],
    "description": "Whether the page that was read bears it out; null: nothing was compared",
}

SCHEMAS: Schema = {
    **BODIES,
    "Error": record(error=PROBLEM),
    "Health": object_of("status", name=TEXT, status=TEXT, version=TEXT),
    "Session": object_of(
        *("id", "title", "model", "mode", "search", "search_path", "created", "updated"),
        id=TEXT,
        title=TEXT,
        model=_MODEL,
        mode=_MODE,
        search=_SEARCH,
        search_path=described(TEXT, "The way the last turn really took"),
        workspace=MAYBE_TEXT,
        **each(_TIME, "created", "updated"),
        messages=COUNT,
        running=FLAG,
        settings=described(ANY, "What few sessions have set"),
        agent=described(MAYBE_TEXT, "The preset it runs as"),
        native_search=described(MAYBE_FLAG, "Of its model's own"),
    ),
    "Sessions": record(sessions=list_of("Session")),
    "Agent": object_of(
        *("name", *_AGENT, "builtin", "changed"),
        name=TEXT,
        **_AGENT,
        builtin=FLAG,
        changed=_CHANGED,
    ),
    "Agents": record(agents=list_of("Agent")),
    "Undone": record(files=TEXTS),
    "Plan": record(
        plan_id=TEXT,
        title=TEXT,
        steps=OBJECTS,
        files=TEXTS,
        sources=OBJECTS,
        by=one_of("model", "text"),
    ),
    "Started": record(
        run_id=TEXT, session_id=TEXT, seq=described(WHOLE, "Follow the events after this one")
    ),
    "Cancelled": record(cancelled=FLAG),
    "ShownTurns": record(
        shown={"type": "array", "items": COUNT, "description": "Numbers of questions"}
    ),
    "Settings": record(
        settings={
            "type": "array",
            "items": object_of(
                *("name", "value", "origin", "changeable"),
                **each(TEXT, "name", "value", "default", "origin", "help"),
                changeable=FLAG,
            ),
        }
    ),
    "Keys": record(
        keys={
            "type": "array",
            "items": object_of(
                *("name", "set", "origin", "saved"),
                **each(TEXT, "name", "help", "origin"),
                **each(FLAG, "set", "saved"),
                strayed=described(MAYBE_TEXT, "The address that was changed since"),
            ),
        }
    ),
    "Library": record(collections=OBJECTS),
    "LibraryAdded": object_of("collection", collection=TEXT, added=COUNT, skipped=COUNT),
    "LibraryRemoved": record(removed=COUNT),
    "Model": object_of(
        *("id", "available"),
        id=_MODEL,
        title=TEXT,
        capabilities=ANY,
        available=FLAG,
        local=FLAG,
        **each(MAYBE_TEXT, "missing", "remedy", "calls"),
        disk=MAYBE_COUNT,
        search_usd=described(MAYBE_NUMBER, "Price of its own search"),
        loaded=described(MAYBE_OBJECT, "Its place in memory"),
    ),
    "Models": object_of(
        "models",
        models=list_of("Model"),
        servers=list_of("ModelServer"),
        default=_MODEL,
        modes=TEXTS,
        searches=TEXTS,
        search=_SEARCH,
        held_back=object_of(**each(MAYBE_TEXT, "now", "private")),
    ),
    "ModelServer": object_of(
        *("provider", "name", "address"),
        **each(TEXT, "provider", "name", "address"),
        version=described(MAYBE_TEXT, "null while nobody answers"),
        cloud=described(MAYBE_FLAG, "Whether it may use a cloud"),
    ),
    "Pull": object_of(
        *("model", "state", "status", "done", "total"),
        model=_MODEL,
        state=one_of("running", "done", "failed", "cancelled"),
        status=TEXT,
        done=COUNT,
        total=COUNT,
        error=MAYBE_OBJECT,
    ),
    "Pulls": record(pulls=list_of("Pull")),
    "Engines": object_of("engines", engines=OBJECTS, offline=FLAG),
    "SearchAnswer": object_of(
        *("query", "status", "results", "attempts"),
        query=TEXT,
        engine=MAYBE_TEXT,
        status=TEXT,
        results=OBJECTS,
        attempts=OBJECTS,
    ),
    "Page": object_of(
        "url",
        url=TEXT,
        **each(MAYBE_TEXT, "final_url", "title", "content"),
        **each(MAYBE_COUNT, "content_length", "original_length", "next_offset"),
        invisible=COUNT,
        truncated=MAYBE_FLAG,
        blocks={"type": "array", "description": "With view=page: the text to be shown"},
    ),
    "McpPlan": record(servers=list_of("McpPlanned"), saved=FLAG),
    "McpPlanned": object_of(*_PLANNED, **_PLANNED),
    "McpServers": record(
        file=TEXT,
        servers=list_of("McpServer"),
        problems=OBJECTS,
        untrusted={
            "type": ["object", "null"],
            "description": "A project's file that waits for trust: {file, hash, commands}",
        },
    ),
    "McpServer": object_of(
        *_PLANNED,
        *("state", "error", "retry_in", "protocol", "title", "version", "oddities"),
        *("tools", "tokens"),
        **_PLANNED,
        state={"type": "string", "enum": ["idle", "connecting", "ready", "failed", "disabled"]},
        error=described(MAYBE_OBJECT, "{code, message, remedy}"),
        retry_in=described(MAYBE_NUMBER, "Seconds"),
        **each(TEXT, "protocol", "title", "version"),
        oddities=TEXTS,
        tools=list_of("McpTool"),
        tokens=described(COUNT, "About what its tools take in each request"),
        stderr=described(TEXT, "After a test: the end of what it wrote there"),
    ),
    "McpTool": object_of(
        *("name", "offered_as", "enabled", "effect", "tokens", "definition", "suspended"),
        **each(TEXT, "name", "offered_as", "title", "description"),
        enabled=FLAG,
        effect=_EFFECT,
        hints=described(ANY, "What the server claims; it grants nothing"),
        tokens=COUNT,
        unusable=MAYBE_TEXT,
        definition=described(TEXT, "SHA-256 of what the server says of it"),
        suspended=described(MAYBE_OBJECT, "{diff} once it changed"),
    ),
    "Mark": record(
        span={
            **_SPAN,
            "type": ["array", "null"],
            "description": "[start, end) in code points of the text; null: at no one place",
        },
        quote=described(MAYBE_TEXT, "What the provider took from the source or the answer quotes"),
        verdict={
            "type": ["string", "null"],
            "enum": [*get_args(VerdictName), None],
            "description": "What a comparison with the page found; null: from before verdicts",
        },
        passage=described(MAYBE_TEXT, "The source's own nearest text, as Markdown"),
        verified=_VERIFIED,
    ),
    "Citation": record(
        n=COUNT,
        url=TEXT,
        title=TEXT,
        quote=described(MAYBE_TEXT, "That of the first mark in doubt, else the first"),
        verified=_VERIFIED,
        spans=array_of(_SPAN),
        marks=list_of("Mark"),
    ),
    "Source": object_of(
        *("url", "title", "state"),
        n=COUNT,
        url=TEXT,
        title=TEXT,
        state=one_of(*get_args(SourceState)),
        published=described(TEXT, "The day of the page as YYYY-MM-DD, where known"),
    ),
    "RunFinished": object_of(
        *("type", "reason", "answer", "citations", "sources", "usage", "search_path"),
        type=one_of("run_finished"),
        reason=one_of(*get_args(RunReason)),
        answer=TEXT,
        citations=list_of("Citation"),
        sources=list_of("Source"),
        usage=object_of(*USAGE_FIELDS, **dict.fromkeys(USAGE_FIELDS, MAYBE_NUMBER)),
        search_path=TEXT,
        error=PROBLEM,
    ),
}
