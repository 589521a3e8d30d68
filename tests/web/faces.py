"""The protocols at /v1, asked by their makers' own clients; behind the server a model by script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from searchloop.agent.settings import Environment
from searchloop.compose import open_services
from tests.fakes import FakeServer, Received, Reply, json_reply, sse
from tests.web.test_serve import Running, Sent

KEY = "a-token-long-enough-0123"
MODEL, DONE = "openai-chat:tin", b"data: [DONE]\n\n"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SWITCH = "What does the search switch decide?"
SEARCHING = {"type": "web_search_20250305", "name": "web_search"}  # in Messages


def typed(kind: str, **fields: Any) -> dict[str, Any]:
    """A part of a request, which has a type."""
    return {"type": kind, **fields}


def tool_of(face: str, schema: Any = WEATHER) -> dict[str, Any]:
    """A tool of the client, as this protocol has it."""
    if face == "messages":
        return {"name": "get_weather", "input_schema": schema}
    plain = {"name": "get_weather", "parameters": schema}
    return typed("function", function=plain) if face == "chat" else typed("function", **plain)


def chunk(**delta: Any) -> bytes:
    """A piece of a Chat Completions stream."""
    reason = delta.pop("reason", None)
    return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def said(*texts: str, reason: str = "stop") -> Reply:
    """An answer in pieces."""
    return Reply([*(chunk(content=text) for text in texts), chunk(reason=reason), DONE])


def called(name: str, **arguments: Any) -> Reply:
    """A call of a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return Reply([chunk(tool_calls=[made]), chunk(reason="tool_calls"), DONE])


def listing(asked: Received) -> Reply | None:
    """The models of the script, where these are asked for."""
    if asked.method == "GET":
        return json_reply({"data": [{"id": "tin", "object": "model"}]})
    return None


def model(asked: Received) -> Reply:
    """A model that looks things up where it can, and otherwise says hello."""
    if models := listing(asked):
        return models
    body = asked.json
    last, tools = body["messages"][-1], {t["function"]["name"] for t in body.get("tools", ())}
    if last["role"] == "tool":
        searched = "search-switch" in last["content"]
        return said("It decides whether a turn ", "may search [1]." if searched else "is warm.")
    if "get_weather" in tools:
        return called("get_weather", city="Paris")
    if "web_search" in tools:
        return called("web_search", query="search switch")
    if "wait" in last["content"]:
        return Reply([chunk(content="Hel")], end="stall")
    return said("Hel", "lo.")


