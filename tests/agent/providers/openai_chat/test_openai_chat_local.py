"""Chat Completions servers of one's own: printed calls, small windows, and how fast they were."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent, Settings
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import load
from searchloop.agent.providers.openai_chat import ChatCodec
from searchloop.agent.providers.openai_chat.models import ChatServer
from searchloop.agent.settings import load_environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Request, StreamEvent, TextDelta, ToolSpec
from tests.agent.log.test_context_plan import research
from tests.agent.providers.local_desk import FACT, lake
from tests.agent.scripted import check_calls_are_answered
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.rules_openai_chat import check

FOLDER = Path(__file__).parents[3] / "recordings" / "tool_text"
OWN = ChatServer("http://127.0.0.1:8080/v1")
DONE = b"data: [DONE]\n\n"


def corpus(name: str) -> Any:
    """One file of the corpus of printed calls."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


TOOLS = tuple(ToolSpec(t["name"], "", t["parameters"]) for t in corpus("tools"))


def spoken(text: str, **more: Any) -> list[Any]:
    """An answer of these words, in pieces of nine characters."""
    pieces = [text[at : at + 9] for at in range(0, len(text), 9)]
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
    return [
        *chunks,
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **more},
        DONE,
    ]


def decode(text: str, server: ChatServer = OWN, **more: Any) -> list[StreamEvent]:
    """The events of an answer in words, with every tool of the corpus on offer."""
    decoder = ChatCodec(server).decoder(Request("m", (), tools=TOOLS), "text/event-stream")
    reply = sse_reply(spoken(text, **more))
    return [e for piece in reply.pieces for e in decoder.feed(piece)] + list(decoder.close())


def end(events: list[StreamEvent]) -> Finished:
    """The last event."""
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_printed_calls_of_any_dialect_arrive() -> None:
    """Every case of the corpus gives its calls, and nothing of them is shown."""
    for case in corpus("calls"):
        events = decode(case["text"])
        last = end(events)
        made = [[call.name, dict(call.arguments)] for call in last.message.tool_calls]
        assert made == case["calls"], case["name"]
        assert last.stop_reason == "tool_calls"
        assert last.message.details == {"calls": "text"}
        shown = "".join(e.text for e in events if isinstance(e, TextDelta))
        assert shown.strip() == case["visible"] == last.message.content.strip()
        assert len({call.id for call in last.message.tool_calls}) == len(made)


def test_what_is_no_call_stays_text() -> None:
    """Names not on offer, arguments that do not fit and prose about calls lose no letter."""
    texts = [case["text"] for name in ("strangers", "bad") for case in corpus(name)]
    for text in (*texts, *corpus("prose")):
        last = end(decode(text))
        assert (last.message.tool_calls, last.stop_reason) == ((), "stop")
        assert last.message.content == text


def test_the_official_server_prints_no_calls() -> None:
    """What a vendor's own model writes is an answer, whatever it looks like."""
    text = corpus("calls")[0]["text"]
    last = end(decode(text, ChatServer("https://api.openai.com/v1", "k")))
    assert (last.message.content, last.message.tool_calls) == (text, ())


def test_a_server_tells_how_fast_it_was() -> None:
    """llama.cpp's timings are the numbers of the message."""
    times = {"prompt_ms": 120.5, "predicted_ms": 800, "predicted_per_second": 31.25, "cache_n": 9}
    message = end(decode("At 07:40.", timings=times)).message
    assert message.details == {"prompt_ms": 120.5, "eval_ms": 800.0, "tokens_per_second": 31.25}


def test_a_printed_call_searches(tmp_path: Path) -> None:
    """End to end: the printed call is run, the answer is cited, the turn tells how calls came."""
    printed = '<tool_call>{"name": "web_search", "arguments": {"query": "ferry"}}</tool_call>'
    replies = [sse_reply(spoken(printed)), sse_reply(spoken(f"{FACT} [1]"))]
    with FakeServer(replies) as server:
        flags = {"SEARCHLOOP_HOME": str(tmp_path), "OPENAI_CHAT_BASE_URL": f"{server.url}/v1"}
        settings = Settings.load(load_environment(flags, {}, tmp_path))
        with Agent(settings, search_backend=lake()) as agent:
            told = agent.ask("When?", model="openai-chat:m", search="local")
            last = agent.log.last_event(told.session_id)
    assert (told.text, [c.n for c in told.citations]) == (f"{FACT} [1]", [1])
    assert last.data["performance"] == {"calls": "text"}
    for request in server.requests:
        check(request.json)


