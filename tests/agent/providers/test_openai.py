"""OpenAI: what is sent, that no history can be refused, and how answers are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent import providers
from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.calls.schema import is_strict
from searchloop.agent.errors import (
    ConfigError,
    IncompleteError,
    NativeSearchRejected,
    ProviderError,
)
from searchloop.agent.providers.openai import MODELS, ResponsesCodec, create
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    ModelInfo,
    NativeSearch,
    PageOpened,
    ProviderData,
    Request,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolSpec,
)
from tests.fakes import FakeServer, Reply, json_reply
from tests.rules_openai import check_items as check
from tests.tables import each_row

OURS = Path(__file__).resolve().parents[2] / "recordings" / "openai"
LARGE = Path(__file__).resolve().parents[4] / "shared" / "recordings" / "openai_responses"
KEY = "sk-canary-0123456789abcdef"
MODEL = "gpt-6-luna"
CODEC = ResponsesCodec(KEY)
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
USER = Message("user", "When is high water?")


def body(request: Request) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(CODEC.encode(request))
    return sent


def ask(*messages: Message, model: str = MODEL, **more: Any) -> dict[str, Any]:
    """The body of a request with these messages."""
    return body(Request(model, messages or (USER,), **more))


def stream_of(name: str, number: int = 0) -> bytes:
    exchanges = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"]
    answer = exchanges[number]["response"]
    return (answer.get("text") or json.dumps(answer["body"])).encode()


def decode(data: bytes, content_type: str = "text/event-stream") -> list[StreamEvent]:
    decoder = CODEC.decoder(Request(MODEL, ()), content_type)
    events = list(decoder.feed(data))
    return events + list(decoder.close())


def finished(data: bytes, content_type: str = "text/event-stream") -> Finished:
    last = decode(data, content_type)[-1]
    assert isinstance(last, Finished)
    return last


def events_of(*events: Mapping[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def completed(output: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "response.completed",
        "response": {"status": "completed", "output": output, **more},
    }


# --- requests ---


def test_a_plain_request() -> None:
    """Stateless and streamed; nothing of searching or tools when neither is on."""
    sent = ask(system="Be brief.", session_id="s1")
    assert sent["model"] == MODEL
    assert (sent["store"], sent["stream"]) == (False, True)
    assert sent["stream_options"] == {"include_obfuscation": False}
    assert sent["instructions"] == "Be brief."
    assert sent["prompt_cache_key"] == "s1"
    assert sent["input"] == [{"role": "user", "content": USER.content}]
    assert not {"tools", "tool_choice", "reasoning", "temperature"} & set(sent)
    assert "web_search" not in json.dumps(sent)


def test_the_search_tool() -> None:
    """Every choice of the user is in the tool, and the location is never left to a default."""
    search = NativeSearch(
        ("https://a.example/x", "b.example"), ("c.example",), "low", "DK", False, 3
    )
    sent = ask(native_search=search)
    assert sent["tools"] == [
        {
            "type": "web_search",
            "filters": {
                "allowed_domains": ["a.example", "b.example"],
                "blocked_domains": ["c.example"],
            },
            "search_context_size": "low",
            "user_location": {"type": "approximate", "country": "DK"},
            "external_web_access": False,
        }
    ]
    assert sent["max_tool_calls"] == 3
    assert "web_search_call.action.sources" in sent["include"]
    plain = ask(native_search=NativeSearch())
    assert plain["tools"] == [{"type": "web_search", "user_location": {"type": "approximate"}}]


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


def test_an_answer_without_further_calls() -> None:
    """The tools stay listed, and none may be called; without tools nothing is said of them."""
    sent = ask(tools=(FERRY,), native_search=NativeSearch(), answer_now=True)
    assert len(sent["tools"]) == 2
    assert sent["tool_choice"] == "none"
    assert "tool_choice" not in ask(answer_now=True)
    assert ask(max_output_tokens=77)["max_output_tokens"] == 77


@pytest.mark.parametrize(
    ("model", "included"),
    [("gpt-6-luna", True), ("o4-mini", True), ("gpt-4.1", False), ("x", False)],
)
def test_reasoning_is_asked_for_where_it_exists(model: str, included: bool) -> None:
    """A model without reasoning refuses the request that asks for it."""
    include = ask(model=model, native_search=NativeSearch())["include"]
    assert ("reasoning.encrypted_content" in include) == included


def test_broken_characters_can_be_sent() -> None:
    """Half a surrogate pair from a page does not stop the conversation."""
    assert ask(Message("user", "a\ud83d b"))["input"][0]["content"] == "a? b"


@pytest.mark.parametrize("base", ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/"])
def test_the_base_url_is_used_as_given(base: str) -> None:
    """With or without a slash at its end; without a key nothing is authorized."""
    codec = ResponsesCodec("", base)
    assert codec.url(Request(MODEL, ())) == "http://127.0.0.1:9/v1/responses"
    assert codec.headers() == {}
    assert KEY not in repr(CODEC)


# --- histories ---


def results(message: Message) -> list[Message]:
    return [
        Message("tool", "07:40", tool_call_id=call.id, tool_name=call.name)
        for call in message.tool_calls
    ]


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


def test_a_search_after_the_switch_went_off() -> None:
    """The words stay, and nothing in the request speaks of searching."""
    answer = finished(stream_of("web_search_stream")).message
    sent = ask(USER, answer, USER)
    assert "web_search" not in json.dumps(sent)
    assert [item.get("role") for item in sent["input"]] == ["user", "assistant", "user"]
    assert sent["input"][1]["content"] == answer.content
    check(sent["input"], searching=False)


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


def test_another_model_reads_plain_text() -> None:
    """Opaque items go to the model that made them only."""
    answer = finished(stream_of("function_calls_parallel_stream")).message
    sent = ask(USER, answer, *results(answer), model="gpt-5.5")["input"]
    check(sent)
    assert "encrypted_content" not in json.dumps(sent)
    assert sent[1] == {"role": "assistant", "content": answer.content}
    assert json.loads(sent[3]["arguments"]) == {"day": "Sunday – søndag"}


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


def test_a_call_that_never_got_its_result() -> None:
    """It is answered for the user; a result without a call becomes text; an error says so."""
    call = Message("assistant", "", tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})))
    failed = Message("tool", "No such file", tool_call_id="b", is_error=True)
    stray = Message("tool", "42", tool_call_id="z", tool_name="calculate")
    sent = ask(call, failed, USER, stray)["input"]
    check(sent)
    outputs = {i["call_id"]: i["output"] for i in sent if "output" in i}
    assert outputs["b"] == "Error: No such file"
    assert "interrupted" in outputs["a"]
    assert "42" in sent[-1]["content"]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [('"{\\"n\\": 1}"', {"n": 1}), ('{"n": 1}', {"n": 1}), ('{"n": ', {}), ("", {}), ("[1]", {})],
)
def test_arguments_go_back_as_one_object(arguments: str, sent: dict[str, Any]) -> None:
    """Servers of this API parse what they get back: an object, never one inside a string."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f"}
    data = completed([{**call, "arguments": arguments, "status": "completed"}])
    message = finished(events_of(data)).message
    back = ask(USER, message, *results(message))["input"][1]
    assert json.loads(back["arguments"]) == sent


