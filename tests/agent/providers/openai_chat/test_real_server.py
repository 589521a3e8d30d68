"""The same checks against a server that counts as llama.cpp does, and against a real one.

`make real` starts the real one, a llama.cpp server with a small model, and names it in LLAMA_URL.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers.openai_chat import ChatCodec
from searchloop.agent.providers.openai_chat.models import find_server
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Request, StreamEvent, ToolCall, ToolSpec
from tests.agent.providers.local_desk import desk
from tests.agent.providers.vendors import CHAT
from tests.chaos import dialects
from tests.chaos.house import reply
from tests.fakes import FakeServer, Received, Reply, json_reply

WINDOW, NAME = 2048, "tiny-135m"
FERRY = "Lake ferries leave in the morning and come back at night, in any weather. " * 36
NOTE = ToolSpec("note", "Keeps a line.", {"type": "object", "properties": {"text": {}}})


def played(received: Received) -> Reply:
    """What llama.cpp answers: its window in the list, a refusal with sizes, counts and words."""
    if received.method == "GET":
        return json_reply({"data": [{"id": NAME, "meta": {"n_ctx": WINDOW}}]})
    said = json.dumps(received.json["messages"])
    if (size := len(said) // 4) > WINDOW:
        words = f"request ({size} tokens) exceeds the available context size ({WINDOW} tokens)"
        error = {"code": 400, "message": words, "type": "exceed_context_size_error"}
        return json_reply({"error": {**error, "n_prompt_tokens": size, "n_ctx": WINDOW}}, 400)
    dialect = dialects.load("openai-chat")
    *answer, end, counts, done = dialect.text("The ferry leaves.")
    told = counts.replace(b'"prompt_tokens": 9', b'"prompt_tokens": %d' % size)
    return reply(dialect, [*answer, end, told, done])


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the server."""
    if request.param == "real":
        if "LLAMA_URL" not in os.environ:
            pytest.skip("no real server: run `make real`")
        yield os.environ["LLAMA_URL"]
        return
    with FakeServer(played) as server:
        yield f"{server.url}/v1"


@pytest.fixture
def model(url: str) -> str:
    """The one that it lists, by its own name."""
    (found,) = [m for m in CHAT.listed(url) if m.available]
    assert (found.local, found.capabilities.context) == (True, WINDOW)
    return found.id.partition(":")[2]


def sent(url: str, messages: Sequence[Message], model: str, **more: object) -> list[StreamEvent]:
    """One request without a plan for its window, and what came."""

    async def ask() -> list[StreamEvent]:
        codec = ChatCodec(find_server({"OPENAI_CHAT_BASE_URL": url}))
        request = Request(model, tuple(messages), **more)  # type: ignore[arg-type]
        async with aclosing(Transport()) as transport:
            return [event async for event in HttpProvider(codec, transport).stream(request)]

    return asyncio.run(ask())


def test_an_answer_has_its_numbers(url: str, model: str, tmp_path: Path) -> None:
    """Words, counts near our estimate, and a cost of nothing."""
    with desk("", tmp_path, OPENAI_CHAT_BASE_URL=url) as session:
        told = session.ask("Say hello in one short sentence.", f"openai-chat:{model}", search="off")
    assert (told.reason, told.error) == ("stop", None)
    assert told.text.strip()
    assert told.usage.input_tokens
    assert told.usage.output_tokens
    assert told.usage.cost_usd == 0


def test_history_with_calls_is_accepted(url: str, model: str) -> None:
    """A call, its result and an answer of before, with and without tools on offer."""
    call = ToolCall("call_1", "note", {"text": "07:40"})
    history = [
        Message("user", "Note 07:40."),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "noted", tool_call_id="call_1"),
        Message("assistant", "It is noted."),
        Message("user", "Say hello."),
    ]
    for tools in ((NOTE,), ()):
        events = sent(url, history, model, tools=tools, max_output_tokens=20)
        assert isinstance(events[-1], Finished)
        assert events[-1].usage.output_tokens


def test_a_refusal_for_length_is_understood(url: str, model: str) -> None:
    """It is told apart from other refusals, and names the window."""
    with pytest.raises(ProviderError) as caught:
        sent(url, [Message("user", "ferry " * 6000)], model, max_output_tokens=1)
    assert caught.value.code == "context_length", caught.value
    assert str(WINDOW) in caught.value.message


def test_a_question_that_does_not_fit_is_told(url: str, model: str, tmp_path: Path) -> None:
    """One clear error with a remedy for this server, and the session goes on."""
    with desk("", tmp_path, OPENAI_CHAT_BASE_URL=url) as session:
        told = session.ask("ferry " * 6000, f"openai-chat:{model}", search="off")
        assert told.error is not None
        assert told.error["code"] == "question_too_long"
        assert told.error["remedy"]
        after = session.ask("Say hello.", f"openai-chat:{model}", search="off")
        assert after.reason in ("stop", "incomplete")


def test_a_long_chat_goes_on(url: str, model: str, tmp_path: Path) -> None:
    """Longer than the window: no request is refused, older turns become a summary."""
    with desk("", tmp_path, OPENAI_CHAT_BASE_URL=url) as session:
        session.agent.models()
        for turn in range(6):
            text = f"Turn {turn}. {FERRY}Say one word about ferries."
            told = session.ask(text, f"openai-chat:{model}", search="off")
            assert told.error is None or told.error["code"] == "answer_cut", (turn, told.error)
        made = [e.data for e in session.events if e.type == "summary"]
        said = [e.data for e in session.events if e.type == "user_message"]
    assert made
    assert made[0]["text"]
    assert sum(len(each["text"]) for each in said) // 4 > 1.5 * WINDOW


def test_a_stop_frees_the_server(url: str, model: str, tmp_path: Path) -> None:
    """A long answer that is stopped does not hold up the next one."""
    with desk("", tmp_path, OPENAI_CHAT_BASE_URL=url) as session:
        asked = f"openai-chat:{model}"
        events = session.agent.stream("Count from one to a thousand.", model=asked, search="off")
        for event in events:
            if event.type == "text_delta":
                break
        events.close()  # type: ignore[attr-defined]
        assert session.ask("Say hello.", asked, search="off").text


def test_it_searches_or_says_why_not(url: str, model: str, tmp_path: Path) -> None:
    """Whatever so small a model makes of tools, the turn ends, and without their syntax."""
    with desk("", tmp_path, OPENAI_CHAT_BASE_URL=url) as session:
        told = session.ask("When does the ferry leave?", f"openai-chat:{model}")
    assert told.reason in ("stop", "limit", "incomplete"), told.error
    assert "<tool_call>" not in told.text
