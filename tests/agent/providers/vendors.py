"""What the tests of all providers share: one description of each vendor's wire format.

A test that holds for every provider is in `test_contract_*.py` and goes through VENDORS.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
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
from tests.chaos import dialects
from tests.chaos.dialects import Asked
from tests.fakes import FakeServer, Reply, sse, sse_reply
from tests.recorded import OURS, exchanges

USER = Message("user", "When is high water?")
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
NATIVE = NativeSearch()
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
    """A provider with its codec and its rules; `tests.chaos.dialects` speaks as its server.

    `usual` is the reason of an ordinary end. `end` stands behind the last message of a request,
    `searches` are the words of a request that searches.
    """

    name: str
    model: str
    other: str
    codec: Any
    path: str
    rules: Callable[[Body, str], None]
    usual: str
    end: bytes
    recordings: tuple[str, ...]
    searches: tuple[str, ...] = ()
    home: bool = True  # a vendor of this API wants a key

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

    def at(self, host: str) -> Vendor:
        """The same for a Chat Completions server at this host."""
        return replace(self, codec=ChatCodec(ChatServer(f"https://{host}/v1", KEY)))

    def decode(
        self, data: bytes, *before: Message, size: int = 0, **more: Any
    ) -> list[StreamEvent]:
        """The events of an answer, in pieces of `size` bytes or whole."""
        request = self.request(*(before or (USER,)), **more)
        decoder = self.codec.decoder(request, "")
        size = size or len(data) or 1
        events: list[StreamEvent] = []
        for start in range(0, len(data), size):
            events.extend(decoder.feed(data[start : start + size]))
        return [*events, *decoder.close()]

    def finished(self, data: bytes, **more: Any) -> Finished:
        """How an answer ends."""
        last = self.decode(data, **more)[-1]
        assert isinstance(last, Finished)
        return last

    def recorded(self, name: str, number: int = 0, **more: Any) -> Message:
        """A recorded answer as a message."""
        return self.finished(self.stream_of(name, number), **more).message

    def wire(self, events: Iterable[Any]) -> bytes:
        """The bytes of these events."""
        return b"".join(e if isinstance(e, bytes) else sse(e) for e in events)

    def says(self, *texts: str, why: str = "") -> list[bytes]:
        """The events of an answer of these texts; `why` it ends, if not as usual."""
        usual, given = (f'"{each}"'.encode() for each in (self.usual, why or self.usual))
        return [e.replace(usual, given) for e in dialects.load(self.name).text(*texts)]

    def begins(self, text: str) -> bytes:
        """The bytes of an answer that does not end."""
        dialect = dialects.load(self.name)
        return b"".join(dialect.text(text)[: -dialect.terminal])

    def calls(self, arguments: str) -> bytes:
        """The bytes of a call with these arguments, which may be broken."""
        return b"".join(dialects.load(self.name).calls(Asked("ferry_times", arguments)))

    def reply(self) -> Reply:
        """An answer of its server."""
        return sse_reply(self.says("Good."))

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


DONE = b"data: [DONE]\n\n"


def chunk(delta: Mapping[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    """A chunk of Chat Completions."""
    return sse({"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more})


def _chat_rules(body: Body, url: str) -> None:
    rules_openai_chat.check(body)
    rules_openai_chat.check_templates(body)


def _mistral_rules(body: Body, url: str) -> None:
    _chat_rules(body, url)
    if body["model"].startswith("mistral"):
        rules_openai_chat.check_mistral(body)


def _ollama_rules(body: Body, url: str) -> None:
    assert ollama_rules.check_body(body) is None


OPENAI = Vendor(
    "openai", "gpt-6-luna", "gpt-5.5", ResponsesCodec(KEY), "/v1/responses",
    lambda body, url: rules_openai.check(body), "completed", b"]}",
    ("web_search_stream", "function_calls_parallel_stream", "refusal_stream",
     "incomplete_null_output_stream", "null_output_two_messages_stream", "leaked_marks_stream",
     "failed_search_unknown_item_stream"), ("web_search",),
)  # fmt: skip
XAI = Vendor(
    "xai", "grok-4.3", "grok-4.5", XAICodec(KEY), "/v1/responses",
    lambda body, url: rules_openai.check(body), "completed", b"]}",
    ("web_search_stream", "function_call_stream", "x_search_stream"), ("web_search", "x_search"),
)  # fmt: skip
ANTHROPIC = Vendor(
    "anthropic", "claude-sonnet-5-5", "claude-opus-5", MessagesCodec(KEY), "/v1/messages",
    lambda body, url: rules_anthropic.check(body), "end_turn",
    b'],"max_tokens"',
    ("web_search_stream", "web_fetch_stream", "failed_searches_stream", "calls_parallel_stream",
     "cut_in_a_call_stream", "refusal_stream", "local_results_stream", "plain_body"),
    ("web_search", "web_fetch"),
)  # fmt: skip
GEMINI = Vendor(
    "gemini", "gemini-3.5-flash", "gemini-3.1-pro-preview", GeminiCodec(KEY), "/v1/models",
    rules_gemini.check, "STOP", b']}],"',
    ("function_calls_parallel_stream", "search_and_function_stream", "search_stream",
     "function_calls_without_ids", "max_tokens_stream",
     "thoughts_only_max_tokens", "blocked_answer_stream", "leaked_marks_stream"),
    ("googleSearch", "urlContext"),
)  # fmt: skip
CHAT = Vendor(
    "openai-chat", "tidewater-8b", "elder-8b",
    ChatCodec(ChatServer("https://chat.example/v1", KEY)),
    "/v1/chat/completions", _chat_rules, "stop", b'"}]}',
    ("text_stream", "tool_calls_parallel_stream", "tool_call_bent_ids_stream",
     "reasoning_details_stream", "think_tags_stream", "length_call_stream"),
    home=False,
)  # fmt: skip
OLLAMA = Vendor(
    "ollama", "qwen3:8b", "llama3.2", OllamaCodec(read_config({})), "/api/chat", _ollama_rules,
    "stop", b"]}",
    ("chat_text_stream", "chat_tool_calls_stream", "chat_think_tags_stream",
     "chat_length_stream"), home=False,
)  # fmt: skip
VENDORS = (OPENAI, XAI, ANTHROPIC, GEMINI, CHAT, OLLAMA)
MISTRAL = replace(CHAT, model="mistral-small-latest", rules=_mistral_rules)
KEYED = tuple(v for v in VENDORS if v.home)
BY_NAME = {vendor.name: vendor for vendor in VENDORS}
"""By the name of the provider."""

OPAQUE = {
    "openai": ("web_search_stream", ["gAAA-whole-1=="]),
    "anthropic": ("web_search_stream", ["EncA+tide==", "SigOne"]),
    "gemini": ("function_calls_parallel_stream", ["c2lnbmVkLWZpcnN0"]),
    "openai-chat": ("reasoning_details_stream", ["c2lnbmVk", "c2ln"]),
    "xai": ("web_search_stream", ["ws_1"]),
}
"""By the same name: a recorded answer, and what nobody else can read of it."""

ELSEWHERE = Message("assistant", "", tool_calls=(ToolCall("toolu_1", "a.b/c", {"x": [1]}),))
"""An answer that no provider here has made."""
