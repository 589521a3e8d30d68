"""The same checks against servers that play Ollama and llama.cpp, always, and against real ones.

    OLLAMA_HOST=127.0.0.1:11434 OLLAMA_TEST_MODEL=qwen3:4b python -m pytest -m ollama tests/agent

Without OLLAMA_TEST_MODEL the smallest installed chat model is asked. The server has to be on this
machine, or look like it (`ssh -L 11434:127.0.0.1:11434 gpu-box`): tests leave it for nothing.
`make real` starts a llama.cpp server with a small model, and names it in LLAMA_URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers.ollama.config import parse_address, read_config
from searchloop.agent.providers.ollama.models import full_name
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, ToolCall, ToolSpec
from tests.agent.providers.local_desk import LLAMA, Desk, SmallServer, desk
from tests.agent.providers.vendors import CHAT, OLLAMA, using
from tests.fake_ollama import Answer, FakeOllama, Model, call, say, think

QUESTION = "Search the web: when does the ferry to Lindhaug leave, and from which pier?"
MARKS = ("<tool_call", "<|", '{"tool"', '{"name"', "[TOOL_CALLS]")
WINDOW = 2048
LONG = "Lake ferries leave in the morning and come back at night, in any weather. " * 36
NOTE = ToolSpec("note", "Keeps a line.", {"type": "object", "properties": {"text": {}}})


@dataclass(frozen=True)
class Place:
    """A server, the setting that names it, and the model that is asked there."""

    setting: str
    url: str
    model: str

    @property
    def id(self) -> str:
        """The model as users write it."""
        return f"{'ollama' if self.setting == 'OLLAMA_HOST' else 'openai-chat'}:{self.model}"

    def desk(self, home: Path, **env: str) -> AbstractContextManager[Desk]:
        """An agent with one session there."""
        return desk("", home, **{self.setting: self.url, **env})


def obliging(body: Any) -> Answer:
    """What a model does that follows its instructions: it searches once, then it answers."""
    texts = [str(message.get("content")) for message in body["messages"]]
    asked = max(i for i, m in enumerate(body["messages"]) if m["role"] == "user")
    found = any("[1]" in text for text in texts[1:])
    if body.get("tools") and not found:
        return call("web_search", {"query": "ferry Lindhaug"}, "call_1")
    words = "It leaves at 07:40 from pier four [1]." if found else f"Hello {asked}."
    return say(words) if body.get("think") is False else think("Let me see.", words)


def smallest(url: str) -> str:
    """The smallest chat model that is installed there."""
    there = [model for model in OLLAMA.listed(url) if model.available and model.local]
    assert there, f"there is no chat model at {url}: start Ollama and get one, or set OLLAMA_HOST"
    return min(there, key=lambda m: m.disk or 0).id.partition(":")[2]


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.ollama)])
def ollama(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A fake server with an obliging model, or the tester's own."""
    if request.param == "real":
        url = parse_address(os.environ.get("OLLAMA_HOST", "")).base
        yield Place("OLLAMA_HOST", url, os.environ.get("OLLAMA_TEST_MODEL") or smallest(url))
        return
    model = Model("qwen3:4b", ("completion", "tools", "thinking"))
    with FakeOllama([model], obliging) as server:
        yield Place("OLLAMA_HOST", server.url, model.name)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
