"""Anthropic: what is sent, how answers are read, and a history that no server refuses."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Awaitable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from searchloop.agent.log.events import Event, messages_from
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.providers import Provider
from searchloop.agent.providers.anthropic import MessagesCodec
from searchloop.agent.providers.anthropic.request import MODELS
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import (
    Message,
    NativeSearch,
    ProviderData,
    Request,
    ToolResult,
)
from tests.agent.providers.vendors import ANTHROPIC, FERRY, NATIVE, USER, using
from tests.agent.scripted import Memory
from tests.fakes import FakeServer, Reply
from tests.rules_anthropic import check
from tests.tables import each_row

MODEL, CODEC = ANTHROPIC.model, ANTHROPIC.codec
ask, stream_of, finished = ANTHROPIC.ask, ANTHROPIC.stream_of, ANTHROPIC.finished


TABLE = files("searchloop.agent.providers.anthropic").joinpath("models.toml")
CLAUDES = tomllib.loads(TABLE.read_text("utf-8"))["models"]


# --- requests ---


@each_row("prefix", [name for name in CLAUDES if MODELS.of(name).search])
def test_every_version_of_the_search_tool(prefix: str) -> None:
    """Versions by model, as data; newer ones never through code, others' servers get the oldest."""
    request = Request(f"{prefix}-x", (USER,), native_search=NativeSearch())
    for codec in (CODEC, MessagesCodec("", "http://127.0.0.1:9")):
        sent = json.loads(codec.encode(request))
        check(sent)
        for tool in sent["tools"]:
            basic = tool["type"] in ("web_search_20250305", "web_fetch_20250910")
            assert basic or codec is CODEC
            assert (tool.get("allowed_callers") == ["direct"]) != basic


recorded = ANTHROPIC.recorded


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


# --- what is replayed ---


def test_thinking_stays_where_it_belongs() -> None:
    """Newer models bind it to what they were told; another toolset leaves it out, and only it."""
    answer = recorded("web_search_stream", native_search=NATIVE, system="S")
    same = ask(USER, answer, USER, native_search=NATIVE, system="S")["messages"][1]
    other = ask(USER, answer, USER, native_search=NATIVE, system="S2")["messages"][1]
    more = ask(USER, answer, USER, native_search=NATIVE, system="S", tools=(FERRY,))["messages"][1]
    assert kinds(same)[0] == "thinking"
    assert kinds(other) == kinds(more) == kinds(same)[1:]
    back = ask(USER, answer, USER, native_search=NATIVE, system="S")["messages"][1]
    assert back == same


# --- everything together ---


def test_a_long_step_is_marked() -> None:
    """The cache is found again behind an answer of many blocks; never more than four marks."""
    blocks = tuple({"type": "text", "text": f"{n} "} for n in range(30))
    long = Message("assistant", "…", provider_data=ProviderData("anthropic", MODEL, "1", blocks))
    told: dict[str, Any] = {"native_search": NATIVE, "tools": (FERRY,), "system": "S"}
    first = ask(USER, **told)
    assert ["cache_control" in tool for tool in first["tools"]] == [False, False, True]
    second = ask(USER, long, USER, **told)
    third = ask(USER, long, USER, replace(long, encoded={}), USER, **told)
    marks = [[i for i, m in enumerate(s["messages"]) if "cache_control" in json.dumps(m)]
             for s in (first, second, third)]  # fmt: skip
    assert marks == [[], [0], [2]]


def parts(name: str) -> list[Reply]:
    """The answers of a recording."""
    return [Reply(ANTHROPIC.stream_of(name, number)) for number in (0, 1)]


def turn(server: FakeServer, messages: list[Message]) -> tuple[Outcome, list[Event]]:
    """One searching turn with a tool, and what a log would keep of it."""

    async def run(arguments: Any, context: Any) -> ToolResult:
        return ToolResult(context.call_id, FERRY.name, "09:15")

    emit, tools = Memory(), Toolset([Tool(FERRY, run)], "ask", SourceTable())
    request = Request("claude-sonnet-5-5", (), "S", native_search=NATIVE)

    def main(provider: Provider) -> Awaitable[Outcome]:
        return run_agent_loop(messages, request, provider=provider, tools=tools, emit=emit)

    outcome = using("anthropic", ANTHROPIC.env(server.url), main)
    kept = ((kind, json.loads(json.dumps(data))) for kind, data in emit.events if kind.islower())
    return outcome, [Event(n, kind, data, 0.0) for n, (kind, data) in enumerate(kept)]


@pytest.mark.parametrize("name", ["pause_turn_stream", "search_and_call_stream"])
def test_an_answer_in_two_parts(name: str) -> None:
    """It goes on by itself; stored and read back, the transcript gives the same bytes."""
    messages = [Message("user", "When is high water?")]
    with FakeServer(parts(name)) as server:
        outcome, kept = turn(server, messages)
        first, second = server.requests
    for received in (first, second):
        check(received.json)
    assert second.body.startswith(first.body[: first.body.rindex(b'],"max_tokens"')])
    assert outcome.reason == "stop"
    assert outcome.message.citations
    stored = [Event(-1, "user_message", {"text": messages[0].content}, 0.0), *kept]
    again = messages_from(stored)
    assert len(again) == len(messages)
    again.append(Message("user", "And tomorrow?"))
    with FakeServer([parts("web_search_stream")[1]]) as server:
        turn(server, again)
        (third,) = server.requests
    check(third.json)
    assert third.body.startswith(second.body[: second.body.rindex(b'],"max_tokens"')])
