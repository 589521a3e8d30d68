"""What a real Ollama refuses and what it keeps of a request to `/api/chat`.

https://github.com/ollama/ollama/blob/main/server/routes.go
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fakes import Reply, json_reply

KEPT_SCHEMA_KEYS = {"anyOf", "type", "items", "description", "enum", "properties", "required"}


def refuse(status: int, text: str) -> Reply:
    """An error as the server writes it."""
    return json_reply({"error": text}, status)


def check_body(body: Mapping[str, Any]) -> Reply | None:
    """The types that the server's own structs demand."""
    for message in body.get("messages") or []:
        if not isinstance(message.get("content", ""), str):
            return refuse(400, "json: cannot unmarshal array into Go struct field .content")
        if str(message.get("role", "")).lower() not in {"system", "user", "assistant", "tool"}:
            return refuse(400, f"invalid role: {message.get('role')}")
        for image in message.get("images") or []:
            try:
                if not base64.b64decode(image, validate=True):
                    return refuse(400, "invalid image input")
            except ValueError:
                return refuse(400, "illegal base64 data at input byte 0")
        for item in message.get("tool_calls") or []:
            if not isinstance(item["function"].get("arguments"), dict):
                return refuse(400, "json: cannot unmarshal string into Go struct field .arguments")
    keep = body.get("keep_alive")
    if isinstance(keep, str) and not re.fullmatch(r"-?([0-9.]+(ns|us|µs|ms|s|m|h))+", keep):
        return refuse(400, f'time: invalid duration "{keep}"')
    think_value = body.get("think")
    if think_value not in (None, True, False, "low", "medium", "high", "max"):
        return refuse(400, f'invalid think value: "{think_value}" (must be true, false, ...)')
    shape = body.get("format")
    if not (shape in (None, "", "json") or isinstance(shape, dict)):
        return refuse(400, 'invalid format: expected "json" or a JSON schema')
    for name in ("num_ctx", "num_predict"):
        if type((body.get("options") or {}).get(name, 0)) is not int:
            return refuse(400, f'option "{name}" must be of type integer')
    return None


def check_abilities(
    body: Mapping[str, Any], name: str, capabilities: Sequence[str]
) -> Reply | None:
    """What this model cannot do."""
    if "completion" not in capabilities:
        return refuse(400, f'"{name}" does not support chat')
    if body.get("think") and "thinking" not in capabilities:
        return refuse(400, f'"{name}" does not support thinking')
    pictures = any(message.get("images") for message in body.get("messages") or [])
    if pictures and "vision" not in capabilities:
        return refuse(500, "this model is missing data required for image input")
    if body.get("tools") and "tools" not in capabilities:
        return refuse(400, f"registry.ollama.ai/library/{name} does not support tools")
    return None


def kept_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools as the template sees them: keys that the server does not know are gone."""
    kept = []
    for tool in body.get("tools") or []:
        function = tool["function"]
        parameters = dict(function.get("parameters") or {})
        properties = {
            name: {key: value for key, value in schema.items() if key in KEPT_SCHEMA_KEYS}
            for name, schema in (parameters.get("properties") or {}).items()
        }
        kept.append({**function, "parameters": {**parameters, "properties": properties}})
    return kept


def count_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of the rendered prompt: a quarter of its characters."""
    rendered = [json.dumps(kept_tools(body))] if body.get("tools") else []
    for message in body.get("messages") or []:
        calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
        rendered.append(message.get("content", "") + message.get("thinking", "") + calls)
    return sum(len(text) // 4 + 4 for text in rendered)


def check(body: Mapping[str, Any]) -> None:
    """What the server refuses, and what the templates of models rely on, as an AssertionError."""
    refused = check_body(body)
    assert refused is None, refused
    assert body["messages"], "without a message the server only loads the model"
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, "a result without its call"
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, f"{message['role']} speaks while calls wait"
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
    assert not open_calls, "a call without its result"
