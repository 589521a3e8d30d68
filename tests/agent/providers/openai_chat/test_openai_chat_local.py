"""Chat Completions servers of one's own: printed calls, small windows, and how fast they were."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.openai_chat import ChatCodec, OpenAIChat
from searchloop.agent.providers.openai_chat.models import ChatServer
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Notice, Request, StreamEvent
from tests.agent.calls.test_tool_text import BAD, CALLS, PROSE, STRANGERS, TOOLS
from tests.agent.log.test_context_plan import research
from tests.agent.providers.local_desk import LLAMA, SmallServer
from tests.agent.providers.vendors import CHAT, shown
from tests.fakes import FakeServer, json_reply
from tests.rules_openai_chat import check
from tests.tables import each_row

OWN = ChatServer("http://127.0.0.1:8080/v1")


def decode(text: str, server: ChatServer = OWN) -> list[StreamEvent]:
    """The events of an answer in pieces of nine characters, with each tool of the corpus."""
    vendor = replace(CHAT, codec=ChatCodec(server))
    pieces = (text[at : at + 9] for at in range(0, len(text), 9))
    return vendor.decode(vendor.wire(vendor.says(*pieces)), tools=TOOLS)


def end(events: list[StreamEvent]) -> Finished:
    """The last event."""
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_printed_calls_of_any_dialect_arrive() -> None:
    """Every case of the corpus gives its calls, and nothing of them is shown."""
    for case in CALLS:
        events = decode(case["text"])
        last = end(events)
        made = [[call.name, dict(call.arguments)] for call in last.message.tool_calls]
        assert made == case["calls"], case["name"]
        assert last.stop_reason == "tool_calls"
        assert last.message.details == {"calls": "text"}
        assert shown(events).strip() == case["visible"] == last.message.content.strip()
        assert len({call.id for call in last.message.tool_calls}) == len(made)


def test_what_is_no_call_stays_text() -> None:
    """Names not on offer, arguments that do not fit and prose about calls lose no letter."""
    for text in (*(case["text"] for case in (*STRANGERS, *BAD)), *PROSE):
        last = end(decode(text))
        assert (last.message.tool_calls, last.stop_reason) == ((), "stop")
        assert last.message.content == text


def test_the_official_server_prints_no_calls() -> None:
    """What a vendor's own model writes is an answer, whatever it looks like."""
    text = CALLS[0]["text"]
    last = end(decode(text, ChatServer("https://api.openai.com/v1", "k")))
    assert (last.message.content, last.message.tool_calls) == (text, ())


# --- windows ----------------------------------------------------------------------------------

VLLM = "This model's maximum context length is {n} tokens. However, you requested {asked} tokens."
STUDIO = "Reached context length of {n} tokens with this model, which does not support overflow."
MUTE = "The prompt is longer than the context window."


def told(server: FakeServer, *messages: Message, times: int = 1) -> list[list[StreamEvent]]:
    """The events of the same question, asked several times of one provider."""
    request = Request("m", messages, system="Be brief.")
    events = CHAT.stream(server, *[request] * times)
    ends = [0, *(n for n, e in enumerate(events, 1) if isinstance(e, Finished))]
    return [events[a:b] for a, b in pairwise(ends)]


def ask(server: FakeServer, *messages: Message, times: int = 1) -> list[Finished]:
    return [end(events) for events in told(server, *messages, times=times)]


@pytest.mark.parametrize(
    ("words", "listed"),
    [(LLAMA, None), (VLLM, None), (STUDIO, None), (MUTE, {"max_model_len": 4096})],
)
def test_a_long_session_fits_a_small_window(words: str, listed: Any) -> None:
    """Refused once for its size, a request is shortened; later ones are sent so at once."""
    said = [*research(4), Message("user", "And on Sunday?")]
    with SmallServer(4096, words, listed) as server:
        first, second = ask(server, *said, times=2)
    assert first.message.content == second.message.content == "At 07:40."
    chats = [r.json for r in server.requests if r.method == "POST"]
    assert len(chats) == 3
    for sent in chats[1:]:
        check(sent)
        assert sent["messages"][-1]["content"].endswith("And on Sunday?")
    assert len(server.taken) == 2


def test_a_window_nobody_tells_is_the_server_s_word() -> None:
    """Without a size anywhere the refusal is passed on, and nothing is tried again."""
    with SmallServer(1024, MUTE) as server, pytest.raises(ProviderError) as caught:
        ask(server, Message("user", "ferry " * 2000))
    assert caught.value.code == "context_length"
    assert [r.method for r in server.requests] == ["POST", "GET"]


@each_row(
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


LONG = (Message("user", "x" * 4000), Message("assistant", "Yes."), Message("user", "y" * 27_000))


def notices(events: list[StreamEvent]) -> list[Notice]:
    return [e for e in events if isinstance(e, Notice)]


def test_a_prompt_that_was_cut_without_a_word() -> None:
    """It is told once, with the better door; from then on nothing longer is sent."""
    with SmallServer(4096, keep=2050) as server:
        said = [*research(8), Message("user", "And on Sunday?")]
        first, second = told(server, *said, times=2)
    (notice,) = notices(first)
    assert notice.code == "prompt_cut"
    assert "read 2,050 of about" in notice.message
    assert "OLLAMA_HOST" in notice.remedy
    assert notices(second) == []
    assert server.taken[0] > 4096
    assert server.taken[1] <= 4096


def test_a_count_that_differs_but_fits_is_no_cut() -> None:
    """A text of blanks has few tokens: the server's window is large enough, so nobody is told."""
    with SmallServer(3000, listed={"max_model_len": 32_768}, keep=600) as server:
        (events,) = told(server, *LONG)
    assert notices(events) == []


async def test_the_window_of_a_vendor_is_noted() -> None:
    """Its refusal stands, for the summary that follows; the window is known from then on."""
    words = VLLM.format(n=65_536, asked=90_000)
    refused = json_reply({"error": {"message": words}}, 400)
    with FakeServer([refused]) as server:
        async with aclosing(Transport()) as transport:
            provider = OpenAIChat(Elsewhere(f"{server.url}/v1"), transport)
            assert provider.capabilities("m").context is None
            with pytest.raises(ProviderError) as caught:
                await anext(provider.stream(Request("m", (Message("user", "Hi"),))))
    assert caught.value.code == "context_length"
    assert provider.capabilities("m").context == 65_536
    assert len(server.requests) == 1


class Elsewhere(ChatServer):
    """A vendor's server, which happens to stand here."""

    @property
    def own(self) -> bool:
        return False