@dataclass
class Desk:
    """A running server, its scripted model, and the clients of two vendors."""

    running: Running
    server: FakeServer
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic

    @property
    def told(self) -> list[dict[str, Any]]:
        """The messages that the model got last."""
        messages: list[dict[str, Any]] = self.server.requests[-1].json["messages"]
        return messages

    @property
    def asks(self) -> list[Received]:
        """What the model was asked."""
        return [each for each in self.server.requests if each.method == "POST"]

    def send(self, method: str, path: str, body: Any = None, **more: str) -> Sent:
        """Status, headers and body of one request on a connection of its own."""
        return self.running.send(method, path, body, **more)

    def read(self, face: Face, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The answer, or each event of a stream, read strictly by the vendor's own types: no field
        is missing or of another type."""
        event, answer = TYPES[face.name]
        status, _, raw = self.send("POST", face.path, body)
        assert status == 200, raw
        if not body.get("stream"):
            answer.validate_json(raw, strict=True)
            return [json.loads(raw)]
        found = []
        for frame in filter(None, raw.decode().split("\n\n")):
            name, _, data = frame.rpartition("data: ")
            if data != "[DONE]":
                event.validate_json(data, strict=True)
                found.append(json.loads(data))
                assert face.name == "chat" or name == f"event: {found[-1]['type']}\n"
        return found


@contextmanager
def desk(home: Path, replies: Callable[[Received], Reply] = model, **env: str) -> Iterator[Desk]:
    """Everything in place, and nothing left behind."""
    with FakeServer(replies) as server:
        url = f"{server.url}/v1"
        flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TOKEN": KEY, "OPENAI_CHAT_BASE_URL": url}
        with Running(open_services(Environment({"flag": {**flags, **env}}))) as running:
            base = running.serving.base
            yield Desk(
                running,
                server,
                openai.OpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0),
                anthropic.Anthropic(base_url=base, api_key=KEY, max_retries=0),
            )


@dataclass(frozen=True)
class Told:
    """What a client read: text, cited addresses, calls as (name, arguments), kinds of its parts.

    `turn` is what it sends back of the answer in its next request, `call` the id of its first call;
    `extra` is our own field.
    """

    text: str
    cited: tuple[str, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()
    kinds: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None
    turn: Sequence[Any] = ()
    call: str = ""


def chat(
    at: Desk, asked: Sequence[Any], *, stream: bool, search: str = "", tool: bool = False
) -> Told:
    """Asks by Chat Completions; offline by a suffix of the model's name."""
    more: dict[str, Any] = {"web_search_options": {}} if search == "web" else {}
    if tool:
        more["tools"] = [tool_of("chat")]
    name = f"{MODEL}+offline" if search == "offline" else MODEL
    given = {"model": name, "messages": asked, **more}
    if not stream:
        whole = at.openai.chat.completions.create(**given)
        message = whole.choices[0].message
        cited = [note.url_citation.url for note in message.annotations or ()]
        calls = [_named(call.function) for call in message.tool_calls or ()]
        extra, turn = whole.model_extra["searchloop"], [message.to_dict()]
        first = message.tool_calls[0].id if calls else ""
        return Told(message.content or "", tuple(cited), tuple(calls), (), extra, turn, first)
    text, cited, calls = "", [], []
    for piece in at.openai.chat.completions.create(stream=True, **given):
        delta = piece.choices[0].delta
        text += delta.content or ""
        calls += [_named(call.function) for call in delta.tool_calls or ()]
        notes = (delta.model_extra or {}).get("annotations", ())
        cited += [note["url_citation"]["url"] for note in notes]
    return Told(text, tuple(cited), tuple(calls))


def respond(
    at: Desk, asked: Sequence[Any], *, stream: bool, search: str = "", tool: bool = False
) -> Told:
    """Asks by Responses."""
    tools: list[Any] = []
    if search:
        tools.append({"type": "web_search", "external_web_access": search == "web"})
    if tool:
        tools.append(tool_of("responses"))
    given: dict[str, Any] = {"model": MODEL, "input": asked, "tools": tools}
    if stream:
        with at.openai.responses.stream(**given) as events:
            text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
            whole = events.get_final_response()
            assert text == whole.output_text
    else:
        whole = at.openai.responses.create(**given)
    cited, calls = [], []
    for item in whole.output:
        if item.type == "message":
            cited += [note.url for part in item.content for note in part.annotations]
        elif item.type == "function_call":
            calls.append(_named(item))
    kinds = tuple(item.type for item in whole.output)
    extra, turn = (whole.model_extra or {}).get("searchloop"), [i.to_dict() for i in whole.output]
    first = next((item.call_id for item in whole.output if item.type == "function_call"), "")
    return Told(whole.output_text, tuple(cited), tuple(calls), kinds, extra, turn, first)


def message(
    at: Desk, asked: Sequence[Any], *, stream: bool, search: str = "", tool: bool = False
) -> Told:
    """Asks by Messages; offline by a suffix of the model's name."""
    tools: list[Any] = []
    if search == "web":
        tools.append(SEARCHING)
    if tool:
        tools.append(tool_of("messages"))
    name = f"{MODEL}+offline" if search == "offline" else MODEL
    given: dict[str, Any] = {"model": name, "max_tokens": 500, "messages": asked, "tools": tools}
    if stream:
        with at.anthropic.messages.stream(**given) as events:
            whole: Any = events.get_final_message()
    else:
        whole = at.anthropic.messages.create(**given)
    text = "".join(block.text for block in whole.content if block.type == "text")
    cited = [c.url for b in whole.content if b.type == "text" for c in b.citations or ()]
    calls = [(b.name, b.input) for b in whole.content if b.type == "tool_use"]
    kinds = tuple(block.type for block in whole.content)
    extra = (whole.model_extra or {}).get("searchloop")
    turn = [{"role": "assistant", "content": [block.to_dict() for block in whole.content]}]
    first = next((block.id for block in whole.content if block.type == "tool_use"), "")
    return Told(text, tuple(cited), tuple(calls), kinds, extra, turn, first)


def _named(function: Any) -> tuple[str, Any]:
    return function.name, json.loads(function.arguments)


def user(text: str) -> list[Any]:
    """A question, as every protocol takes it."""
    return [{"role": "user", "content": text}]


@dataclass(frozen=True)
class Face:
    """A protocol: its name and path, a client that asks, and how the result of a call goes back."""

    name: str
    path: str
    ask: Callable[..., Told]
    result: Callable[[str, str], dict[str, Any]]

    def body(self, text: str, **more: Any) -> dict[str, Any]:
        """The smallest request."""
        asked = {"input" if self.name == "responses" else "messages": user(text)}
        needed = {"max_tokens": 500} if self.name == "messages" else {}
        return {"model": MODEL, **asked, **needed, **more}


def _block(call: str, text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {"role": "user", "content": [block]}


FACES = {
    face.name: face
    for face in (
        Face(
            "chat",
            "/v1/chat/completions",
            chat,
            lambda call, text: {"role": "tool", "tool_call_id": call, "content": text},
        ),
        Face(
            "responses",
            "/v1/responses",
            respond,
            lambda call, text: {"type": "function_call_output", "call_id": call, "output": text},
        ),
        Face("messages", "/v1/messages", message, _block),
    )
}
# How a piece of a stream and a whole answer are read by the vendors' own types.
TYPES: dict[str, tuple[TypeAdapter[Any], TypeAdapter[Any]]] = {
    "chat": (TypeAdapter(ChatCompletionChunk), TypeAdapter(ChatCompletion)),
    "responses": (TypeAdapter(ResponseStreamEvent), TypeAdapter(Response)),
    "messages": (TypeAdapter(RawMessageStreamEvent), TypeAdapter(AnthropicMessage)),
}
each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES)
