"""Encodes a request as the body of `POST /api/chat`, also for models without tool calls.

Messages come last and each is encoded once, so that the server's prompt cache stays valid. Thinking
goes back only inside the current turn. A model without tool calls gets calls and results as plain
messages and writes an envelope: a JSON object that names a tool and its arguments, or says that it
will answer. A second request then asks for the answer. For a model that writes none the program
searches with the question and opens the first pages.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchloop.agent.calls.schema import takes
from searchloop.agent.log.events import asked
from searchloop.agent.providers._wire import SAMPLING, body, dump, filled, function_of, sampling
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.transport.exchange import document_of
from searchloop.agent.types import Message, Request, ToolCall, ToolSpec

PROVIDER = "ollama"
OPTIONS = {**SAMPLING, "seed": "seed", "stop": "stop"}
VERSION = "1"
_PLAIN, _THINKING = "ollama", "ollama+thinking"


def encode_request(request: Request, config: Config, tools: bytes) -> bytes:
    """Encodes the body. `tools` comes from `encode_tools`."""
    effort = request.options.get("effort")
    options = filled(
        num_ctx=request.context_limit or config.num_ctx,
        num_predict=request.max_output_tokens,
        **sampling(request, OPTIONS),
    )
    parts = [dump({"role": "system", "content": request.system})] if request.system else []
    form = None if tools else request.schema  # it would keep the model from calling
    head = {"model": request.model, "stream": True, "truncate": False}
    think = {"on": True, "off": False}.get(effort, effort) if effort else None
    head |= filled(options=options, think=think, format=form)
    parts += encode_messages(request.messages, request.model)
    listed = b',"tools":' + tools + b"}" if tools else b"}"
    return body(dump(head)[:-1] + listed, "messages", parts, {})


def encode_tools(tools: Sequence[ToolSpec]) -> bytes:
    """Encodes the tools; the server drops fields of schemas that it does not know."""
    listed = [{"type": "function", "function": function_of(tool)} for tool in tools]
    return dump(listed) if listed else b""


def encode_messages(messages: Sequence[Message], model: str) -> list[bytes]:
    """Encodes each message once; `Message.encoded` caches the bytes."""
    turn = len(messages)
    while turn and messages[turn - 1].role != "user":
        turn -= 1
    out: list[bytes] = []
    for index, message in enumerate(messages):
        thinking = index >= turn and _own_thinking(message, model)
        key = _THINKING if thinking else _PLAIN
        if key not in message.encoded:
            message.encoded[key] = dump(_message(message, thinking))
        out.append(message.encoded[key])
    return out


def _own_thinking(message: Message, model: str) -> bool:
    made = message.provider_data
    return bool(message.thinking and made and made.provider == PROVIDER and made.model == model)


def _message(message: Message, thinking: bool) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role}
    if message.role == "tool":
        wire["tool_name"] = message.tool_name or ""
        wire["tool_call_id"] = message.tool_call_id or ""
    wire["content"] = message.content
    if message.attachments:
        wire["images"] = [file.data for file in message.attachments]
    if thinking:
        wire["thinking"] = message.thinking
    if message.tool_calls:
        wire["tool_calls"] = [_call(i, call) for i, call in enumerate(message.tool_calls)]
    return wire


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": call.arguments}
    return {"id": call.id, "function": function}


ANSWER = "answer"
_PAGES = 2
_QUERY = 200  # characters of a question that are searched for
_HOW = """\
You use a tool by writing one JSON object: {{"tool": NAME, "arguments": {{...}}}}. When you know \
enough, write {{"tool": "answer", "arguments": {{}}}}. The tools:
{tools}
What a tool gave stands in messages that begin with "Result of"."""
_NOW = """\
Answer my last question now, in plain words and in its language, from what stands above. Put the \
number of the source in brackets right after each claim, like [1]."""
_NOW_JSON = "Answer my last question now, as JSON that fits the schema, from what stands above."


def shape_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Returns the JSON Schema of an envelope."""
    choices = [_choice(tool.name, tool.parameters) for tool in tools]
    return {"anyOf": [*choices, _choice(ANSWER, {"type": "object", "properties": {}})]}


def _choice(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": [name]}, "arguments": dict(parameters)},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def asking(request: Request) -> Request:
    """Returns the request for an envelope, which is read as a printed call."""
    listed = "\n".join(f"- {t.name}: {t.description} {takes(t.parameters)}" for t in request.tools)
    system = f"{request.system}\n\n{_HOW.format(tools=listed)}".lstrip()
    return replace(request, system=system, schema=shape_of(request.tools), answer_now=True)


def in_words(request: Request) -> Request:
    """Writes calls as the JSON that the model would have written, and results as messages."""
    return replace(request, messages=list(map(_in_words, request.messages)))


def _in_words(message: Message) -> Message:
    if message.role == "tool":
        text = f"Result of {message.tool_name}:\n{message.content}"
        return Message("user", text, attachments=message.attachments)
    if not message.tool_calls:
        return message
    calls = [{"tool": call.name, "arguments": call.arguments} for call in message.tool_calls]
    lines = [message.content, *(dump(call).decode() for call in calls)]
    return Message("assistant", "\n".join(filter(None, lines)))


def answering(request: Request) -> Request:
    """Returns the request for the answer in words, with a reminder after results."""
    last = request.messages[-1] if request.messages else None
    messages = list(request.messages)
    if last is None or last.role != "user":
        now = _NOW_JSON if request.schema else _NOW
        messages.append(Message("user", now, details={"nudge": True}))
    return replace(request, tools=(), messages=messages)


def is_envelope(text: str) -> bool:
    """Returns True for a JSON object that names a tool."""
    value = document_of(text.encode("utf-8", "replace"))
    return isinstance(value, dict) and isinstance(value.get("tool"), str)


def first_calls(request: Request) -> tuple[ToolCall, ...]:
    """Returns what the program calls for a model that writes no envelope: a search, then pages."""
    place, question = max(
        (i, m)
        for i, m in enumerate(request.messages)
        if m.role == "user" and not m.details.get("nudge")
    )
    offered = {tool.name for tool in request.tools}
    results = [m for m in request.messages[place:] if m.role == "tool"]
    used = {result.tool_name for result in results}
    if not used and "web_search" in offered:
        return (_call_of("web_search", {"query": asked(question)[-_QUERY:].strip()}),)
    if used == {"web_search"} and "open_page" in offered:
        rows = [row["url"] for result in results for row in result.details.get("results", ())]
        return tuple(_call_of("open_page", {"url": url}) for url in rows[:_PAGES])
    return ()


def _call_of(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(f"call_{uuid.uuid4().hex}", name, arguments)