def test_ids_and_names_of_other_makers() -> None:
    """What would break the rules for names here is made to fit, the same way on both sides."""
    call = Message("assistant", "", tool_calls=(ToolCall("x" * 90, "functions.lookup", {"a": 1}),))
    sent = ask(call, Message("tool", "", tool_call_id="x" * 90))["input"]
    check(sent)
    assert sent[0]["name"] == "functions_lookup"
    assert sent[1]["output"]


ANSWERS = [
    finished(stream_of(name)).message
    for name in (
        *("web_search_stream", "function_calls_parallel_stream", "refusal_stream"),
        *("incomplete_null_output_stream", "null_output_two_messages_stream"),
        *("leaked_marks_stream", "failed_search_unknown_item_stream"),
    )
]
ANSWERS += [
    Message("assistant", "from elsewhere", provider_data=ProviderData("other", "m", "1", ({},))),
    Message("assistant", "", tool_calls=(ToolCall("toolu_1", "f", {"x": [1]}),)),
    Message("assistant", "", provider_data=blocks(REASONING)),
]


@given(
    st.lists(
        st.tuples(st.sampled_from(ANSWERS), st.sampled_from(["answered", "stopped", "stray"])),
        max_size=6,
    ),
    st.sampled_from([MODEL, "gpt-4.1", "o3"]),
    st.booleans(),
)
def test_no_history_is_refused(
    turns: list[tuple[Message, str]], model: str, searching: bool
) -> None:
    """Any mix of makers, models, stops and lost results gives an input that keeps the rules."""
    messages = []
    for number, (answer, outcome) in enumerate(turns):
        calls = tuple(replace(c, id=f"{c.id}-{number}") for c in answer.tool_calls)
        data = answer.provider_data
        if data is not None:
            items = tuple(
                {**b, "call_id": f"{b['call_id']}-{number}"} if b.get("call_id") else b
                for b in data.blocks
            )
            data = data._replace(blocks=items)
        answer = replace(answer, tool_calls=calls, provider_data=data, encoded={})
        messages += [USER, answer]
        messages += results(answer) if outcome == "answered" else []
        if outcome == "stray":
            messages.append(Message("tool", "late", tool_call_id="nobody"))
    sent = ask(*messages, USER, model=model, native_search=NativeSearch() if searching else None)
    check(sent["input"], searching=searching)


