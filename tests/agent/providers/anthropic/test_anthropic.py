"""Anthropic: what is sent, how answers are read, and what its errors mean."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import (
    ConfigError,
    IncompleteError,
    NativeSearchRejected,
    ProviderError,
)
from searchloop.agent.providers.anthropic import MessagesCodec, create
from searchloop.agent.providers.anthropic.request import MODELS
from searchloop.agent.search.vendor_marks import page_date
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    ModelInfo,
    NativeSearch,
    PageOpened,
    Request,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolSpec,
)
from tests.fakes import FakeServer, Reply, json_reply, sse, sse_reply
from tests.rules_anthropic import check
from tests.tables import each_row

OURS = Path(__file__).resolve().parents[3] / "recordings" / "anthropic"
KEY = "sk-ant-canary-0123456789abcdef"
MODEL = "claude-sonnet-5-5"
TABLE = files("searchloop.agent.providers.anthropic").joinpath("models.toml")
CLAUDES = tomllib.loads(TABLE.read_text("utf-8"))["models"]
CODEC = MessagesCodec(KEY)
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
USER = Message("user", "When is high water?")
TIDES = "https://tides.example/lindhoj"
HARBOUR = "https://harbour.example/news?utm_source=feed"


def ask(*messages: Message, model: str = MODEL, **more: Any) -> dict[str, Any]:
    """The body of a request with these messages, which the vendor would take."""
    sent: dict[str, Any] = json.loads(CODEC.encode(Request(model, messages or (USER,), **more)))
    check(sent)
    return sent


def stream_of(name: str, number: int = 0) -> bytes:
    exchanges = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"]
    answer = exchanges[number]["response"]
    return (answer.get("text") or json.dumps(answer["body"])).encode()


def decode(
    data: bytes, content_type: str = "text/event-stream", *, before: tuple[Message, ...] = (USER,)
) -> list[StreamEvent]:
    decoder = CODEC.decoder(Request(MODEL, before), content_type)
    events = list(decoder.feed(data))
    return events + list(decoder.close())


def finished(data: bytes, content_type: str = "text/event-stream") -> Finished:
    last = decode(data, content_type)[-1]
    assert isinstance(last, Finished)
    return last


def events_of(*events: Mapping[str, Any]) -> bytes:
    return b"".join(map(sse, events))


START: dict[str, Any] = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
STOP: dict[str, Any] = {"type": "message_stop"}


def block(index: int, content: Mapping[str, Any], *deltas: Mapping[str, Any]) -> bytes:
    """One block with its deltas, from start to stop."""
    return events_of(
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    )


def text(words: str) -> dict[str, str]:
    return {"type": "text_delta", "text": words}


def end(reason: str | None, **usage: Any) -> bytes:
    return events_of(
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, STOP
    )


# --- requests ---


def test_a_plain_request() -> None:
    """Streamed, with the length that the API wants; nothing of tools when there are none."""
    sent = ask(system="Be brief.", session_id="s1")
    assert (sent["model"], sent["stream"], sent["max_tokens"]) == (MODEL, True, 32_000)
    assert [block["text"] for block in sent["system"]] == ["Be brief."]
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": USER.content}]}
    ]
    assert not {"tools", "tool_choice", "thinking", "temperature", "metadata"} & set(sent)
    assert "web_search" not in json.dumps(sent)
    assert ask(max_output_tokens=77)["max_tokens"] == 77
    assert "system" not in ask(system=" ")


def test_headers_and_addresses() -> None:
    """The key in its header, never in the address; a base URL with or without its version."""
    assert CODEC.headers() == {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    assert "x-api-key" not in MessagesCodec("").headers()
    assert KEY not in CODEC.url(Request(MODEL, ())) + repr(CODEC)
    for base in ("http://127.0.0.1:9", "http://127.0.0.1:9/", "http://127.0.0.1:9/v1/"):
        url = MessagesCodec("", base).url(Request(MODEL, ()))
        assert url == "http://127.0.0.1:9/v1/messages"
    assert CODEC.url(Request(MODEL, ())) == "https://api.anthropic.com/v1/messages"


def test_the_search_tools() -> None:
    """Every choice of the user is in the tools; allowed and blocked are never given together."""
    search = NativeSearch(
        ("https://a.example/x/", "b.example"), ("c.example", "b.example"), "low", "dk", True, 3
    )
    assert ask(native_search=search)["tools"] == [
        {
            "type": "web_search_20260318",
            "name": "web_search",
            "allowed_callers": ["direct"],
            "max_uses": 3,
            "allowed_domains": ["a.example/x"],
            "user_location": {"type": "approximate", "country": "DK"},
        },
        {
            "type": "web_fetch_20260318",
            "name": "web_fetch",
            "allowed_callers": ["direct"],
            "max_uses": 8,
            "max_content_tokens": 8_000,
            "citations": {"enabled": True},
            "allowed_domains": ["a.example"],
            "cache_control": {"type": "ephemeral"},
        },
    ]
    blocked = ask(native_search=NativeSearch(blocked_domains=("c.example",)))["tools"]
    assert [tool["blocked_domains"] for tool in blocked] == [["c.example"]] * 2
    stored = ask(native_search=NativeSearch(external_access=False))["tools"]
    assert [tool["name"] for tool in stored] == ["web_search"]


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


def test_functions() -> None:
    """Names and schemas as the API takes them; nothing is enforced, so nothing is rewritten."""
    combined = {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}
    sent = ask(tools=(FERRY, ToolSpec("mcp.time now", "Now.", combined)))["tools"]
    assert [tool["name"] for tool in sent] == ["ferry_times", "mcp_time_now"]
    assert sent[0]["input_schema"] == FERRY.parameters
    assert sent[1]["input_schema"] == {"type": "object", "properties": {"a": {}}}
    assert not any("strict" in tool for tool in sent)


def test_an_answer_without_further_calls() -> None:
    """The tools stay listed, and none may be called; without tools nothing is said of them."""
    sent = ask(tools=(FERRY,), native_search=NativeSearch(), answer_now=True)
    assert len(sent["tools"]) == 3
    assert sent["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in ask(answer_now=True)


def test_cache_marks() -> None:
    """On the last tool, on the system text, and the moving one outside the messages."""
    sent = ask(system="S", tools=(FERRY,), native_search=NativeSearch())
    assert ["cache_control" in tool for tool in sent["tools"]] == [False, False, True]
    assert "cache_control" in sent["system"][0]
    assert sent["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in json.dumps(sent["messages"])


def test_text_that_cannot_be_sent() -> None:
    """A blank question is not sent blank, half a surrogate pair breaks nothing."""
    assert ask(Message("user", " "))["messages"][0]["content"][0]["text"] == "(empty)"
    assert ask(Message("user", "a\ud83d b"))["messages"][0]["content"][0]["text"] == "a? b"


# --- answers ---


def test_a_searched_answer() -> None:
    """A search ends when its result comes; cited blocks give numbered citations with places."""
    two_days_ago = [page_date("2 days ago")]
    *events, last = decode(stream_of("web_search_stream"))
    two_days_ago.append(page_date("2 days ago"))
    assert isinstance(last, Finished)
    message = last.message
    query = "lindhøj tide table today"
    told = [e for e in events if not isinstance(e, TextDelta)]
    assert told == [SearchStarted(query), SearchFinished(query, "ok", 2)]
    first_search = events.index(SearchStarted(query))
    before = "".join(e.text for e in events[:first_search] if isinstance(e, TextDelta))
    assert before == "I will look at the tide table."
    assert message.content == (
        "I will look at the tide table.\n\nHere is what I found:\n\nHigh water at Lindhøj is at "
        "07:40 and the ferry quay is closed 🚧 until Sunday."
    )
    first, second = message.citations
    assert (first.n, first.url, first.title) == (1, TIDES, "Tide table of Lindhøj")
    assert [mark.quote for mark in first.marks] == [
        "High water 07:40, 0.9 m",
        "Quay closed",
    ]
    assert [message.content[a:b] for a, b in first.spans] == [
        "High water at Lindhøj is at 07:40",
        "the ferry quay is closed 🚧 until Sunday",
    ]
    assert (second.n, second.url) == (2, HARBOUR)
    assert [(s.url, s.state, s.n) for s in message.sources] == [
        (TIDES, "cited", 1),
        (HARBOUR, "cited", 2),
    ]
    assert message.sources[0].published in two_days_ago  # as its page_age says; the other has none
    assert message.sources[1].published is None
    usage = last.usage
    assert (usage.input_tokens, usage.cached_tokens) == (2_400, 300)
    assert (usage.output_tokens, usage.reasoning_tokens) == (95, 20)
    assert (usage.searches, usage.pages) == (1, 0)
    assert last.stop_reason == "stop"


def test_stream_and_plain_body_agree() -> None:
    """The same response without streaming gives the same message, a null for no citations too."""
    streamed, whole = finished(stream_of("web_search_stream")), stream_of("plain_body")
    for kind in ("application/json", ""):
        again = finished(whole, kind)
        plain = replace(again.message, provider_data=None)
        assert repr(plain) == repr(replace(streamed.message, provider_data=None))
        assert (again.usage, again.stop_reason) == (streamed.usage, streamed.stop_reason)


def test_a_pause() -> None:
    """The search stays open; in the next answer its result is told with the query of the first."""
    *events, last = decode(stream_of("pause_turn_stream"))
    assert isinstance(last, Finished)
    assert last.stop_reason == "pause"
    assert events[-1] == SearchStarted("lindhøj storm surge")
    more = decode(stream_of("pause_turn_stream", 1), before=(USER, last.message))
    assert more[0] == SearchFinished("lindhøj storm surge", "ok", 1)
    assert isinstance(more[-1], Finished)
    assert more[-1].message.citations[0].url == HARBOUR


def test_pages_that_the_server_read() -> None:
    """They are opened, and citations of documents lead to their addresses."""
    *events, last = decode(stream_of("web_fetch_stream"))
    assert isinstance(last, Finished)
    rules = "https://harbour.example/rules.pdf"
    assert [e for e in events if isinstance(e, PageOpened)] == [
        PageOpened(TIDES),
        PageOpened(rules),
    ]
    assert [(c.url, c.quote) for c in last.message.citations] == [
        (TIDES, "Low water 13:55."),
        (rules, "Bathing at low water only."),
    ]
    assert (last.usage.searches, last.usage.pages) == (1, 2)
    start, stop = last.message.citations[0].spans[0]
    assert last.message.content[start:stop] == "Low water is at 13:55"


def test_failed_and_empty_searches_differ() -> None:
    """Each code is told in words; unknown events pass, unknown blocks are kept."""
    *events, last = decode(stream_of("failed_searches_stream"))
    ended = [e for e in events if isinstance(e, SearchFinished)]
    assert [(e.query, e.status, e.results) for e in ended] == [
        ("a", "error", None),
        ("b", "empty", 0),
        ("c", "error", None),
    ]
    assert "no more requests" in (ended[0].error or "")
    assert "limit" in (ended[2].error or "")
    assert PageOpened("https://gone.example/", "the page could not be reached") in events
    assert isinstance(last, Finished)
    assert last.message.provider_data is not None
    assert {"type": "quantum_note", "id": "q_1", "data": "opaque"} in (
        last.message.provider_data.blocks
    )


def test_an_error_code_of_tomorrow() -> None:
    """It is told by its name."""
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1"}
    data = events_of(START) + block(
        0, {**result, "content": {"type": "web_search_tool_result_error", "error_code": "too_wet"}}
    )
    event = decode(data + end("end_turn"))[0]
    assert event == SearchFinished("", "error", None, "It failed: too wet.")


def test_parallel_calls() -> None:
    """Thinking with its sections, and all calls, the one without arguments too."""
    events = decode(stream_of("calls_parallel_stream"))
    last = events[-1]
    assert isinstance(last, Finished)
    thought = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert thought == last.message.thinking == "Two days to compare.\n\nAsk for both."
    assert last.message.tool_calls == (
        ToolCall("toolu_1", "ferry_times", {"day": "Saturday"}),
        ToolCall("toolu_2", "ferry_times", {"day": "Sunday – søndag"}),
        ToolCall("toolu_3", "ferry_times", {}),
    )
    assert last.stop_reason == "tool_calls"


@pytest.mark.parametrize(
    ("given", "problem"),
    [('{"a": ', "not valid JSON"), ("[1]", "not an array"), ('{"a": NaN}', "NaN")],
)
def test_arguments_that_cannot_be_read(given: str, problem: str) -> None:
    """The call says what is wrong with it, and is replayed with an object all the same."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "ferry_times", "input": {}}
    data = block(0, call, {"type": "input_json_delta", "partial_json": given})
    message = finished(events_of(START) + data + end("tool_use")).message
    (found,) = message.tool_calls
    assert problem in (found.problem or "")
    result = Message("tool", "Wrong.", tool_call_id=found.id, is_error=True)
    assert ask(USER, message, result)["messages"][1]["content"][0]["input"] == {}


