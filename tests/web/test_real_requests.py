"""Requests as coding agents, editors and libraries send them: each is answered, or refused in its
protocol's shape.

The samples here are written after real ones. A folder of captured requests joins them when
SEARCHLOOP_CLIENT_REQUESTS names it: one JSON a request, with method, path, headers and body.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.attached import png
from tests.web.faces import MODEL, WEATHER, desk, typed

PNG = b64encode(png()).decode()
Row = tuple[str, str, Mapping[str, str], Any]  # method, path, headers, body
CALL = typed("function_call", call_id="c1", name="read", arguments="{}")
PLAIN = typed("function", name="read", parameters=WEATHER)
LOOKED = [
    typed("thinking", thinking="hm", signature="x"),
    typed("text", text="I look."),
    typed("tool_use", id="t1", name="Read", input={"city": "Oslo"}),
]
MISSING = [typed("text", text="no such file")]
FAILED = typed("tool_result", tool_use_id="t1", is_error=True, content=MISSING)
DRAWN = typed("base64", media_type="image/png", data=PNG)
CODEX: dict[str, Any] = {
    "model": "gpt-6-codex",
    "instructions": "You work in a terminal.",
    "input": [
        typed("message", role="developer", content="Be short."),
        typed("message", role="user", content=[typed("input_text", text="hi")]),
        typed("reasoning", id="rs_1", summary=[], encrypted_content="x"),
        {**CALL, "name": "exec", "namespace": "shell", "arguments": '{"cmd": "ls"}'},
        typed("function_call_output", call_id="c1", output="a.txt"),
        typed("custom_tool_call", name="patch", input="*** Begin", call_id="c2"),
        typed("custom_tool_call_output", call_id="c2", output="done"),
    ],
    "tools": [
        typed("function", name="plan", strict=False, parameters=WEATHER),
        typed("custom", name="patch", format=typed("grammar", syntax="lark")),
        typed("namespace", name="shell", tools=[{**PLAIN, "name": "exec"}]),
        typed("web_search", external_web_access=False, filters={"allowed_domains": ["a.b"]}),
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "text"}},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"a": "b"},
}
CLAUDE: dict[str, Any] = {
    "model": "claude-sonnet",
    "max_tokens": 32_000,
    "system": [typed("text", text="An agent.", cache_control={"type": "ephemeral"})],
    "messages": [
        {"role": "user", "content": [typed("text", text="hi")]},
        {"role": "system", "content": "Two helpers are there."},
        {"role": "assistant", "content": LOOKED},
        {"role": "user", "content": [FAILED, typed("image", source=DRAWN)]},
    ],
    "tools": [
        {"name": "Read", "description": "Reads", "input_schema": WEATHER},
        typed("web_search_20250305", name="web_search", max_uses=3),
    ],
    "tool_choice": {"type": "auto"},
    "stop_sequences": ["END"],
    "temperature": 1,
    "metadata": {"user_id": "u"},
    "thinking": {"type": "enabled", "budget_tokens": 4_000},
    "context_management": {"edits": []},
    "output_config": {"effort": "high"},
    "stream": True,
}
FUNCTION = {"type": "function", "function": {"name": "read", "parameters": WEATHER}}
CALLED = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
SEEN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "auto"}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": [{"type": "text", "text": "hi"}, SEEN]},
    {"role": "assistant", "content": None, "tool_calls": [CALLED], "reasoning_content": "hm"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.txt"}]},
    {"role": "user", "content": "and now?"},
]
OPENCODE: dict[str, Any] = {
    "model": "any",
    "messages": HISTORY,
    "tools": [FUNCTION],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "response_format": {"type": "text"},
    "web_search_options": {"user_location": {"type": "approximate"}},
    "max_completion_tokens": 900,
    "temperature": 0.2,
    "stop": ["END"],
    "seed": 3,
    **STREAMED,
}
SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "codex": ("/v1/responses", CODEX),
    "claude-code": ("/v1/messages?beta=true", CLAUDE),
    "opencode": ("/v1/chat/completions", OPENCODE),
}


USER = {"X-OpenWebUI-User-Name": "Ada", "X-OpenWebUI-User-Role": "admin", "X-Title": "Open WebUI"}
SAMPLING = {"temperature": 0.8, "top_p": 0.9, "frequency_penalty": 0.1, "presence_penalty": 0}
SAID = [typed("output_text", text="I look.", annotations=[])]
ITEMS = [
    typed("message", role="user", content=[typed("input_text", text="hi")]),
    typed("message", role="assistant", content=SAID),
    CALL,
    typed("function_call_output", call_id="c1", output=[typed("input_text", text="a.txt")]),
]
MCP = {"jsonrpc": "2.0", "id": 1}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "lm-studio"}}
BOTH = {"Accept": "application/json, text/event-stream"}
EDITOR = {**CLAUDE, "thinking": {"type": "adaptive"}, "speed": "fast", "top_k": 5, "metadata": {}}
CHAT, ANSWER = "/v1/chat/completions", "/v1/responses"
# What four more programs send, after their published source: who, method, path, headers, body.
PROGRAMS: list[tuple[str, str, str, dict[str, str], Any]] = [
    ("Open WebUI, connection", "GET", "/v1/models", USER, None),
    (
        "Open WebUI, title",
        *("POST", CHAT, USER),
        {"messages": HISTORY[:1] + HISTORY[-1:], "stream": False, "max_completion_tokens": 1000},
    ),
    (
        "Open WebUI, question",
        *("POST", CHAT, USER),
        {"messages": HISTORY, "tools": [FUNCTION], **SAMPLING, **STREAMED}
        | {"min_p": 0.05, "top_k": 40, "seed": 1, "stop": ["END"], "logit_bias": {"5": 1}}
        | {"reasoning_effort": "low", "response_format": {"type": "text"}, "max_tokens": 900},
    ),
    ("LibreChat, models", "GET", "/v1/models", {}, None),
    (
        "LibreChat, question",
        *("POST", CHAT, {}),
        {"messages": HISTORY, "user": "u1", "n": 1, "verbosity": "low", **SAMPLING, **STREAMED}
        | {"tools": [FUNCTION], "tool_choice": "auto", "parallel_tool_calls": True}
        | {"reasoning_effort": "high"},
    ),
    (
        "LibreChat, search",
        *("POST", ANSWER, {}),
        {"input": ITEMS, "tools": [{"type": "web_search"}], "stream": True, "user": "u1"}
        | {"text": {"verbosity": "low"}, "max_output_tokens": 900, "temperature": 1},
    ),
    (
        "Zed, question",
        *("POST", CHAT, {}),
        {"messages": HISTORY, "tools": [FUNCTION], "tool_choice": "required", **STREAMED}
        | {"max_completion_tokens": 900, "temperature": 1.0, "stop": ["END"]}
        | {"parallel_tool_calls": False, "prompt_cache_key": "k", "reasoning_effort": "medium"},
    ),
    (
        "Zed, by Responses",
        *("POST", ANSWER, {}),
        {"input": ITEMS, "stream": True, "parallel_tool_calls": True, "tool_choice": "auto"}
        | {"tools": [{**PLAIN, "strict": True}]}
        | {"reasoning": {"effort": "low", "summary": "auto"}, "prompt_cache_key": "k"},
    ),
    ("Zed, by Messages", "POST", "/v1/messages", {"Anthropic-Beta": "fast-mode"}, EDITOR),
    ("LM Studio, start", "POST", "/mcp", BOTH, {**MCP, "method": "initialize", "params": HELLO}),
    ("LM Studio, tools", "POST", "/mcp", BOTH, {**MCP, "method": "tools/list"}),
]


def rows() -> Iterator[Row]:
    """What goes with the samples, and the captured requests that there are."""
    yield "HEAD", "/", {}, None
    yield "GET", "/v1/messages/batches", {}, None
    yield "GET", "/v1/responses", {"Upgrade": "websocket"}, None
    yield "POST", "/api/chat", {}, {"model": "x", "messages": []}
    yield "GET", "/api/tags", {}, None
    for path in sorted(Path(os.environ.get("SEARCHLOOP_CLIENT_REQUESTS", "-")).glob("*/*.json")):
        read = json.loads(path.read_text("utf-8"))
        headers = {
            k: v for k, v in read["headers"] if k.lower() in ("user-agent", "anthropic-beta")
        }
        yield read["method"], read["path"], headers, read["body"]


def shape(path: str) -> Callable[[Any], bool]:
    """Tells an error as the readers of this path know it."""
    if path.startswith("/v1/messages"):
        return lambda told: told["type"] == "error" and bool(told["error"]["type"])
    if path.startswith("/v1/"):
        return lambda told: {"message", "type", "param", "code"} == set(told["error"])
    if path.startswith("/api/"):
        return lambda told: isinstance(told["error"], str)
    return lambda told: {"code", "message", "remedy"} == set(told["error"])


LAST = {  # how a stream ends that is whole
    "/v1/chat/completions": b"data: [DONE]",
    "/v1/responses": b"data: [DONE]",
    "/v1/messages": b'{"type":"message_stop"}',
}


def test_each_is_answered_or_refused_in_its_shape(tmp_path: Path) -> None:
    """A stream ends as its protocol says, an error has its protocol's fields; the model is one that
    is there. What the programs send is answered, and a field that has no effect is named."""
    known = [("POST", path, {"User-Agent": name}, body) for name, (path, body) in SAMPLES.items()]
    known += [(method, path, headers, body) for _, method, path, headers, body in PROGRAMS]
    with desk(tmp_path, SEARCH_ENGINES="library", OLLAMA_HOST="http://127.0.0.1:1") as at:
        for number, (method, target, headers, body) in enumerate([*known, *rows()]):
            path = target.partition("?")[0]
            body = {**body, "model": MODEL} if path in LAST and body else body or None
            status, answered, raw = at.send(method, target, body, **headers)
            where = f"{method} {target} {dict(headers)}: {status} {raw[-300:]!r}"
            assert status == 200 or number >= len(known), where
            if status >= 400:
                assert status < 500 or b"schema_mismatch" in raw, where
                assert shape(path)(json.loads(raw)), where
            elif answered.get_content_type() == "text/event-stream" and path in LAST:
                assert raw.strip().endswith(LAST[path]), where
                assert b'"error":{' not in raw, where
            assert b'"min_p","top_k"' in raw or "min_p" not in (body or {}), where
        told = at.send("POST", CHAT, {"model": MODEL, "messages": HISTORY, "num_ctx": 8192})
        assert (told[0], b"num_ctx" in told[2]) == (400, True)  # an option of Ollama's own API


WRONG: list[Any] = [None, 5, True, "x", [], {}, [5], [None], [[]], {"type": 5}, "\ud800", 10**30]


def mutated(value: Any, put: Callable[[Any], Any]) -> Iterator[Any]:
    """Yields the whole with each part of `value` in turn replaced by something wrong."""
    for wrong in WRONG:
        yield put(wrong)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from mutated(inner, lambda new, key=key: put({**value, key: new}))
            yield put({k: v for k, v in value.items() if k != key})
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from mutated(inner, lambda new, n=n: put([*value[:n], new, *value[n + 1 :]]))