@pytest.mark.parametrize("search", [None, NativeSearch()])
def test_each_request_extends_the_one_before(search: NativeSearch | None) -> None:
    """Prompt caches hit: byte for byte, a step adds to the end; old messages are not redone."""
    messages: list[Message] = []
    before = b""
    for answer in ANSWERS:
        messages += [Message("user", "next"), replace(answer, encoded={})]
        messages += results(answer)
        data = CODEC.encode(Request(MODEL, tuple(messages), "S", (FERRY,), search, session_id="s"))
        assert data.startswith(before)
        before = data.removesuffix(b"]}")
        messages[-1].encoded.update(dict.fromkeys(messages[-1].encoded, b'{"memo":1}'))
        again = CODEC.encode(Request(MODEL, tuple(messages), "S", (FERRY,), search, session_id="s"))
        assert b'{"memo":1}' in again
        messages[-1].encoded.clear()


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


def test_stream_and_plain_body_agree() -> None:
    """The same response without streaming gives the same message."""
    data = stream_of("web_search_stream")
    streamed = finished(data)
    response = json.loads(data.split(b"data: ")[-1])["response"]
    for kind in ("application/json", ""):
        whole = finished(json.dumps(response).encode(), kind)
        assert repr(whole) == repr(streamed)


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


def test_a_filtered_answer_is_a_refusal() -> None:
    """A content filter ends like a refusal, with what was said until then."""
    details = {"reason": "content_filter"}
    event = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": details, "output": [TEXT]},
    }
    last = finished(events_of(event))
    assert (last.stop_reason, last.message.content) == ("refusal", "Hello")


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


def test_parts_that_arrive_mixed_are_shown_in_turn() -> None:
    """What was shown is a beginning of the final text, whatever the order of the deltas."""

    def delta(index: int, text: str) -> dict[str, Any]:
        return {
            "type": "response.output_text.delta",
            "output_index": index,
            "content_index": 0,
            "delta": text,
        }

    data = events_of(delta(2, "b1"), delta(0, "a1"), delta(2, "b2"), delta(0, "a2"), completed())
    events = decode(data)
    shown = "".join(e.text for e in events if isinstance(e, TextDelta))
    last = events[-1]
    assert isinstance(last, Finished)
    assert shown == last.message.content == "b1b2\n\na1a2"


@each_row(
    ("text", "arguments", "problem"),
    [
        ("", {}, None),
        (None, {}, None),
        ('{"a": 1}', {"a": 1}, None),
        ('{"a": ', {}, "not valid JSON"),
        ("[1]", {}, "not an array"),
        ('{"a": NaN}', {}, "NaN"),
        ("[" * 100_000, {}, "not valid JSON"),
    ],
)
def test_arguments(text: Any, arguments: dict[str, Any], problem: str | None) -> None:
    """Arguments are an object, or the call says what is wrong with them."""
    found, wrong = read_arguments(text)
    assert found == arguments
    assert (wrong is None) if problem is None else (problem in (wrong or ""))