def test_calls_that_repeat_an_id_or_lack_one() -> None:
    """Each call has one id, and an id one call."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    bare = {"type": "tool_use", "name": "g", "input": {}}
    data = events_of(START) + block(0, call) + block(1, call) + block(2, bare) + end("tool_use")
    message = finished(data).message
    assert [call.name for call in message.tool_calls] == ["f", "g"]
    assert len({call.id for call in message.tool_calls}) == 2
    results = [Message("tool", "1", tool_call_id=c.id) for c in message.tool_calls]
    ask(USER, message, *results)


def test_an_answer_that_was_cut() -> None:
    """Its text is kept and its unfinished call is gone, here and in the next request."""
    last = finished(stream_of("cut_in_a_call_stream"))
    assert (last.stop_reason, last.message.tool_calls) == ("length", ())
    assert last.message.content == "The ferry leaves at seven and"
    assert "tool_use" not in json.dumps(ask(USER, last.message, USER))


def test_a_call_before_the_cut() -> None:
    """A whole call of an answer that was cut short or refused is not made either."""
    call = block(0, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})
    for reason in ("max_tokens", "refusal"):
        last = finished(events_of(START) + call + end(reason))
        assert last.message.tool_calls == ()
        assert "tool_use" not in json.dumps(ask(USER, last.message, USER))


def test_documents_without_titles() -> None:
    """What was quoted tells the page; else its place among all that were read."""

    def page(index: int, words: str) -> bytes:
        source = {"type": "text", "media_type": "text/plain", "data": words}
        document = {"type": "document", "title": None, "source": source}
        url = f"https://{words}.example/"
        content = {"type": "web_fetch_result", "url": url, "content": document}
        return block(
            index, {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": content}
        )

    def answer(index: int, note: dict[str, Any]) -> bytes:
        return block(index, {"type": "text", "text": f"{index} ", "citations": [note]})

    quoted = {"type": "char_location", "cited_text": "ebb", "document_index": 0}
    placed = {"type": "content_block_location", "cited_text": "none", "document_index": 0}
    nowhere = {"type": "char_location", "cited_text": "none", "document_index": 7}
    data = events_of(START) + page(0, "flood") + page(1, "ebb") + answer(2, quoted)
    data += answer(3, placed) + answer(4, nowhere) + end("end_turn")
    citations = finished(data).message.citations
    assert [c.url for c in citations] == ["https://ebb.example/", "https://flood.example/"]


def test_a_refusal() -> None:
    """It is never an empty bubble: why is said after what was said."""
    last = finished(stream_of("refusal_stream"))
    assert last.stop_reason == "refusal"
    assert last.message.content == (
        "I can\n\nThe model declined to answer (cyber). This request cannot be answered."
    )
    assert last.message.provider_data is None
    assert finished(events_of(START) + end("refusal")).message.content


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("model_context_window_exceeded", "length"),
        ("of_tomorrow", "stop"),
        (None, "stop"),
    ],
)
def test_why_an_answer_ends(said: str | None, means: str) -> None:
    """A reason nobody has heard of is an ordinary end."""
    data = events_of(START) + block(0, {"type": "text", "text": "Hi"}) + end(said)
    assert finished(data).stop_reason == means


def test_marks_of_other_makers() -> None:
    """They are gone, also across blocks, and the places of citations move with the text."""
    note = {"type": "web_search_result_location", "url": TIDES, "title": "T", "cited_text": "q"}
    data = b"".join(
        [
            events_of(START),
            block(0, {"type": "text", "text": ""}, text("High water turn0sea")),
            block(1, {"type": "text", "text": ""}, text("rch1 at ")),
            block(
                2,
                {"type": "text", "text": "", "citations": []},
                text("07:40"),
                {"type": "citations_delta", "citation": note},
            ),
            end("end_turn"),
        ]
    )
    message = finished(data).message
    assert message.content == "High water at 07:40"
    ((start, stop),) = message.citations[0].spans
    assert message.content[start:stop] == "07:40"


def test_our_own_results_are_cited() -> None:
    """Citations of our results lead to the address that we gave."""
    message = finished(stream_of("local_results_stream", 1)).message
    (citation,) = message.citations
    assert (citation.url, citation.quote) == (TIDES, "High water 07:40.")
    assert message.content[slice(*citation.spans[0])] == "It is at 07:40"


def test_counts_are_sums_already() -> None:
    """Later counts replace earlier ones, and those left out stay."""
    usage = {"output_tokens": 9, "server_tool_use": None}
    data = events_of(
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4}},
    )
    found = finished(data + end("end_turn", **usage)).usage
    assert (found.input_tokens, found.output_tokens, found.searches) == (7, 9, 0)
    assert finished(events_of(STOP)).usage.input_tokens is None


def test_blocks_that_are_sent_twice() -> None:
    """A block that is done is done."""
    hello = block(0, {"type": "text", "text": ""}, text("Hello"))
    assert finished(events_of(START) + hello + hello + end("end_turn")).message.content == "Hello"


@pytest.mark.parametrize("name", ["web_search_stream", "calls_parallel_stream"])
def test_cut_after_every_byte(name: str) -> None:
    """Without its last event a stream is never an answer, wherever it broke off."""
    data = stream_of(name)
    final = data.rindex(b"\n\n")
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    for at in range(final):
        assert not any(isinstance(e, Finished) for e in decoder.feed(data[at : at + 1]))
    for stop in (0, 1, 40, final // 2, final - 200, final - 1):
        with pytest.raises(IncompleteError) as caught:
            decode(data[:stop])
        assert caught.value.retryable
    assert isinstance(decode(data[:final])[-1], Finished)


@pytest.mark.parametrize("data", [b"", b'{"type": "message"}', b'{"content": [', b"[]", b"<html>"])
def test_bodies_that_are_no_answers(data: bytes) -> None:
    """An empty, half or foreign body is incomplete, not an empty answer."""
    with pytest.raises(IncompleteError):
        decode(data, "application/json")


@pytest.mark.parametrize(
    "event",
    [
        b"data: {nonsense\n\n",
        b"data: 3\n\n",
        b'data: {"type":"content_block_start"}\n\n',
        b'data: {"type":"content_block_start","index":1,"content_block":{}}\n\n',
    ],
)
def test_garbage_in_the_stream(event: bytes) -> None:
    """An event that cannot be read is one clear error, after the text that came before it."""
    hi = block(0, {"type": "text", "text": ""}, text("Hi"))
    events = iter(CODEC.decoder(Request(MODEL, ()), "text/event-stream").feed(hi + event))
    assert next(events) == TextDelta("Hi")
    with pytest.raises(ProviderError) as caught:
        next(events)
    assert caught.value.code == "bad_response"


# --- errors ---


@each_row(
    ("status", "kind", "message", "code", "retryable", "says"),
    [
        (401, "authentication_error", f"invalid {KEY}", "unauthorized", False, "API_KEY"),
        (402, "billing_error", "", "quota", False, "credit"),
        (403, "permission_error", "", "forbidden", False, "workspace"),
        (404, "not_found_error", "model: claude-9", "model_not_found", False, "models"),
        (404, "", "", "bad_url", False, "ANTHROPIC_BASE_URL"),
        (413, "request_too_large", "", "context_length", False, "new session"),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", "context_length", False, ""),
        (400, "invalid_request_error", "Your credit balance is too low", "quota", False, "credit"),
        (400, "invalid_request_error", "x: Extra inputs are not", "bad_request", False, ""),
        (400, "invalid_request_error", "web_search: domain a b", "bad_request", False, ""),
        (429, "rate_limit_error", "", "quota", False, "limit"),
        (408, "", "", "server_error", True, ""),
        (500, "api_error", "", "server_error", True, ""),
        (504, "timeout_error", "", "server_error", True, ""),
        (529, "overloaded_error", "", "overloaded", True, ""),
    ],
)  # fmt: skip
def test_what_a_status_means(
    status: int, kind: str, message: str, code: str, retryable: bool, says: str
) -> None:
    """The vendor's cause in our words, who must act, and whether a retry helps; never a key."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}
    found = CODEC.error(status, {}, json.dumps(body).encode() if kind else b"<html>")
    assert (found.code, found.retryable, found.status) == (code, retryable, status)
    assert says in found.remedy
    assert found.remedy
    assert KEY not in str(found.as_dict())


