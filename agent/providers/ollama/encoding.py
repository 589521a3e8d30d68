"""A request as the body of `POST /api/chat`.

The messages come last and each is encoded once, so that the body of step n is the beginning of the
body of step n+1 and the server's cache of the prompt stays good. Thinking goes back only inside the
turn that is being answered: the model needs it between its calls, and of old turns it is dropped.
A model that cannot call tools gets calls and results as plain messages.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent.providers.ollama.config import Config
from agent.types import Message, Request, ToolCall, ToolSpec

PROVIDER = "ollama"
VERSION = "1"
_PLAIN, _THINKING, _WORDS = "ollama", "ollama+thinking", "ollama+words"


def encode_request(
    request: Request,
    config: Config,
    tools: bytes,
    words: bool = False,
    shape: Any = None,
    think: bool | str | None = None,
) -> bytes:
    """The whole body; `tools` is what `encode_tools` gave, empty for none.

    `words` writes calls and results as plain messages, `shape` is the JSON Schema of the answer,
    `think` is left out when it is None.
    """
    head: dict[str, Any] = {"model": request.model, "stream": True, "truncate": False}
    window = request.context_limit or config.num_ctx
    options = {"num_ctx": window, "num_predict": request.max_output_tokens}
    if chosen := {name: value for name, value in options.items() if value is not None}:
        head["options"] = chosen
    if think is not None:
        head["think"] = think
    if config.keep_alive is not None:
        head["keep_alive"] = config.keep_alive
    parts = [_json({"role": "system", "content": request.system})] if request.system else []
    if shape is not None:
        head["format"] = shape
    parts += encode_messages(request.messages, request.model, words)
    listed = b',"tools":' + tools if tools else b""
    return b"".join((_json(head)[:-1], listed, b',"messages":[', b",".join(parts), b"]}"))


def encode_tools(tools: Sequence[ToolSpec]) -> bytes:
    """The tools with their whole schema; the server drops what it does not keep."""
    if not tools:
        return b""
    return _json([{"type": "function", "function": _function(tool)} for tool in tools])


def encode_messages(messages: Sequence[Message], model: str, words: bool = False) -> list[bytes]:
    """Each message once, by its memo."""
    turn = len(messages)
    while turn and messages[turn - 1].role != "user":
        turn -= 1
    out: list[bytes] = []
    for index, message in enumerate(messages):
        thinking = not words and index >= turn and _own_thinking(message, model)
        key = _WORDS if words else _THINKING if thinking else _PLAIN
        encoded = message.encoded.get(key)
        if encoded is None:
            wire = _in_words(message) if words else _message(message, thinking)
            encoded = message.encoded[key] = _json(wire)
        out.append(encoded)
    return out


def _own_thinking(message: Message, model: str) -> bool:
    made = message.provider_data
    return bool(message.thinking and made and made.provider == PROVIDER and made.model == model)


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _message(message: Message, thinking: bool) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role}
    if message.role == "tool":
        wire["tool_name"] = message.tool_name or ""
        wire["tool_call_id"] = message.tool_call_id or ""
    wire["content"] = message.content
    if thinking:
        wire["thinking"] = message.thinking
    if message.tool_calls:
        wire["tool_calls"] = [_call(i, call) for i, call in enumerate(message.tool_calls)]
    return wire


def _in_words(message: Message) -> dict[str, Any]:
    """A message without calls: they are the JSON that the model would have written."""
    if message.role == "tool":
        return {"role": "user", "content": f"Result of {message.tool_name}:\n{message.content}"}
    asked = [{"tool": c.name, "arguments": c.arguments} for c in message.tool_calls]
    lines = [message.content, *(_json(call).decode() for call in asked)]
    return {"role": message.role, "content": "\n".join(filter(None, lines))}


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": call.arguments}
    return {"id": call.id, "function": function}


def _json(value: Any) -> bytes:
    """Compact JSON. Mappings of any kind are objects; half a surrogate pair becomes `?`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-8", "replace")
