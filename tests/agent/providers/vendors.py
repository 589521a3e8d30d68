"""What the tests of all providers share: one description of each vendor's wire format.

A test that holds for every provider is in `test_contract_*.py` and goes through VENDORS.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from searchloop.agent import providers
from searchloop.agent.providers.anthropic import MessagesCodec
from searchloop.agent.providers.gemini import GeminiCodec
from searchloop.agent.providers.ollama.config import read_config
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.providers.openai import ResponsesCodec
from searchloop.agent.providers.openai_chat import ChatCodec
from searchloop.agent.providers.openai_chat.models import ChatServer
from searchloop.agent.providers.xai import XAICodec
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    ModelInfo,
    NativeSearch,
    Request,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from tests import ollama_rules, rules_anthropic, rules_gemini, rules_openai, rules_openai_chat
from tests.fakes import FakeServer, Reply, sse, sse_reply
from tests.recorded import OURS, exchanges

USER = Message("user", "When is high water?")
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
NATIVE = NativeSearch()
SSE = "text/event-stream"
KEY = "sk-canary-0123456789abcdef"
Body = dict[str, Any]
T = TypeVar("T")


def results(message: Message) -> list[Message]:
    """A result for each call of an answer."""
    return [
        Message("tool", f"07:4{n}", tool_call_id=call.id, tool_name=call.name)
        for n, call in enumerate(message.tool_calls)
    ]


def shown(events: Iterable[object]) -> str:
    """The text that streamed."""
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def using(name: str, env: Mapping[str, str], work: Callable[[Any], Awaitable[T]]) -> T:
    """What `work` gives with the provider that these settings make, on a loop of its own."""

    async def within() -> T:
        async with aclosing(Transport()) as transport:
            return await work(providers.load(name, env, transport))

    return asyncio.run(within())


def asked(name: str, env: Mapping[str, str], *requests: Request) -> list[StreamEvent]:
    """The events of these requests, one after the other, from one provider."""

    async def ask(provider: providers.Provider) -> list[StreamEvent]:
        return [event for each in requests async for event in provider.stream(each)]

    return using(name, env, ask)


@dataclass(frozen=True)
class Vendor:
    """A provider with its codec, its rules, and its way to say the same things as the others.

    `says` makes the events of an answer of these texts, `calls` those of a call with these
    arguments as text, `fails` the body of an error. `end` stands behind the last message of a
    request, `searches` are the words of a request that searches.
    """

    name: str
    model: str
    other: str
    codec: Any
    path: str
    rules: Callable[[Body, str], None]
    says: Callable[..., list[Any]]
    calls: Callable[[str], list[Any]]
    end: bytes
    recordings: tuple[str, ...]
    searches: tuple[str, ...] = ()
    home: bool = True  # a vendor of this API wants a key
    kind: str = SSE

    @property
    def folder(self) -> Path:
        """Where its recordings are."""
        return OURS / self.name.replace("-", "_")

    @property
    def setting(self) -> str:
        """The setting that names another server."""
        prefix = self.name.upper().replace("-", "_")
        return "OLLAMA_HOST" if self.name == "ollama" else f"{prefix}_BASE_URL"

    @property
    def key_setting(self) -> str:
        """The setting of the key."""
        return f"{self.name.upper().replace('-', '_')}_API_KEY"

    def request(self, *messages: Message, **more: Any) -> Request:
        """A request to its model, by default with one question."""
        return Request(more.pop("model", self.model), messages or (USER,), **more)

    def ask(self, *messages: Message, **more: Any) -> Body:
        """The body of a request, which its server would take."""
        request = self.request(*messages, **more)
        sent: Body = json.loads(self.codec.encode(request))
        self.rules(sent, self.codec.url(request))
        return sent

    def stream_of(self, name: str, number: int = 0) -> bytes:
        """The bytes of a recorded answer."""
        answer = exchanges(self.folder / f"{name}.json")[number]["response"]
        return (answer.get("text") or json.dumps(answer["body"])).encode()

    def decode(
        self, data: bytes, kind: str | None = None, *before: Message, size: int = 0, **more: Any
    ) -> list[StreamEvent]:
        """The events of an answer, in pieces of `size` bytes or whole."""
        request = self.request(*(before or (USER,)), **more)
        decoder = self.codec.decoder(request, self.kind if kind is None else kind)
        size = size or len(data) or 1
        events: list[StreamEvent] = []
        for start in range(0, len(data), size):
            events.extend(decoder.feed(data[start : start + size]))
        return [*events, *decoder.close()]

    def finished(self, data: bytes, kind: str | None = None, **more: Any) -> Finished:
        """How an answer ends."""
        last = self.decode(data, kind, **more)[-1]
        assert isinstance(last, Finished)
        return last

    def recorded(self, name: str, number: int = 0, **more: Any) -> Message:
        """A recorded answer as a message; a plain body by its first byte."""
        data = self.stream_of(name, number)
        kind = "application/json" if data[:1] == b"{" and self.kind == SSE else None
        return self.finished(data, kind, **more).message

    def wire(self, events: Iterable[Any]) -> bytes:
        """The bytes of these events."""
        return b"".join(e if isinstance(e, bytes) else sse(e) for e in events)

    def reply(self, *texts: str, **more: Any) -> Reply:
        """An answer of its server."""
        return sse_reply(self.says(*(texts or ("Good.",)), **more))

    def env(self, url: str = "", key: str = "") -> Environment:
        """Its settings."""
        found = {self.setting: url} if url else {}
        return Environment({"environment": found | ({self.key_setting: key} if key else {})})

    def stream(self, server: FakeServer, *requests: Request, key: str = "") -> list[StreamEvent]:
        """The events of these requests, one after the other, from one provider at this server."""
        url = server.url + self.path.partition("/v1")[1]

        return asked(self.name, self.env(url, key), *(requests or (self.request(),)))

    def listed(self, url: str = "", key: str = "") -> list[ModelInfo]:
        """What the picker shows."""
        return using(self.name, self.env(url, key), lambda provider: provider.models())


def _responses_text(*texts: str, status: str = "completed", why: str = "") -> list[Any]:
    place = {"output_index": 0, "content_index": 0}
    deltas = [
        {"type": "response.output_text.delta", "delta": t, "sequence_number": n, **place}
        for n, t in enumerate(texts)
    ]
    part = {"type": "output_text", "text": "".join(texts)}
    output = [{"type": "message", "id": "m_1", "content": [part]}] if "".join(texts) else []
    response = {"status": status, "output": output, "incomplete_details": {"reason": why}}
    return [*deltas, {"type": f"response.{status}", "response": response}]


def _responses_call(arguments: str) -> list[Any]:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ferry_times"}
    item = {**call, "arguments": arguments, "status": "completed"}
    return [{"type": "response.completed", "response": {"status": "completed", "output": [item]}}]


def _block(content: Mapping[str, Any], *deltas: Mapping[str, Any], index: int = 0) -> list[Any]:
    start = {"type": "content_block_start", "index": index, "content_block": content}
    pieces = [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
    return [start, *pieces, {"type": "content_block_stop", "index": index}]


def _messages(blocks: Sequence[Any], why: str) -> list[Any]:
    end = {"type": "message_delta", "delta": {"stop_reason": why}}
    return [{"type": "message_start", "message": {}}, *blocks, end, {"type": "message_stop"}]


def _messages_text(*texts: str, why: str = "end_turn") -> list[Any]:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return _messages(_block({"type": "text", "text": ""}, *deltas) if any(texts) else [], why)


def _messages_call(arguments: str) -> list[Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "ferry_times", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return _messages(_block(call, delta), "tool_use")


def _contents(*texts: str, why: str = "STOP") -> list[Any]:
    pieces = [{"content": {"role": "model", "parts": [{"text": t}]}} for t in texts if t] or [{}]
    return [{"candidates": [c]} for c in (*pieces[:-1], {**pieces[-1], "finishReason": why})]


def _contents_call(arguments: str) -> list[Any]:
    call = {"functionCall": {"name": "ferry_times", "args": [arguments]}}
    return [{"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}]


DONE = b"data: [DONE]\n\n"


def _chat(*texts: str, why: str = "stop") -> list[Any]:
    deltas = [{"delta": {"content": text}} for text in texts if text]
    end = {"delta": {}, "finish_reason": why}
    return [*({"choices": [choice]} for choice in (*deltas, end)), DONE]


def _chat_call(arguments: str) -> list[Any]:
    function = {"name": "ferry_times", "arguments": arguments}
    delta = {"tool_calls": [{"index": 0, "id": "a", "function": function}]}
    return [{"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}, DONE]


def lines(*values: Mapping[str, Any]) -> list[bytes]:
    """Lines of JSON."""
    return [json.dumps(value).encode() + b"\n" for value in values]


def _ollama(*texts: str, why: str = "stop", **more: Any) -> list[Any]:
    pieces = [{"message": {"content": text}} for text in texts if text]
    end = {"message": {"content": ""}, "done": True, "done_reason": why, "prompt_eval_count": 9}
    return lines(*pieces, {**end, **more})


def _ollama_call(arguments: str) -> list[Any]:
    call = {"function": {"name": "ferry_times", "arguments": arguments}}
    return lines({"message": {"content": "", "tool_calls": [call]}, "done": True})


def _chat_rules(body: Body, url: str) -> None:
    rules_openai_chat.check(body)
    rules_openai_chat.check_templates(body)


def _ollama_rules(body: Body, url: str) -> None:
    assert ollama_rules.check_body(body) is None


OPENAI = Vendor(
    "openai", "gpt-6-luna", "gpt-5.5", ResponsesCodec(KEY), "/v1/responses",
    lambda body, url: rules_openai.check(body), _responses_text, _responses_call, b"]}",
    ("web_search_stream", "function_calls_parallel_stream", "refusal_stream",
     "incomplete_null_output_stream", "null_output_two_messages_stream", "leaked_marks_stream",
     "failed_search_unknown_item_stream"), ("web_search",),
)  # fmt: skip
XAI = Vendor(
    "xai", "grok-4.3", "grok-4.5", XAICodec(KEY), "/v1/responses",
    lambda body, url: rules_openai.check(body), _responses_text, _responses_call, b"]}",
    ("web_search_stream", "function_call_stream", "x_search_stream"), ("web_search", "x_search"),
)  # fmt: skip
ANTHROPIC = Vendor(
    "anthropic", "claude-sonnet-5-5", "claude-opus-5", MessagesCodec(KEY), "/v1/messages",
    lambda body, url: rules_anthropic.check(body), _messages_text, _messages_call,
    b'],"max_tokens"',
    ("web_search_stream", "web_fetch_stream", "failed_searches_stream", "calls_parallel_stream",
     "cut_in_a_call_stream", "refusal_stream", "local_results_stream", "plain_body"),
    ("web_search", "web_fetch"),
)  # fmt: skip
GEMINI = Vendor(
    "gemini", "gemini-3.5-flash", "gemini-3.1-pro-preview", GeminiCodec(KEY), "/v1/models",
    rules_gemini.check, _contents, _contents_call, b']}],"',
    ("function_calls_parallel_stream", "search_and_function_stream", "search_stream",
     "function_calls_without_ids", "max_tokens_stream",
     "thoughts_only_max_tokens", "blocked_answer_stream", "leaked_marks_stream"),
    ("googleSearch", "urlContext"),
)  # fmt: skip
CHAT = Vendor(
    "openai-chat", "tidewater-8b", "elder-8b",
    ChatCodec(ChatServer("https://chat.example/v1", KEY)),
    "/v1/chat/completions", _chat_rules, _chat, _chat_call, b'"}]}',
    ("text_stream", "tool_calls_parallel_stream", "tool_call_bent_ids_stream",
     "reasoning_details_stream", "think_tags_stream", "length_call_stream"),
    home=False,
)  # fmt: skip
OLLAMA = Vendor(
    "ollama", "qwen3:8b", "llama3.2", OllamaCodec(read_config({})), "/api/chat", _ollama_rules,
    _ollama, _ollama_call, b"]}",
    ("chat_text_stream", "chat_tool_calls_stream", "chat_think_tags_stream",
     "chat_length_stream"), home=False, kind="application/x-ndjson",
)  # fmt: skip
VENDORS = (OPENAI, XAI, ANTHROPIC, GEMINI, CHAT, OLLAMA)
KEYED = tuple(v for v in VENDORS if v.home)
BY_NAME = {vendor.name: vendor for vendor in VENDORS}
"""By the name of the provider."""

ELSEWHERE = Message("assistant", "", tool_calls=(ToolCall("toolu_1", "a.b/c", {"x": [1]}),))
"""An answer that no provider here has made."""
