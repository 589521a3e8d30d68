"""What every provider owes over the wire: keys, lists, retries, ends, faults, and a stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ConfigError, NativeSearchRejected, ProviderError
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.providers.openai_chat.window import named_size
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.transport.refusals import with_delay
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    Notice,
    ProviderData,
    Request,
    StreamEvent,
    TextDelta,
    ToolCall,
)
from tests.agent.providers.vendors import (
    ANTHROPIC,
    BY_NAME,
    CHAT,
    GEMINI,
    KEY,
    KEYED,
    NATIVE,
    OLLAMA,
    OPENAI,
    USER,
    VENDORS,
    XAI,
    Vendor,
    asked,
    lines,
    using,
)
from tests.agent.scripted import Memory
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.tables import each_row

HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


def fault(vendor: Vendor, *replies: Reply, **more: Any) -> ProviderError:
    """The error that one question ends with."""
    with FakeServer(list(replies)) as server, pytest.raises(ProviderError) as caught:
        vendor.stream(server, vendor.request(**more))
    return caught.value


# --- a question ---


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.name)
def test_a_question_over_the_wire(vendor: Vendor) -> None:
    """The key in its header alone, one retry that nobody saw, the answer however it is cut."""
    busy = json_reply({"error": {"message": "Busy."}}, 503, {"retry-after-ms": "1"})
    data = vendor.wire(vendor.says("High water ", "at 07:40."))
    pieces = [data[:40], data[40:41], data[41:]]
    search = NATIVE if vendor.searches else None
    with FakeServer([busy, Reply(pieces)]) as server:
        end = vendor.stream(server, vendor.request(native_search=search), key=KEY)[-1]
    assert isinstance(end, Finished)
    assert end.message.content == "High water at 07:40."
    first, second = server.requests
    assert first.body == second.body
    assert second.path.startswith(vendor.path)
    assert KEY not in second.path + second.body.decode()
    sent = second.headers.get(HEADERS.get(vendor.name, "authorization"), "")
    assert sent.removeprefix("Bearer ") == ("" if vendor is OLLAMA else KEY)
    vendor.rules(second.json, second.path)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.name)
def test_a_stop_closes_the_connection(vendor: Vendor) -> None:
    """Whoever leaves a stream hangs up on its server at once."""

    async def leave(provider: providers.Provider) -> None:
        async with aclosing(provider.stream(vendor.request())) as events:
            async for event in events:
                assert event == TextDelta("High water")
                break
        assert await asyncio.to_thread(server.requests[-1].gone.wait, 30)

    begun = vendor.wire(vendor.says("High water")[:-1]) if vendor is not ANTHROPIC else b""
    begun = begun or vendor.wire(ANTHROPIC.says("High water")[:-2])
    if vendor is GEMINI:
        begun = vendor.wire([{"candidates": [{"content": {"parts": [{"text": "High water"}]}}]}])
    with FakeServer([Reply([begun], end="stall")]) as server:
        using(vendor.name, vendor.env(server.url + vendor.path.partition("/v1")[1]), leave)


@each_row("vendor", VENDORS)
def test_a_server_that_is_not_there(vendor: Vendor) -> None:
    """The remedy names the setting that points to it."""
    with pytest.raises(ProviderError) as caught:
        asked(vendor.name, vendor.env("http://127.0.0.1:9/v1", KEY), vendor.request())
    assert caught.value.code == "unreachable"
    assert vendor.setting in caught.value.remedy
    assert KEY not in str(caught.value.as_dict())


# --- keys and lists ---


@each_row("vendor", KEYED)
def test_a_missing_key(vendor: Vendor) -> None:
    """Said before anything is sent, unless the server is the user's own; the picker says it too."""

    def check(url: str = "", key: str = "") -> None:
        providers.load(vendor.name, vendor.env(url, key), Transport()).check(vendor.model)

    with pytest.raises(ConfigError) as caught:
        check()
    assert vendor.key_setting in caught.value.remedy
    check(url="http://127.0.0.1:1/v1")
    check(key=KEY)
    models = vendor.listed()
    assert {(model.available, model.missing) for model in models} == {(False, vendor.key_setting)}
    assert all(model.id.startswith(f"{vendor.name}:") for model in models)