def llama(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A server that counts as llama.cpp does, or the one that `make real` has started."""
    with SmallServer(WINDOW, LLAMA, {"meta": {"n_ctx": WINDOW}}) as server:
        url = os.environ["LLAMA_URL"] if request.param == "real" else f"{server.url}/v1"
        (found,) = [m for m in CHAT.listed(url) if m.available]
        assert (found.local, found.capabilities.context) == (True, WINDOW)
        yield Place("OPENAI_CHAT_BASE_URL", url, found.id.partition(":")[2])


def check_an_answer(session: Desk, place: Place) -> None:
    """Words, counts, no cost; a question that does not fit is one error, and the chat goes on."""
    told = session.ask("Say hello in one short sentence.", place.id, search="off")
    assert (told.reason, told.error) == ("stop", None)
    assert told.text.strip()
    assert told.usage.input_tokens
    assert told.usage.output_tokens
    assert told.usage.cost_usd == 0
    refused = session.ask("ferry " * 6000, place.id, search="off")
    assert refused.error is not None
    assert refused.error["code"] == "question_too_long"
    assert refused.error["remedy"]
    after = session.ask("Say hello.", place.id, search="off")
    assert after.reason in ("stop", "incomplete")


def test_ollama_answers_within_its_window(ollama: Place, tmp_path: Path) -> None:
    """Times and speed are told, too."""
    with ollama.desk(tmp_path, OLLAMA_CONTEXT_LENGTH=str(WINDOW)) as session:
        check_an_answer(session, ollama)
        numbers = [e.data.get("performance") for e in session.events if e.type == "run_finished"]
    first = numbers[0]
    assert min(first["prompt_ms"], first["tokens_per_second"], first["prompt_estimate"]) > 0


def test_llama_cpp_answers_within_its_window(llama: Place, tmp_path: Path) -> None:
    """Its own words for what does not fit are understood."""
    with llama.desk(tmp_path) as session:
        check_an_answer(session, llama)


def test_it_searches(ollama: Place, tmp_path: Path) -> None:
    """By calls, by a form, or searched for; nothing of a call is shown."""
    with ollama.desk(tmp_path) as session:
        told = session.ask(QUESTION, ollama.id)
    assert (told.reason, told.error) == ("stop", None)
    assert told.usage.searches
    assert "07:40" in told.text
    assert not any(mark in told.text for mark in MARKS)


def test_the_model_in_the_list_and_in_memory(ollama: Place, tmp_path: Path) -> None:
    """Its disk and rung; its window once it has answered; nothing once it was unloaded."""

    def listed() -> Any:
        return {m.id: m for m in session.agent.models()}[f"ollama:{full_name(ollama.model)}"]

    with ollama.desk(tmp_path) as session:
        before = listed()
        session.ask("Say hello.", ollama.id, search="off")
        after = listed()
        using("ollama", {"OLLAMA_HOST": ollama.url}, lambda p: p.unload(ollama.model))
        assert listed().loaded is None
    assert before.available
    assert before.calls in ("native", "envelope")
    assert before.disk
    assert after.loaded.window
    assert after.loaded.size


def test_a_model_that_is_not_there(ollama: Place, tmp_path: Path) -> None:
    """The command that gets it is in the remedy, and what is there instead, which then answers."""
    with ollama.desk(tmp_path) as session:
        session.agent.models()
        told = session.ask("Hello?", "ollama:no-such-model:1b", search="off")
        assert told.error is not None
        assert told.error["code"] == "unknown_model"
        assert "`ollama pull no-such-model:1b`, or pick one that is" in told.error["remedy"]
        assert session.ask("Say hello.", ollama.id, search="off").reason == "stop"


def test_history_with_calls_is_accepted(llama: Place) -> None:
    """A call, its result and an answer of before, with and without tools on offer."""
    history = [
        Message("user", "Note 07:40."),
        Message("assistant", "", tool_calls=(ToolCall("call_1", "note", {"text": "07:40"}),)),
        Message("tool", "noted", tool_call_id="call_1"),
        Message("assistant", "It is noted."),
        Message("user", "Say hello."),
    ]
    more = {"model": llama.model, "max_output_tokens": 20}
    requests = [CHAT.request(*history, tools=tools, **more) for tools in ((NOTE,), ())]

    async def ask(provider: Any) -> list[Any]:
        return [[event async for event in provider.stream(each)][-1] for each in requests]

    for end in using("openai-chat", {llama.setting: llama.url}, ask):
        assert isinstance(end, Finished)
        assert end.usage.output_tokens


def test_a_long_chat_goes_on(llama: Place, tmp_path: Path) -> None:
    """Longer than the window: no request is refused, older turns become a summary."""
    with llama.desk(tmp_path) as session:
        session.agent.models()
        for turn in range(6):
            told = session.ask(f"Turn {turn}. {LONG}Say one word.", llama.id, search="off")
            assert told.error is None or told.error["code"] == "answer_cut", (turn, told.error)
        made = [e.data for e in session.events if e.type == "summary"]
        said = [e.data for e in session.events if e.type == "user_message"]
    assert made[0]["text"]
    assert sum(len(each["text"]) for each in said) // 4 > 1.5 * WINDOW


def test_a_stop_frees_the_server(llama: Place, tmp_path: Path) -> None:
    """A long answer that is stopped does not hold up the next one, which may search."""
    with llama.desk(tmp_path) as session:
        events = session.agent.stream("Count to a thousand.", model=llama.id, search="off")
        for event in events:
            if event.type == "text_delta":
                break
        events.close()  # type: ignore[attr-defined]
        told = session.ask("When does the ferry leave?", llama.id)
    assert told.reason in ("stop", "limit", "incomplete"), told.error
    assert "<tool_call>" not in told.text


async def test_a_prompt_is_not_cut(ollama: Place) -> None:
    """The server refuses what does not fit, and the refusal is understood."""
    env = {"OLLAMA_HOST": ollama.url, "OLLAMA_CONTEXT_LENGTH": str(WINDOW)}
    request = OLLAMA.request(Message("user", "ferry " * 6000), model=ollama.model)
    async with aclosing(Transport()) as transport:
        http = HttpProvider(OllamaCodec(read_config(env)), transport)
        with pytest.raises(ProviderError) as caught:
            await anext(http.stream(request))
    assert caught.value.code == "context_too_long", caught.value
