"""The same checks against the fake Ollama, always, and against a real one when it is asked for.

    OLLAMA_HOST=127.0.0.1:11434 OLLAMA_TEST_MODEL=qwen3:4b python -m pytest -m ollama tests/agent

Without OLLAMA_TEST_MODEL the smallest installed chat model is asked. The server has to be on this
machine, or look like it (`ssh -L 11434:127.0.0.1:11434 gpu-box`): tests leave it for nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import HttpProvider, load
from searchloop.agent.providers.ollama.config import parse_address, read_config
from searchloop.agent.providers.ollama.ladder import RUNGS
from searchloop.agent.providers.ollama.models import full_name
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Message, Request
from tests.agent.providers.local_desk import desk, envelope
from tests.agent.providers.vendors import OLLAMA
from tests.fake_ollama import Answer, FakeOllama, Model, call, say, think

QUESTION = "Search the web: when does the ferry to Lindhaug leave, and from which pier?"
MARKS = ("<tool_call", "<|", '{"tool"', '{"name"', "[TOOL_CALLS]")


@dataclass(frozen=True)
class Place:
    """A server and the model that is asked there."""

    url: str
    model: str

    @property
    def id(self) -> str:
        """The model as users write it."""
        return f"ollama:{self.model}"


def obliging(body: Any) -> Answer:
    """What a model does that follows its instructions: it searches once, then it answers."""
    texts = [str(message.get("content")) for message in body["messages"]]
    asked = max(i for i, m in enumerate(body["messages"]) if m["role"] == "user")
    found = any("[1]" in text for text in texts[1:])
    if body.get("format"):
        return envelope("answer") if found else envelope("web_search", query="ferry Lindhaug")
    if body.get("tools") and not found:
        return call("web_search", {"query": "ferry Lindhaug"}, "call_1")
    words = "It leaves at 07:40 from pier four [1]." if found else f"Hello {asked}."
    return say(words) if body.get("think") is False else think("Let me see.", words)


def smallest(url: str) -> str:
    """The smallest chat model that is installed there."""
    there = [model for model in OLLAMA.listed(url) if model.available and model.local]
    if not there:
        pytest.fail(
            f"there is no chat model at {url}: start Ollama and get one, or set OLLAMA_HOST"
        )
    return min(there, key=lambda m: m.disk or 0).id.partition(":")[2]


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.ollama)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A fake server with an obliging model, or the tester's own."""
    if request.param == "real":
        url = parse_address(os.environ.get("OLLAMA_HOST", "")).base
        yield Place(url, os.environ.get("OLLAMA_TEST_MODEL") or smallest(url))
        return
    model = Model("qwen3:4b", ("completion", "tools", "thinking"))
    with FakeOllama([model], obliging) as server:
        yield Place(server.url, model.name)


def test_the_server_tells_what_it_has(place: Place, tmp_path: Path) -> None:
    """The model is listed with its size, its abilities and how its calls arrive."""
    with desk(place.url, tmp_path) as session:
        listed = {m.id: m for m in session.agent.models()}
    model = listed[f"ollama:{full_name(place.model)}"]
    assert model.available
    assert model.calls in RUNGS
    assert model.disk


def test_an_answer_has_its_numbers(place: Place, tmp_path: Path) -> None:
    """Text, counts, times and speed; afterwards the model is in memory with a window."""
    with desk(place.url, tmp_path) as session:
        told = session.ask("Say hello in one short sentence.", place.id, search="off")
        assert (told.reason, told.error) == ("stop", None)
        assert told.text.strip()
        assert told.usage.input_tokens
        assert told.usage.output_tokens
        numbers = session.events[-1].data["performance"]
        assert numbers["prompt_ms"] > 0
        assert numbers["tokens_per_second"] > 0
        assert told.usage.input_tokens / 3 < numbers["prompt_estimate"]
        assert numbers["prompt_estimate"] < told.usage.input_tokens * 3
        loaded = {m.id: m.loaded for m in session.agent.models()}
    now = loaded[f"ollama:{full_name(place.model)}"]
    assert now is not None
    assert now.window
    assert now.size