LISTS: dict[str, tuple[Any, list[str]]] = {
    "openai": ({"data": [{"id": "gpt-1"}, {"id": "gpt-2"}]}, ["gpt-2", "gpt-1"]),
    "xai": ({"data": [{"id": "grok-1"}, {"id": "grok-2-image"}]}, ["grok-1"]),
    "anthropic": ({"data": [{"id": "b", "display_name": "B"}, {"id": "a"}]}, ["B", "a"]),
    "gemini": (
        {
            "models": [
                {"name": "models/gemini-2.5-flash", "displayName": "Flash", "inputTokenLimit": 96},
                {"name": "models/own-1"},
                {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
            ]
        },
        ["own-1", "Flash"],
    ),
}


@each_row("vendor", KEYED)
def test_models_of_a_server(vendor: Vendor) -> None:
    """A server that lists its models is believed; one that cannot never breaks the picker."""
    answer, titles = LISTS[vendor.name]
    broken = [Reply([b"<html>"], 500), json_reply([1]), json_reply({"data": [1], "models": [1]})]
    for reply in (json_reply(answer), *broken):
        with FakeServer([reply]) as server:
            models = vendor.listed(f"{server.url}/v1", KEY)
        got = server.requests[0]
        assert got.path.partition("?")[0] == "/v1/models"
        assert KEY in got.headers[HEADERS.get(vendor.name, "authorization")]
        if reply in broken:
            assert len(models) > 1
        else:
            assert [model.title for model in models] == titles
            assert vendor is not GEMINI or models[1].capabilities.context == 96


@each_row("vendor", KEYED)
@each_row("key", ["", KEY])
@each_row("status", [200, 401, 404, 500])
def test_models_count_as_usable_if_somebody_could_answer(
    vendor: Vendor, status: int, key: str
) -> None:
    """A refused key is none. A server of one's own without a key must answer."""
    reply = json_reply(LISTS[vendor.name][0] if status == 200 else {}, status)
    with FakeServer([reply]) as server:
        models = vendor.listed(server.url, key)
    usable = status == 200 or (bool(key) and status != 401)
    assert {model.available for model in models} == {usable}
    assert all(bool(model.missing and model.remedy) != usable for model in models)


# --- ends that are no answer ---


def run(vendor: Vendor, reply: Reply) -> Outcome | ProviderError:
    """How a run with one answer of this provider ends."""

    tools, emit = Toolset([], "ask", SourceTable()), Memory()

    def main(provider: providers.Provider) -> Awaitable[Outcome]:
        request = Request(vendor.model, ())
        return run_agent_loop([USER], request, provider=provider, tools=tools, emit=emit)

    try:
        with FakeServer(lambda _: reply) as server:
            return using(vendor.name, vendor.env(server.url), main)
    except ProviderError as error:
        return error


def end_of(vendor: Vendor, why: str, text: str = "Half", **more: Any) -> tuple[Vendor, Reply]:
    return vendor, vendor.reply(text, why=why, **more)


ENDS: list[tuple[tuple[Vendor, Reply], str]] = [
    *((end_of(v, "max_output_tokens", t, status="incomplete"), "answer_cut")
      for v in (OPENAI, XAI) for t in ("Half", "")),
    (end_of(OPENAI, "content_filter", status="incomplete"), "withheld"),
    (end_of(OPENAI, "content_filter", "", status="incomplete"), "withheld"),
    (end_of(OPENAI, "", ""), "empty_answer"),
    (end_of(ANTHROPIC, "max_tokens"), "answer_cut"),
    (end_of(ANTHROPIC, "model_context_window_exceeded"), "answer_cut"),
    (end_of(ANTHROPIC, "refusal"), "withheld"),
    (end_of(ANTHROPIC, "refusal", ""), "withheld"),
    (end_of(ANTHROPIC, "pause_turn"), "endless_pause"),
    (end_of(ANTHROPIC, "pause_turn", ""), "endless_pause"),
    (end_of(ANTHROPIC, "end_turn", ""), "empty_answer"),
    (end_of(ANTHROPIC, "stop_sequence", ""), "empty_answer"),
    (end_of(GEMINI, "MAX_TOKENS"), "answer_cut"),
    (end_of(GEMINI, "MAX_TOKENS", ""), "answer_cut"),
    (end_of(GEMINI, "SAFETY", ""), "withheld"),
    (end_of(GEMINI, "PROHIBITED_CONTENT"), "withheld"),
    ((GEMINI, sse_reply([{"promptFeedback": {"blockReason": "SAFETY"}}])), "withheld"),
    (end_of(GEMINI, "STOP", ""), "empty_answer"),
    (end_of(CHAT, "length"), "answer_cut"),
    (end_of(CHAT, "content_filter", ""), "withheld"),
    (end_of(CHAT, "sensitive"), "withheld"),
    (end_of(CHAT, "RECITATION"), "withheld"),
    (end_of(CHAT, "repetition_truncation"), "answer_cut"),
    (end_of(CHAT, "insufficient_system_resource"), "server_error"),
    (end_of(CHAT, "abort"), "server_error"),
    (end_of(CHAT, "stop", ""), "empty_answer"),
    (end_of(OLLAMA, "length"), "answer_cut"),
    (end_of(OLLAMA, "stop", ""), "empty_answer"),
    ((OLLAMA, Reply(lines({"message": {"thinking": "Hm."}, "done": True}))), "empty_answer"),
]  # fmt: skip


@each_row("end, code", ENDS)
def test_an_end_that_is_no_answer_is_told(end: tuple[Vendor, Reply], code: str) -> None:
    """One sentence and what to do about it; never a silent stop."""
    ended = run(*end)
    error = ended.error if isinstance(ended, Outcome) else ended
    assert error
    assert error.code == code
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")
    if isinstance(ended, Outcome):
        assert ended.reason == "incomplete"


@each_row("vendor", VENDORS)
def test_a_limit_says_how_long_it_lasts(vendor: Vendor) -> None:
    """Whoever sets it."""
    limit = json_reply({"error": {"message": "Slow."}}, 429, {"retry-after": "300"})
    assert "in 5 minutes" in fault(vendor, limit).remedy


WAITS = {"1": "in 1 second.", "59": "in 59 seconds.", "60.5": "in 2 minutes.", "7200": "in 2 hours",
         "172800": "in 2 days"}  # fmt: skip


@each_row("seconds", WAITS)
def test_the_length_of_a_wait_in_words(seconds: str) -> None:
    """Rounded up, in the largest unit that is reached."""
    error = ProviderError("rate_limited", "Stop.", "Wait.", retry_after=float(seconds))
    assert WAITS[seconds] in with_delay(error).remedy


# --- a search tool that the server does not know ---

BLAMES: list[Any] = [
    {"error": {"message": "Invalid value.", "param": "tools[0].type"}},
    {"error": {"message": "('body', 'tools', 0, 'type'): \"Input should be 'function'\""}},
    {"error": {"message": "This model does not support internet search."}},
    {"error": {"message": "tools.0.custom.input_schema: Field required"}},
    {"error": {"message": "unknown variant `web_search`, expected `function` at line 1 column 88"}},
    {"error": {"message": "Invalid JSON payload. Unknown name \"googleSearch\" at 'tools[0]'"}},
    {"error": {"message": "Only function tools are allowed here."}},
    {"detail": [{"loc": ["body", "tools", 0, "function"], "msg": "Field required"}]},
    {"object": "error", "message": "Input should be 'function'", "code": 400},
]
REFUSED = [
    ("openai", "Hosted tool 'web_search' is not supported with gpt-4.1-nano."),
    ("openai", "The following tools cannot be used with 'minimal': web_search."),
    ("xai", "Model grok-3 does not support the web_search tool."),
    ("anthropic", "'claude-x' does not support tool types: web_search_20250305."),
    ("anthropic", "Web search is not enabled for this organization."),
    ("anthropic", "tools.1: web_fetch_20260318 requires allowed_callers"),
    ("gemini", "Tool use with function calling is unsupported by the model."),
    ("gemini", "Please enable tool_config.include_server_side_tool_invocations."),
    ("gemini", "Built-in tools ({google_search}) and Custom tools cannot be combined."),
    ("gemini", "Search Grounding is not supported."),
    ("gemini", "google_search is not supported; please use google_search_retrieval instead."),
    ("gemini", "Unable to submit request because url context is not available."),
]
OTHERS: list[Any] = [
    {"error": {"message": "The temperature is not allowed."}},
    {"error": {"message": "tools[0].filters.allowed_domains: not a domain"}},
    {"error": {"message": "Invalid schema for function 'weather': bad type"}},
]


@each_row("status", [400, 422])
@each_row("body", BLAMES)
@each_row("vendor", KEYED)
def test_a_blamed_tool_is_a_rejected_search(vendor: Vendor, body: Any, status: int) -> None:
    """In whatever words: so `auto` falls back, and `native` says what to choose."""
    error = fault(vendor, json_reply(body, status), native_search=NATIVE)
    assert isinstance(error, NativeSearchRejected)
    assert "local search" in error.remedy


@each_row("name, message", REFUSED)
def test_a_refused_search_tool(name: str, message: str) -> None:
    """In the words of the vendors themselves."""
    body = {"error": {"code": 400, "message": message}}
    error = fault(BY_NAME[name], json_reply(body, 400), native_search=NATIVE)
    assert isinstance(error, NativeSearchRejected)


@each_row("vendor", KEYED)
def test_other_refusals_stand(vendor: Vendor) -> None:
    """What the user chose or asked for is not the search's fault; nor is a tool without search."""
    for body in OTHERS:
        error = fault(vendor, json_reply(body, 400), native_search=NATIVE)
        assert not isinstance(error, NativeSearchRejected)
    unknown = json_reply({"error": {"message": "Unsupported tool type"}}, 400)
    assert fault(vendor, unknown).code == "bad_request"


# --- a history that the server refuses ---

OPAQUE = "OPAQUE0123456789"
WORDS = "At twenty to eight."
CALL = {"day": "Saturday"}
VERSIONS = {"openai": "1", "gemini": "1", "anthropic": "1:", "openai-chat": "1 127.0.0.1"}
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": OPAQUE},
        {"type": "message", "id": "m_1", "content": [{"type": "output_text", "text": WORDS}]},
        {"type": "function_call", "id": "f_1", "call_id": "c1", "name": "tide", "arguments": "{}"},
    ],
    "gemini": [
        {"text": WORDS},
        {"functionCall": {"name": "tide", "args": CALL}, "thoughtSignature": OPAQUE},
    ],
    "anthropic": [
        {"type": "thinking", "thinking": "Hm.", "signature": OPAQUE},
        {"type": "text", "text": WORDS},
        {"type": "tool_use", "id": "c1", "name": "tide", "input": CALL},
    ],
    "openai-chat": [
        {
            "role": "assistant",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": OPAQUE}],
            "tool_calls": [{"id": "c1", "function": {"name": "tide", "arguments": "{}"}}],
        }
    ],
}
ITEM = "Item 'rs_1' of type 'reasoning' was provided without its required"
REFUSALS: dict[str, list[Any]] = {
    "openai": [
        {"code": "invalid_encrypted_content", "message": "It could not be verified."},
        {"message": "The encrypted content gAAA could not be verified."},
        {"message": f"{ITEM} following item."},
        {"message": "Item with id 'rs_1' not found. Items are not persisted."},
        {"message": "Duplicate item found with id rs_1."},
        {"message": "Unknown parameter: 'input[1].phase'.", "param": "input[1].phase"},
        {"message": "Could not decrypt reasoning content."},
        {"message": "The provided reasoning item has expired."},
    ],
    "gemini": [
        {"message": "Corrupted thought signature."},
        {"message": "Function call is missing a thought_signature in functionCall parts."},
        {"message": "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES)"},
        {"message": "Unable to submit request because Thought Signature is not valid.."},
        {"message": "A function response turn comes immediately after a function call turn."},
    ],
    "anthropic": [
        {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"},
        {"message": "messages.1.content.0: The block is bound to a different conversation"},
        {"message": "`thinking` blocks in the latest assistant message cannot be modified"},
        {"message": "Invalid `encrypted_content` in `search_result` block"},
        {"message": "messages.1.content.0.signature: signature verification failed"},
        {"message": "messages.1.content.0: Expected `thinking` or `redacted_thinking`."},
        {"message": "The thinking block was made by a different model."},
        {"message": "`web_search_tool_result` block(s) without a preceding `server_tool_use`"},
    ],
    "openai-chat": [
        {"message": "Function call is missing a thought_signature in functionCall parts."},
        {"message": "Corrupted thought signature."},
        {"message": "property 'reasoning_content' is unsupported"},
        {"message": "messages.2: property 'reasoning' is unsupported"},
        {"code": "invalid_encrypted_content", "message": "The encrypted content is not valid."},
    ],
}


def history(vendor: Vendor, session: str | None = None) -> Request:
    name = vendor.name
    made = ProviderData(name, vendor.model, VERSIONS[name], tuple(BLOCKS[name]))
    call = ToolCall("c1", "tide", CALL)
    answer = Message("assistant", WORDS, tool_calls=(call,), provider_data=made)
    result = Message("tool", "07:40", tool_call_id="c1", tool_name="tide")
    later = Message("assistant", "At 07:40.")
    return vendor.request(USER, answer, result, later, USER, session_id=session)


def cases() -> Iterator[tuple[Vendor, Any]]:
    for name, errors in REFUSALS.items():
        yield from ((BY_NAME[name], error) for error in errors)


@each_row("vendor, error", list(cases()))
def test_opaque_parts_are_left_out_once_for_the_session(vendor: Vendor, error: Any) -> None:
    """The second question pays nothing, another session learns for itself; each is told once."""

    def reply(received: Received) -> Reply:
        if OPAQUE in received.body.decode():
            return json_reply({"error": {"type": "invalid_request_error", **error}}, 400)
        return vendor.reply("Good.")

    with FakeServer(reply) as server:
        events: list[StreamEvent] = vendor.stream(server, *(history(vendor, s) for s in "aab"))
    assert [OPAQUE in r.body.decode() for r in server.requests] == [True, False, False, True, False]
    for received in server.requests:
        assert WORDS in received.body.decode()
        assert "tide" in received.body.decode()
        vendor.rules(received.json, received.path)
    assert [e.message.content for e in events if isinstance(e, Finished)] == ["Good."] * 3
    assert [e.code for e in events if isinstance(e, Notice)] == ["history_as_text"] * 2


@each_row("name", REFUSALS)
def test_a_server_that_refuses_everything(name: str) -> None:
    """There is an end to it, and no request is sent twice."""
    refused = json_reply({"error": {"code": "x", **REFUSALS[name][0]}}, 400)
    with FakeServer(lambda _: refused) as server, pytest.raises(ProviderError) as caught:
        BY_NAME[name].stream(server, history(BY_NAME[name]))
    assert caught.value.remedy == "Start a new session."
    bodies = [json.dumps(r.json) for r in server.requests]
    assert len(bodies) == 2
    assert all(before != after for before, after in pairwise(bodies))


@pytest.mark.parametrize(
    "words",
    ["Invalid 'input[0].content': string too long.", "Bad 'temperature'.", "Unknown parameter."],
)
def test_other_refusals_are_not_sent_again(words: str) -> None:
    """What the history has no part in is told at once."""
    refused = json_reply({"error": {"message": words}}, 400)
    with FakeServer([refused]) as server, pytest.raises(ProviderError) as caught:
        OPENAI.stream(server, history(OPENAI))
    assert caught.value.code == "bad_request"


LONG = (
    "This model's maximum context length is 8,192 tokens, however you sent 9000.",
    "prompt is too long: 9000 tokens > 8192 maximum",
    "Input length 9000 exceeds maximum allowed length 8192",
    "Range of input length should be [1, 8192]",
    "Token limit exceeded: 9000 > 8192",
    "Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
    "The total number of tokens (9000) is greater than the model's maximum (8192)",
    "request is too large: 9000 tokens, the limit is 8192 tokens",
)


@pytest.mark.parametrize("name", REFUSALS)
def test_too_long_in_every_servers_words(name: str) -> None:
    """Every dialect is spoken by servers of other makers; a limit of answers or files is none."""

    def code_of(words: str) -> str:
        body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
        return str(BY_NAME[name].codec.error(400, {}, body).code)

    assert {code_of(words) for words in LONG} == {"context_length"}
    assert [named_size(words) for words in LONG] == [8192] * len(LONG)
    others = ("max_tokens: 99999 > 64000, the maximum allowed for answers", "image is too large")
    assert {code_of(words) for words in others} == {"bad_request"}


def test_a_gemini_stream_that_misses_a_signature() -> None:
    """The reason of an end counts as well as a status; the calls get the documented mark."""
    ends = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}
    with FakeServer([sse_reply([ends]), GEMINI.reply()]) as server:
        GEMINI.stream(server, history(GEMINI))
    assert "skip_thought_signature_validator" in server.requests[1].body.decode()
