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
from tests.web.faces import MODEL, WEATHER, desk

PNG = b64encode(png()).decode()
Row = tuple[str, str, Mapping[str, str], Any]  # method, path, headers, body
CODEX: dict[str, Any] = {
    "model": "gpt-6-codex",
    "instructions": "You work in a terminal.",
    "input": [
        {"type": "message", "role": "developer", "content": "Be short."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {
            "type": "function_call",
            "name": "exec",
            "namespace": "shell",
            "arguments": '{"cmd": "ls"}',
            "call_id": "c1",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"type": "custom_tool_call", "name": "patch", "input": "*** Begin", "call_id": "c2"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    ],
    "tools": [
        {"type": "function", "name": "plan", "strict": False, "parameters": WEATHER},
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark"}},
        {
            "type": "namespace",
            "name": "shell",
            "tools": [{"type": "function", "name": "exec", "parameters": WEATHER}],
        },
        {
            "type": "web_search",
            "external_web_access": False,
            "filters": {"allowed_domains": ["a.b"]},
        },
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
    "system": [{"type": "text", "text": "An agent.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "system", "content": "Two helpers are there."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no such file"}],
                },
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                },
            ],
        },
    ],
    "tools": [
        {"name": "Read", "description": "Reads", "input_schema": WEATHER},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
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
OPENCODE: dict[str, Any] = {
    "model": "any",
    "messages": [
        {"role": "system", "content": "You work in an editor."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"city": "Oslo"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {"role": "user", "content": "and now?"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": WEATHER}}],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "response_format": {"type": "text"},
    "web_search_options": {"user_location": {"type": "approximate"}},
    "max_completion_tokens": 900,
    "temperature": 0.2,
    "stop": ["END"],
    "seed": 3,
    "stream": True,
    "stream_options": {"include_usage": True},
}
SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "codex": ("/v1/responses", CODEX),
    "claude-code": ("/v1/messages?beta=true", CLAUDE),
    "opencode": ("/v1/chat/completions", OPENCODE),
}


def rows() -> Iterator[Row]:
    """The samples, what goes with them, and the captured requests that there are."""
    for name, (path, body) in SAMPLES.items():
        yield "POST", path, {"User-Agent": f"{name}/1.0"}, body
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
    is there."""
    seen = list[str]()
    with desk(tmp_path, SEARCH_ENGINES="library", OLLAMA_HOST="http://127.0.0.1:1") as at:
        for method, target, headers, body in rows():
            body = {**body, "model": MODEL} if body and "model" in body else body or None
            status, answered, raw = at.send(method, target, body, **headers)
            where = f"{method} {target} {dict(headers)}: {status} {raw[-300:]!r}"
            path = target.partition("?")[0]
            if status >= 400:
                assert status < 500 or b"schema_mismatch" in raw, where
                assert shape(path)(json.loads(raw)), where
            elif answered.get_content_type() == "text/event-stream":
                assert raw.strip().endswith(LAST[path]), where
                assert b'"error":{' not in raw, where
            seen.append(f"{status} {path}")
    for _, (path, _) in SAMPLES.items():
        assert f"200 {path.partition('?')[0]}" in seen


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
