"""OpenAI: what is sent, that no history can be refused, and how answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.types import (
    Message,
    NativeSearch,
    ProviderData,
    ToolCall,
)
from tests.agent.providers.vendors import FERRY, OPENAI, USER, results
from tests.rules_openai import check_items as check
from tests.tables import each_row

MODEL, CODEC = OPENAI.model, OPENAI.codec
ask, stream_of, decode, finished = OPENAI.ask, OPENAI.stream_of, OPENAI.decode, OPENAI.finished


def events_of(*events: Mapping[str, Any]) -> bytes:
    return OPENAI.wire(events)


def completed(output: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "response.completed",
        "response": {"status": "completed", "output": output, **more},
    }


# --- requests ---


def test_the_search_tool() -> None:
    """Every choice of the user is in the tool, and the location is never left to a default."""
    search = NativeSearch(("a.example", "b.example"), ("c.example",), "DK", 3)
    sent = ask(native_search=search)
    assert sent["tools"] == [
        {
            "type": "web_search",
            "filters": {
                "allowed_domains": ["a.example", "b.example"],
                "blocked_domains": ["c.example"],
            },
            "user_location": {"type": "approximate", "country": "DK"},
        }
    ]
    assert sent["max_tool_calls"] == 3
    assert "web_search_call.action.sources" in sent["include"]
    plain = ask(native_search=NativeSearch())
    assert plain["tools"] == [{"type": "web_search", "user_location": {"type": "approximate"}}]


@pytest.mark.parametrize(
    ("model", "included"),
    [("gpt-6-luna", True), ("o4-mini", True), ("gpt-4.1", False), ("x", False)],
)
def test_reasoning_is_asked_for_where_it_exists(model: str, included: bool) -> None:
    """A model without reasoning refuses the request that asks for it."""
    include = ask(model=model, native_search=NativeSearch())["include"]
    assert ("reasoning.encrypted_content" in include) == included


# --- histories ---


def blocks(*items: dict[str, Any]) -> ProviderData:
    return ProviderData("openai", MODEL, "1", items)


REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
TEXT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
}


def test_reasoning_that_nobody_could_look_up() -> None:
    """Without its encrypted content it is left out, together with the ids that hang on it."""
    bare = {**REASONING, "encrypted_content": None}
    answer = Message(
        "assistant",
        "Hello",
        tool_calls=(ToolCall("c1", "f", {}),),
        provider_data=blocks(bare, TEXT, CALL),
    )
    sent = ask(answer, *results(answer))["input"]
    check(sent)
    assert sent[0] == {"role": "assistant", "content": "Hello"}
    assert "id" not in sent[1]


def test_reasoning_without_a_successor() -> None:
    """It is not sent back."""
    lonely = Message("assistant", "", provider_data=blocks(REASONING, REASONING))
    assert ask(USER, lonely, USER)["input"] == [{"role": "user", "content": USER.content}] * 2


# --- answers ---


def test_deltas_that_were_lost_or_sent_twice() -> None:
    """The finished item fills in what did not stream; a repeated event is not repeated text."""

    def delta(number: int, text: str) -> dict[str, Any]:
        place = {"output_index": 0, "content_index": 0, "sequence_number": number}
        return {"type": "response.output_text.delta", "delta": text, **place}

    done = {"type": "response.output_item.done", "output_index": 0, "item": TEXT}
    created = {"type": "response.created", "response": {}, "sequence_number": 0}
    deltas = delta(1, "He"), delta(1, "He"), delta(2, "l")
    data = events_of(created, *deltas, done, done, completed([TEXT]))
    assert finished(data).message.content == "Hello"
    assert finished(events_of(done, completed())).message.content == "Hello"
    assert finished(events_of(completed([TEXT]))).message.content == "Hello"


@each_row("count", [2, 3, 7])
@each_row("number", [None, 0, 5])
def test_servers_that_do_not_number_events(count: int, number: int | None) -> None:
    """Where all numbers are the same, or none are given, equal events are not repetitions."""
    place = {"output_index": 0, "content_index": 0, "sequence_number": number}
    if number is None:
        del place["sequence_number"]
    delta = {"type": "response.output_text.delta", "delta": "ha", **place}
    data = events_of(*[delta] * count, {**delta, "delta": "!"}, completed())
    assert finished(data).message.content == "ha" * count + "!"


# --- the provider ---


def test_function_tools_are_flat_and_not_rewritten() -> None:
    """`strict` is always said: true only where the schema can be enforced as it is."""
    safe = {
        "type": "object",
        "properties": {"day": {"type": "string"}},
        "required": ["day"],
        "additionalProperties": False,
    }
    sent = ask(tools=(FERRY, FERRY._replace(name="b", parameters=safe)))
    assert [(t["type"], t["name"], t["strict"]) for t in sent["tools"]] == [
        ("function", "ferry_times", False),
        ("function", "b", True),
    ]
    assert sent["tools"][0]["parameters"] == FERRY.parameters
    assert not is_strict({**safe, "required": []})
    assert not is_strict({**safe, "properties": {"day": {"type": "string", "format": "date"}}})
