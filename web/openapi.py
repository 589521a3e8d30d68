"""Every route, described as data; request bodies are checked against these same schemas."""

from __future__ import annotations

from typing import Any

from agent import __version__
from web.schemas import BODIES, FORMATS, SCHEMAS
from web.shapes import COUNT, TEXT, Schema, ref


def _query(name: str, schema: Schema, words: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": words}


_FORMAT = _query("format", {"type": "string", "enum": list(FORMATS)}, "md when left out")
_TURN = _query("turn", COUNT, "With md: only the answer to this question")
_AFTER = _query("after", COUNT, "The last event that you have")
_VIEW = _query("view", {"type": "string", "enum": ["events", "page"]}, "page adds rendered text")
_Q = _query("q", TEXT, "Words in the title or in a question")
_LIMIT = _query("limit", COUNT, "The most to list, 200 if not said; pinned ones come besides")
_MODEL = _query("model", TEXT, "provider:model, as /api/models lists it")
_FOLDER = _query("workspace", TEXT, "With the servers of this folder's .mcp.json")
_EVENTS = "The session's events, stored ones and then live; the last of a run is a RunFinished"
_STREAM, _FILE = "text/event-stream", "*/*"

# method, path, what it does, body, answer (a schema's name, a media type or None), status, query
ROUTES: tuple[tuple[str, str, str, str | None, str | None, int, tuple[Schema, ...]], ...] = (
    ("get", "/", "The page", None, "text/html", 200, ()),
    ("get", "/static/{name}", "A file of the page", None, _FILE, 200, ()),
    ("get", "/api/health", "Whether the server is up; needs no token", None, "Health", 200, ()),
    ("get", "/metrics", "Numbers, as Prometheus reads them", None, "text/plain", 200, ()),
    ("get", "/api/openapi.json", "This description", None, "application/json", 200, ()),
    ("get", "/api/models", "Models, and what each one lacks", None, "Models", 200, ()),
    ("delete", "/api/models", "Delete a model of your own server", None, None, 204, (_MODEL,)),
    ("get", "/api/models/pull", "Models being got, and how far", None, "Pulls", 200, ()),
    ("post", "/api/models/pull", "Get a model for your own server", "ModelName", "Pull", 202, ()),
    ("delete", "/api/models/pull", "Stop getting a model", None, None, 204, (_MODEL,)),
    ("post", "/api/models/unload", "Take a model out of memory", "ModelName", None, 204, ()),
    ("get", "/api/engines", "Search engines, and what each one lacks", None, "Engines", 200, ()),
    ("get", "/api/sessions", "Sessions, newest first", None, "Sessions", 200, (_Q, _LIMIT)),
    ("post", "/api/sessions", "A new session", "NewSession", "Session", 201, ()),
    ("get", "/api/sessions/{id}", "One session", None, "Session", 200, ()),
    ("patch", "/api/sessions/{id}", "Change a session", "SessionChanges", "Session", 200, ()),
    ("delete", "/api/sessions/{id}", "Stop and delete a session", None, None, 204, ()),
    ("post", "/api/sessions/{id}/messages", "Ask", "NewMessage", "Started", 202, ()),
    (
        *("get", "/api/sessions/{id}/events", _EVENTS),
        *(None, _STREAM, 200, (_AFTER, _VIEW)),
    ),
    ("post", "/api/sessions/{id}/cancel", "Stop the answer", "Nothing", "Cancelled", 200, ()),
    (
        *("post", "/api/sessions/{id}/approvals/{call_id}", "Decide on a call that waits"),
        *("Decision", "Decided", 200, ()),
    ),
    (
        *(
            "patch",
            "/api/sessions/{id}/turns/{turn}",
            "Show a turn instead of the one beside it, remove it, or bring it back",
        ),
        *("TurnChange", "ShownTurns", 200, ()),
    ),
    (
        "get",
        "/api/sessions/{id}/export",
        "The session as a file",
        None,
        _FILE,
        200,
        (_FORMAT, _TURN),
    ),
    ("post", "/api/sessions/{id}/undo", "Undo files", "Nothing", "Undone", 200, ()),
    (
        *("post", "/api/sessions/{id}/plans", "Make a plan of the list in the last answer"),
        *("Nothing", "Plan", 201, ()),
    ),
    (
        *("post", "/api/sessions/{id}/plans/{plan}/run", "Have a plan carried out, in agent mode"),
        *("Nothing", "Started", 202, ()),
    ),
    ("get", "/api/agents", "Agents: named presets", None, "Agents", 200, ()),
    ("post", "/api/agents", "A new agent", "NewAgent", "Agent", 201, ()),
    ("patch", "/api/agents/{name}", "Change an agent", "AgentChanges", "Agent", 200, ()),
    ("delete", "/api/agents/{name}", "Remove an agent", None, None, 204, ()),
    ("get", "/api/settings", "Settings, and where each is set", None, "Settings", 200, ()),
    ("patch", "/api/settings", "Change settings", "SettingChanges", "Settings", 200, ()),
    ("get", "/api/policy", "Rules for approvals", None, "Policy", 200, ()),
    ("put", "/api/policy", "Change the rules for approvals", "Policy", "Policy", 200, ()),
    ("get", "/api/mcp", "MCP servers and their tools", None, "McpServers", 200, (_FOLDER,)),
    ("post", "/api/mcp", "What servers would run; or add them", "McpConfig", "McpPlan", 200, ()),
    ("post", "/api/mcp/trust", "Trust a project's file", "McpTrust", "McpServers", 200, ()),
    ("patch", "/api/mcp/{name}", "Switch a server", "McpChanges", "McpServers", 200, ()),
    ("delete", "/api/mcp/{name}", "Forget a server", None, None, 204, ()),
    ("post", "/api/mcp/{name}/test", "Try a server", "Nothing", "McpServer", 200, (_FOLDER,)),
    (
        *("post", "/api/mcp/{name}/tools/{tool}/approve", "Use a changed tool again"),
        *("McpApproval", "McpServer", 200, (_FOLDER,)),
    ),
    ("get", "/api/keys", "Which keys are set, and by whom", None, "Keys", 200, ()),
    ("put", "/api/keys/{name}", "Save a key", "NewKey", "Keys", 200, ()),
    ("delete", "/api/keys/{name}", "Forget a saved key", None, "Keys", 200, ()),
    ("get", "/api/library", "What is in the library", None, "Library", 200, ()),
    ("post", "/api/library", "Add a folder or file", "LibraryPath", "LibraryAdded", 200, ()),
    ("delete", "/api/library", "Forget a folder", "LibraryPath", "LibraryRemoved", 200, ()),
    ("post", "/api/web-search", "Search the web", "WebSearch", "SearchAnswer", 200, ()),
    ("post", "/api/open-page", "Read a page", "OpenPage", "Page", 200, (_VIEW,)),
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
            content = {"application/json": {"schema": ref(body)}}
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
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "searchloop_PORT"},
            },
        },
    }


def _answer(words: str, answer: str | None) -> dict[str, Any]:
    if answer is None:
        return {"description": words}
    if answer in SCHEMAS:
        content = {"application/json": {"schema": ref(answer)}}
    else:
        content = {answer: {"schema": {}}}
    return {"description": words, "content": content}
