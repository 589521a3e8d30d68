"""OpenAI: what is sent, that no history can be refused, and how answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    PageOpened,
    ProviderData,
    SearchFinished,
    SearchStarted,
    TextDelta,
    ThinkingDelta,
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


def test_a_search_is_replayed_as_it_came() -> None:
    """Reasoning, searches and text in their order, without what the server does not take back."""
    answer = finished(stream_of("web_search_stream")).message
    sent = ask(USER, answer, USER, native_search=NativeSearch())["input"]
    check(sent)
    kinds = [item.get("type", item.get("role")) for item in sent]
    assert kinds == ["user", *["reasoning", "web_search_call"] * 3, "reasoning", "message", "user"]
    assert sent[1]["encrypted_content"] == "gAAA-whole-1=="
    assert sent[2]["action"] == {
        "type": "search",
        "queries": ["lindhøj tide table", "lindhøj high water today"],
        "query": "lindhøj tide table",
    }
    assert sent[8]["phase"] == "final_answer"
    assert len(sent[8]["content"][0]["annotations"]) == 3


def test_calls_are_replayed_with_their_reasoning() -> None:
    """Both calls, the comment before them, and a result for each, also while searching is off."""
    answer = finished(stream_of("function_calls_parallel_stream")).message
    sent = ask(USER, answer, *results(answer), tools=(FERRY,))["input"]
    check(sent)
    assert [item.get("type", item.get("role")) for item in sent] == [
        *("user", "reasoning", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
    ]
    assert sent[2]["phase"] == "commentary"


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


def test_an_answer_that_was_cut() -> None:
    """Unfinished items and reasoning without a successor are not sent back."""
    answer = finished(stream_of("incomplete_null_output_stream")).message
    check(ask(USER, answer, USER)["input"])
    lonely = Message("assistant", "", provider_data=blocks(REASONING, REASONING))
    assert ask(USER, lonely, USER)["input"] == [{"role": "user", "content": USER.content}] * 2


# --- answers ---


def test_a_searched_answer() -> None:
    """Searches, pages, text, numbered citations with their places, sources in order, counts."""
    *events, last = decode(stream_of("web_search_stream"))
    assert isinstance(last, Finished)
    message = last.message
    page = "https://tides.example/lindhoj"
    assert [e for e in events if not isinstance(e, TextDelta)] == [
        SearchStarted(""),
        SearchFinished("lindhøj tide table; lindhøj high water today", "ok", 3),
        SearchStarted(""),
        PageOpened(page),
    ]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.content
    first, second = message.citations
    assert (first.n, first.title, len(first.spans)) == (1, "Tide table of Lindhøj", 2)
    assert (second.n, second.url) == (2, "https://harbour.example/news?utm_source=openai")
    for citation in message.citations:
        for start, end in citation.spans:
            assert message.content[start:end].startswith("([")
            assert citation.url in message.content[start:end]
    assert [(s.url, s.state, s.n) for s in message.sources] == [
        (f"{page}?utm_source=openai", "cited", 1),
        ("https://harbour.example/news?utm_source=openai", "cited", 2),
    ]
    assert last.stop_reason == "stop"
    assert (last.usage.input_tokens, last.usage.cached_tokens) == (812, 256)
    assert (last.usage.output_tokens, last.usage.reasoning_tokens) == (95, 40)
    assert (last.usage.searches, last.usage.pages) == (1, 1)


def test_parallel_calls_and_phases() -> None:
    """Comment text, thinking with its sections, and both calls with parsed arguments."""
    events = decode(stream_of("function_calls_parallel_stream"))
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.message.content == "I will look up both days."
    assert last.message.thinking == "**Two days** to compare \n\nAsk for both at once "
    thought = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert thought == last.message.thinking
    assert last.message.tool_calls == (
        ToolCall("call_1", "ferry_times", {"day": "Saturday"}),
        ToolCall("call_2", "ferry_times", {"day": "Sunday – søndag"}),
    )
    assert last.stop_reason == "tool_calls"


def test_two_messages_are_two_paragraphs() -> None:
    """The joint is a delta of its own place, and a null output is rebuilt from the items."""
    events = decode(stream_of("null_output_two_messages_stream"))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (
        "First part.\n\nSecond part."
    )
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.message.provider_data is not None
    assert len(last.message.provider_data.blocks) == 3


@pytest.mark.parametrize(
    ("name", "reason", "text"),
    [
        ("refusal_stream", "refusal", "I cannot help with that."),
        ("incomplete_null_output_stream", "length", "The ferry leaves at seven and then it"),
    ],
)
def test_ends_that_are_not_answers(name: str, reason: str, text: str) -> None:
    """A refusal is shown as text; a cut answer keeps its text and loses its unfinished call."""
    last = finished(stream_of(name))
    assert (last.stop_reason, last.message.content) == (reason, text)
    assert last.message.tool_calls == ()


def test_failed_and_empty_searches_differ() -> None:
    """A failed search is not an empty one; unknown items pass and are kept for the next request."""
    *events, last = decode(stream_of("failed_search_unknown_item_stream"))
    statuses = [(e.status, e.results) for e in events if isinstance(e, SearchFinished)]
    assert statuses == [("error", None), ("empty", 0)]
    assert isinstance(last, Finished)
    assert last.message.tool_calls == (ToolCall("call_1", "now", {}),)
    assert last.message.provider_data is not None
    assert {"type": "quantum_call", "id": "zz_1"}.items() <= (
        last.message.provider_data.blocks[2].items()
    )


def test_reasoning_in_content_parts_is_no_answer() -> None:
    """Other servers number parts in their own ways, and end reasoning after the text."""
    events = decode(stream_of("reasoning_parts_stream"))
    message = finished(stream_of("reasoning_parts_stream")).message
    assert message.content == "High water is at 07:40."
    assert message.thinking == "The table says 07:40."
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == message.thinking
    assert message.provider_data is not None
    assert [b["type"] for b in message.provider_data.blocks] == ["reasoning", "message"]


def test_leaked_marks_are_gone() -> None:
    """The citation that a mark stood for covers the sentence before it."""
    message = finished(stream_of("leaked_marks_stream")).message
    assert message.content == (
        "The lighthouse is 31 m tall. It was built in 1897 by the harbour office."
    )
    (citation,) = message.citations
    (span,) = citation.spans
    assert message.content[slice(*span)] == "It was built in 1897"


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