@pytest.mark.parametrize("name", ["function_calls_parallel_stream", "web_search_stream"])
def test_cut_after_every_byte(name: str) -> None:
    """Without its last event a stream is never an answer, wherever it broke off."""
    data = stream_of(name)
    final = data.rindex(b"\n\n")
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    for at in range(final):
        assert not any(isinstance(e, Finished) for e in decoder.feed(data[at : at + 1]))
    for end in (0, 1, 40, final // 2, final - 200, final - 1):
        with pytest.raises(IncompleteError) as caught:
            decode(data[:end])
        assert caught.value.retryable
    assert isinstance(decode(data[:final])[-1], Finished)


@pytest.mark.parametrize(
    "data", [b"", b'{"status": "queued", "output": []}', b'{"status": "comp', b"[]", b"<html>"]
)
def test_bodies_that_are_no_answers(data: bytes) -> None:
    """An empty, half or unfinished body is incomplete, not an empty answer."""
    with pytest.raises(IncompleteError):
        decode(data, "application/json")


@pytest.mark.parametrize(
    "event", [b"data: {nonsense\n\n", b"data: 3\n\n", b'data: {"type":"response.completed"}\n\n']
)
def test_garbage_in_the_stream(event: bytes) -> None:
    """An event that cannot be read is one clear error, after the text that came before it."""
    text = events_of({"type": "response.output_text.delta", "delta": "Hi"})
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    events = iter(decoder.feed(text + event))
    assert next(events) == TextDelta("Hi")
    with pytest.raises(ProviderError) as caught:
        next(events)
    assert caught.value.code == "bad_response"


# --- errors ---


@each_row(
    ("status", "error", "code", "retryable", "says"),
    [
        (401, {"message": KEY, "code": "invalid_api_key"}, "unauthorized", False, "API_KEY"),
        (403, {"message": "Country not supported"}, "forbidden", False, ""),
        (404, {"code": "model_not_found"}, "model_not_found", False, "searchloop models"),
        (404, {}, "bad_url", False, "OPENAI_BASE_URL"),
        (429, {"code": "rate_limit_exceeded"}, "rate_limited", True, ""),
        (429, {"type": "insufficient_quota"}, "quota", False, "credit"),
        (429, {}, "rate_limited", True, ""),
        (400, {"code": "context_length_exceeded"}, "context_length", False, "new session"),
        (400, {"message": "Unsupported value", "param": "x"}, "bad_request", False, ""),
        (408, {}, "server_error", True, ""),
        (500, {"code": "server_error"}, "server_error", True, ""),
        (503, {"code": "server_is_overloaded"}, "server_error", True, ""),
    ],
)  # fmt: skip
def test_what_a_status_means(
    status: int, error: dict[str, Any], code: str, retryable: bool, says: str
) -> None:
    """The vendor's cause in our words, who must act, and whether a retry helps; never a key."""
    found = CODEC.error(status, {}, json.dumps({"error": error}).encode() if error else b"<html>")
    assert (found.code, found.retryable, found.status) == (code, retryable, status)
    assert says in found.remedy
    assert found.remedy
    assert KEY not in str(found.as_dict())


def test_a_refused_search_tool() -> None:
    """It is told apart, so that the loop can fall back to its own search once."""
    for message in (
        "Hosted tool 'web_search' is not supported with gpt-4.1-nano.",
        "The following tools cannot be used with reasoning.effort 'minimal': web_search.",
    ):
        body = json.dumps({"error": {"message": message, "param": "tools"}}).encode()
        assert isinstance(CODEC.error(400, {}, body), NativeSearchRejected)


def test_the_server_decides_about_retries() -> None:
    """`x-should-retry` wins over the status, but money never comes back by waiting."""
    body = json.dumps({"error": {"code": "insufficient_quota"}}).encode()
    assert CODEC.error(400, {"x-should-retry": "true"}, b"{}").retryable
    assert not CODEC.error(500, {"x-should-retry": "false"}, b"{}").retryable
    assert not CODEC.error(429, {"x-should-retry": "true"}, body).retryable
    assert CODEC.error(429, {"retry-after-ms": "1500"}, b"{}").retry_after == 1.5


def test_keys_are_not_quoted() -> None:
    """A vendor's message that repeats a key, ours or another, is cleaned and short."""
    message = f"You sent {KEY} and Bearer abc.def and sk-proj-abcdefgh. " + "x" * 1000
    found = CODEC.error(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert "abc" not in found.message
    assert len(found.message) < 400


@pytest.mark.parametrize("name", ["failed_rate_limit_stream", "error_event_stream"])
def test_errors_inside_a_stream(name: str) -> None:
    """They mean the same as the status would have, and may be retried alike."""
    with pytest.raises(ProviderError) as caught:
        decode(stream_of(name))
    assert caught.value.retryable
    assert caught.value.code in ("rate_limited", "server_error")


# --- the provider ---


def provider(**env: str) -> Any:
    return create(Environment({"environment": env}), Transport())


def listed(**env: str) -> list[ModelInfo]:
    async def main() -> list[ModelInfo]:
        transport = Transport()
        models = await create(Environment({"environment": env}), transport).models()
        await transport.aclose()
        return models

    return asyncio.run(main())


def test_what_models_can_do() -> None:
    """By the longest known beginning of the name; strangers get safe defaults."""
    assert not MODELS.of("gpt-4.1-nano").native_search
    assert MODELS.of("gpt-4.1-mini-2025-04-14").native_search
    assert MODELS.of("ft:gpt-4o-mini:org::1").context == 128_000
    assert MODELS.of("gpt-6.1-terra").thinking
    assert not MODELS.of("o3-mini").native_search
    stranger = MODELS.of("stranger-1")
    assert (stranger.tools, stranger.native_search, stranger.thinking) == (True, True, False)


def test_a_missing_key() -> None:
    """Said before anything is sent, unless the server is one of the user's own."""
    with pytest.raises(ConfigError) as caught:
        provider().check(MODEL)
    assert "OPENAI_API_KEY" in caught.value.remedy
    provider(OPENAI_BASE_URL="http://127.0.0.1:1/v1").check(MODEL)
    provider(OPENAI_API_KEY=KEY).check(MODEL)


def test_models_without_a_key() -> None:
    """The picker still shows them, with what is missing."""
    models = listed()
    assert models
    assert not any(model.available for model in models)
    assert {model.missing for model in models} == {"OPENAI_API_KEY"}
    assert all(model.id.startswith("openai:") for model in models)


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        (json_reply({"data": [{"id": "local-1"}, {"id": "local-2"}]}), ["local-2", "local-1"]),
        (Reply([b"<html>"], 500), None),
        (json_reply([1]), None),
        (json_reply({"data": [1]}), None),
    ],
)
def test_models_of_a_server(reply: Reply, names: list[str] | None) -> None:
    """A server that lists its models is believed; one that cannot never breaks the picker."""
    with FakeServer([reply]) as server:
        models = listed(OPENAI_BASE_URL=f"{server.url}/v1")
    assert server.requests[0].path == "/v1/models"
    assert [m.title for m in models] == names if names else len(models) > 5