def test_waiting() -> None:
    """A rate limit that names its time is retried then; the server's own wish decides otherwise."""
    limited = CODEC.error(429, {"retry-after": "7"}, b"{}")
    assert (limited.code, limited.retryable, limited.retry_after) == ("rate_limited", True, 7.0)
    assert not CODEC.error(500, {"x-should-retry": "false"}, b"{}").retryable
    assert CODEC.error(400, {"x-should-retry": "true"}, b"{}").retryable
    assert not CODEC.error(429, {"x-should-retry": "true"}, b"{}").retryable


@pytest.mark.parametrize(
    "message",
    [
        "'claude-x' does not support tool types: web_search_20250305.",
        "Web search is not enabled for this organization.",
        "tools.1: web_fetch_20260318 requires allowed_callers",
    ],
)
def test_a_refused_search_tool(message: str) -> None:
    """It is told apart, so that the loop can fall back to its own search once."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    assert isinstance(CODEC.error(400, {}, json.dumps(body).encode()), NativeSearchRejected)


def test_an_error_inside_a_stream() -> None:
    """It means the same as the status would have, and what was shown before it stays shown."""
    events = iter(
        CODEC.decoder(Request(MODEL, ()), "text/event-stream").feed(stream_of("error_event_stream"))
    )
    assert isinstance(next(events), TextDelta)
    with pytest.raises(ProviderError) as caught:
        list(events)
    assert (caught.value.code, caught.value.retryable) == ("overloaded", True)


def test_keys_are_not_quoted() -> None:
    """A vendor's message that repeats a key, ours or another, is cleaned and short."""
    message = f"You sent {KEY} and Bearer abc.def and sk-ant-abcdefgh. " + "x" * 1000
    found = CODEC.error(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert "abc" not in found.message
    assert len(found.message) < 400


# --- the provider ---


def listed(**env: str) -> list[ModelInfo]:
    async def main() -> list[ModelInfo]:
        transport = Transport()
        models = await create(Environment({"environment": env}), transport).models()
        await transport.aclose()
        return models

    return asyncio.run(main())


def run(server: FakeServer, *requests: Request) -> list[StreamEvent]:
    """The events of these requests, one after the other, from a provider at this server."""
    env = Environment({"environment": {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}})

    async def main() -> list[StreamEvent]:
        transport = Transport()
        chosen = providers.load("anthropic", env, transport)
        try:
            return [event for request in requests async for event in chosen.stream(request)]
        finally:
            await transport.aclose()

    return asyncio.run(main())


def test_what_models_can_do() -> None:
    """By the longest known beginning of the name; strangers get safe defaults."""
    assert MODELS.of("claude-opus-4-1-20250805").search == "web_search_20250305"
    assert MODELS.of("claude-sonnet-4-6").search == "web_search_20260209"
    assert MODELS.of("claude-fable-5-2").search == "web_search_20260318"
    assert not MODELS.of("claude-3-haiku-20240307").can.native_search
    stranger = MODELS.of("claude-9").can
    assert (stranger.tools, stranger.native_search) == (True, True)
    assert MODELS.of("claude-9").search == "web_search_20250305"
    assert not MODELS.of("somebody-elses-model").can.native_search


def test_a_missing_key() -> None:
    """Said before anything is sent, unless the server is one of the user's own."""
    with pytest.raises(ConfigError) as caught:
        create({}, Transport()).check(MODEL)
    assert "ANTHROPIC_API_KEY" in caught.value.remedy
    create({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, Transport()).check(MODEL)
    create({"ANTHROPIC_API_KEY": KEY}, Transport()).check(MODEL)
    models = listed()
    assert {(model.available, model.missing) for model in models} == {(False, "ANTHROPIC_API_KEY")}
    assert all(model.id.startswith("anthropic:") for model in models)


@pytest.mark.parametrize(
    ("reply", "titles"),
    [
        (json_reply({"data": [{"id": "b", "display_name": "B"}, {"id": "a"}]}), ["B", "a"]),
        (Reply([b"<html>"], 500), None),
        (json_reply([1]), None),
        (json_reply({"data": [1]}), None),
    ],
)  # fmt: skip
def test_models_of_a_server(reply: Reply, titles: list[str] | None) -> None:
    """A server that lists its models is believed; one that cannot never breaks the picker."""
    with FakeServer([reply]) as server:
        models = listed(ANTHROPIC_BASE_URL=server.url)
    assert server.requests[0].path.startswith("/v1/models")
    assert [m.title for m in models] == titles if titles else len(models) > 5


@each_row("key", ["", KEY])
@each_row("status", [200, 401, 404, 500])
def test_models_count_as_usable_if_somebody_could_answer(status: int, key: str) -> None:
    """A refused key is none. A server of one's own without a key must answer."""
    reply = json_reply({"data": [{"id": "b"}]} if status == 200 else {}, status)
    with FakeServer([reply]) as server:
        models = listed(ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY=key)
    usable = status == 200 or (bool(key) and status != 401)
    assert {model.available for model in models} == {usable}
    assert all(bool(model.missing and model.remedy) != usable for model in models)


def test_a_question_over_the_wire() -> None:
    """Key in the header, events out, one retry after an overload that nobody saw."""
    data = stream_of("web_search_stream")
    busy = sse_reply([START, {"type": "error", "error": {"type": "overloaded_error"}}])
    with FakeServer([busy, Reply([data[:700], data[700:]])]) as server:
        last = run(server, Request(MODEL, (USER,), native_search=NativeSearch()))[-1]
    assert isinstance(last, Finished)
    assert len(server.requests) == 2
    assert server.requests[1].path == "/v1/messages"
    assert server.requests[1].headers["x-api-key"] == KEY
    check(server.requests[1].json)


@pytest.mark.parametrize(
    ("message", "stays"),
    [
        ("messages.1.content.0: The block is bound to a different conversation", "srvtoolu"),
        ("`thinking` blocks in the latest assistant message cannot be modified", "srvtoolu"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "srvtoolu"),
        ("`web_search` tool use with id `s` was found without a corresponding block", "07:40"),
        ("Invalid `encrypted_content` in `search_result` block", "07:40"),
    ],
)  # fmt: skip
def test_opaque_blocks_that_are_refused(message: str, stays: str) -> None:
    """The history is sent once more without them, and from then on that way."""
    answer = finished(stream_of("web_search_stream")).message
    request = Request(MODEL, (USER, answer, USER), native_search=NativeSearch(), session_id="s")
    refused = json_reply({"error": {"type": "invalid_request_error", "message": message}}, 400)
    data = Reply([stream_of("web_search_stream", 1)])
    with FakeServer([refused, data, data]) as server:
        events = run(server, replace(request, tools=(FERRY,)), request)
    assert sum(isinstance(event, Finished) for event in events) == 2
    assert len(server.requests) == 3
    for received in server.requests:
        check(received.json)
    for received in server.requests[1:]:
        assert '"thinking"' not in received.body.decode()
        assert stays in received.body.decode()


def test_opaque_blocks_that_are_refused_again() -> None:
    """There is an end to it, with words that say what to do."""
    refused = json_reply({"error": {"message": "Invalid `encrypted_content`"}}, 400)
    with FakeServer([refused, refused]) as server, pytest.raises(ProviderError) as caught:
        run(server, Request(MODEL, (USER,)))
    assert "new session" in caught.value.remedy
    assert len(server.requests) == 2


def test_a_server_that_is_not_there() -> None:
    """The remedy names the setting that points to it."""

    async def main() -> None:
        transport = Transport()
        chosen = create({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, transport)
        try:
            async for _ in chosen.stream(Request(MODEL, (USER,))):
                pass
        finally:
            await transport.aclose()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(main())
    assert caught.value.code == "unreachable"
    assert "ANTHROPIC_BASE_URL" in caught.value.remedy