# --- windows ----------------------------------------------------------------------------------

LLAMA = (
    "request ({asked} tokens) exceeds the available context size ({n} tokens), try increasing it"
)
VLLM = "This model's maximum context length is {n} tokens. However, you requested {asked} tokens."
STUDIO = "Reached context length of {n} tokens with this model, which does not support overflow."
MUTE = "The prompt is longer than the context window."


class Small(FakeServer):
    """A server with a window: it counts a quarter of the characters and refuses what is longer."""

    def __init__(self, n: int, words: str, listed: Any = None) -> None:
        super().__init__(self._reply)
        self._n, self._words, self._listed = n, words, listed
        self.taken: list[int] = []

    def _reply(self, request: Received) -> Reply:
        if request.method == "GET":
            return json_reply({"data": [{"id": "m", **(self._listed or {})}]})
        asked = sum(len(m["content"] or "") // 4 for m in request.json["messages"])
        if asked > self._n:
            words = self._words.format(n=self._n, asked=asked)
            return json_reply({"error": {"message": words, "code": 400}}, 400)
        self.taken.append(asked)
        return sse_reply(spoken("At 07:40."))


def ask(server: FakeServer, *messages: Message, times: int = 1) -> list[Finished]:
    """The same provider asked several times with these messages."""

    async def main() -> list[Finished]:
        transport = Transport()
        try:
            provider = load("openai-chat", {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1"}, transport)
            request = Request("m", messages, system="Be brief.")
            return [end([e async for e in provider.stream(request)]) for _ in range(times)]
        finally:
            await transport.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("words", "listed"),
    [(LLAMA, None), (VLLM, None), (STUDIO, None), (MUTE, {"max_model_len": 4096})],
)
def test_a_long_session_fits_a_small_window(words: str, listed: Any) -> None:
    """Refused once for its size, a request is shortened; later ones are sent so at once."""
    said = [*research(4), Message("user", "And on Sunday?")]
    with Small(4096, words, listed) as server:
        first, second = ask(server, *said, times=2)
    assert first.message.content == second.message.content == "At 07:40."
    chats = [r.json for r in server.requests if r.method == "POST"]
    assert len(chats) == 3
    for sent in chats[1:]:
        check(sent)
        assert sent["messages"][-1]["content"].endswith("And on Sunday?")
    assert len(server.taken) == 2


def test_a_question_too_long_for_the_window() -> None:
    """A question that alone is too long is refused in our words, with the window's size."""
    with Small(1024, LLAMA) as server, pytest.raises(ProviderError) as caught:
        ask(server, Message("user", "ferry " * 2000))
    assert caught.value.code == "question_too_long"
    assert "1,024" in caught.value.message


def test_a_window_nobody_tells_is_the_server_s_word() -> None:
    """Without a size anywhere the refusal is passed on, and nothing is tried again."""
    with Small(1024, MUTE) as server, pytest.raises(ProviderError) as caught:
        ask(server, Message("user", "ferry " * 2000))
    assert caught.value.code == "context_length"
    assert [r.method for r in server.requests] == ["POST", "GET"]


@pytest.mark.parametrize(
    ("base", "own"),
    [
        *(("http://127.0.0.1:1/v1", True), ("http://gpu-box:8000/v1", True)),
        *(("http://192.168.1.7/v1", True), ("http://gpu.local/v1", True)),
        *(("https://api.openai.com/v1", False), ("https://llm.example/v1", False)),
    ],
)
def test_whose_server_it_is(base: str, own: bool) -> None:
    """Only servers on this machine or beside it are planned for."""
    assert ChatServer(base).own is own


def test_calls_keep_their_results_when_a_session_is_shortened() -> None:
    """The transcript that reaches the wire is one that servers accept."""
    said = [*research(3), Message("user", "And on Sunday?")]
    check_calls_are_answered(said)
    with Small(3000, LLAMA) as server:
        ask(server, *said)
    check(server.requests[-1].json)