def test_it_searches_and_answers(place: Place, tmp_path: Path) -> None:
    """Whatever rung it stands on, it searches, and nothing of a call is shown."""
    with desk(place.url, tmp_path) as session:
        told = session.ask(QUESTION, place.id)
    assert (told.reason, told.error) == ("stop", None)
    assert told.usage.searches
    assert "07:40" in told.text
    assert not any(mark in told.text for mark in MARKS)


@pytest.mark.parametrize("rung", ["envelope", "search-first"])
def test_any_model_searches_on_the_lower_rungs(place: Place, tmp_path: Path, rung: str) -> None:
    """Told that it cannot call, it searches by a form, or is searched for."""
    known = {f"{place.url} {full_name(place.model)}": {"calls": rung, "digest": ""}}
    (tmp_path / "models.json").write_text(json.dumps(known), "utf-8")
    with desk(place.url, tmp_path) as session:
        told = session.ask(QUESTION, place.id)
        used = [e.data["details"].get("calls") for e in session.events if e.type == "message"]
    assert (told.reason, told.error) == ("stop", None)
    assert told.usage.searches
    assert "07:40" in told.text
    assert set(used) <= {rung, "search-first"}


def test_a_second_turn_begins_like_the_first(place: Place, tmp_path: Path) -> None:
    """The request only grows, so that the server's cache of the prompt is good."""
    with desk(place.url, tmp_path) as session:
        session.ask("Say one short sentence about ferries.", place.id, search="off")
        session.ask("And one about trams.", place.id, search="off")
        assert session.events[-1].data["performance"]["prefix_reused"] == 1.0


def test_a_prompt_is_not_cut(place: Place) -> None:
    """The server refuses what does not fit, and the refusal is understood."""
    codec = OllamaCodec(read_config({"OLLAMA_HOST": place.url, "OLLAMA_CONTEXT_LENGTH": "2048"}))
    request = Request(place.model, (Message("user", "ferry " * 6000),), max_output_tokens=1)

    async def ask() -> None:
        transport = Transport()
        try:
            async for _ in HttpProvider(codec, transport).stream(request):
                pass
        finally:
            await transport.aclose()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(ask())
    assert caught.value.code == "context_too_long", caught.value


def test_a_question_that_does_not_fit_is_told(place: Place, tmp_path: Path) -> None:
    """One clear error, and the session goes on."""
    with desk(place.url, tmp_path, OLLAMA_CONTEXT_LENGTH="2048") as session:
        told = session.ask("ferry " * 6000, place.id, search="off")
        assert told.error is not None
        assert told.error["code"] == "question_too_long"
        assert session.ask("Say hello.", place.id, search="off").reason == "stop"


def test_a_model_that_is_not_there(place: Place, tmp_path: Path) -> None:
    """The command that gets it is in the remedy, and what is there instead, which then answers."""
    with desk(place.url, tmp_path) as session:
        session.agent.models()
        told = session.ask("Hello?", "ollama:no-such-model:1b", search="off")
        assert told.error is not None
        assert told.error["code"] == "unknown_model"
        assert "`ollama pull no-such-model:1b`, or pick one that is" in told.error["remedy"]
        assert session.ask("Say hello.", place.id, search="off").reason == "stop"


def test_a_model_leaves_the_memory(place: Place, tmp_path: Path) -> None:
    """Unloaded, it is listed as not loaded."""

    async def unload() -> None:
        transport = Transport()
        try:
            provider: Any = load("ollama", {"OLLAMA_HOST": place.url}, transport)
            await provider.unload(place.model)
        finally:
            await transport.aclose()

    with desk(place.url, tmp_path) as session:
        session.ask("Say hello.", place.id, search="off")
        asyncio.run(unload())
        loaded = {m.id: m.loaded for m in session.agent.models()}
    assert loaded[f"ollama:{full_name(place.model)}"] is None