def test_a_question_over_the_wire() -> None:
    """Key in the header, events out, one retry after a rate limit that nobody saw."""
    data = stream_of("web_search_stream")
    busy = json_reply({"error": {"code": "rate_limit_exceeded"}}, 429, {"retry-after-ms": "1"})
    with FakeServer([busy, Reply([data[:700], data[700:]])]) as server:
        env = Environment(
            {"environment": {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1/"}}
        )

        async def main() -> list[StreamEvent]:
            transport = Transport()
            chosen = providers.load("openai", env, transport)
            request = Request(MODEL, (USER,), native_search=NativeSearch())
            events = [event async for event in chosen.stream(request)]
            await transport.aclose()
            return events

        last = asyncio.run(main())[-1]
    assert isinstance(last, Finished)
    assert len(server.requests) == 2
    assert server.requests[1].path == "/v1/responses"
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[1].json["tools"][0]["type"] == "web_search"


def test_a_server_that_is_not_there() -> None:
    """The remedy names the setting that points to it."""
    env = Environment({"environment": {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}})

    async def main() -> None:
        transport = Transport()
        try:
            async for _ in create(env, transport).stream(Request(MODEL, (USER,))):
                pass
        finally:
            await transport.aclose()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(main())
    assert caught.value.code == "unreachable"
    assert "OPENAI_BASE_URL" in caught.value.remedy


def recorded_requests() -> list[Any]:
    """Conversations of the large set in which a client sent our kind of items back."""
    found = []
    for path in sorted(LARGE.glob("*.json")):
        exchanges = json.loads(path.read_text("utf-8"))["exchanges"]
        whole = [e for e in exchanges if (e["response"].get("status") or 500) == 200]
        if len(whole) > 1:
            found.append(pytest.param(whole, id=path.stem))
    return found


@each_row("exchanges", recorded_requests())
def test_recorded_conversations_can_go_on(exchanges: list[dict[str, Any]]) -> None:
    """What real runs answered is sent back within the rules, searching or not."""
    messages: list[Message] = []
    for exchange in exchanges:
        answer = exchange["response"]
        data = (answer.get("text") or json.dumps(answer.get("body"))).encode()
        kind = "text/event-stream" if answer.get("text") else "application/json"
        try:
            message = finished(data, kind).message
        except IncompleteError:
            continue  # a background answer that was polled before it was ready
        messages += [USER, message, *results(message)]
        for search in (None, NativeSearch()):
            check(ask(*messages, native_search=search)["input"], searching=search is not None)
