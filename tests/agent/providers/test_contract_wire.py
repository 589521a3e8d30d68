"""What every provider owes over the wire: keys, lists, retries, ends, faults, and a stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import asdict
from itertools import product
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.loop import Outcome
from searchloop.agent.transport.refusals import with_delay
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Notice,
    Request,
    StreamEvent,
    TextDelta,
)
from tests.agent.providers.vendors import (
    ANTHROPIC,
    BY_NAME,
    CHAT,
    FERRY,
    GEMINI,
    KEY,
    KEYED,
    NATIVE,
    OLLAMA,
    OPAQUE,
    OPENAI,
    USER,
    VENDORS,
    XAI,
    Vendor,
    asked,
    results,
    using,
)
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.recorded import OURS, REFUSALS
from tests.tables import each_row

HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


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


@each_row("vendor", VENDORS)
def test_a_tool_is_called_by_its_own_name(vendor: Vendor) -> None:
    """Also where the API takes no such letters: the model knows it by another name."""
    tool = FERRY._replace(name="fähr.zeiten")
    data = vendor.calls("{}").replace(FERRY.name.encode(), b"f_hr_zeiten")
    with FakeServer([Reply([data])]) as server:
        end = vendor.stream(server, vendor.request(tools=(tool,)))[-1]
    assert isinstance(end, Finished)
    assert [call.name for call in end.message.tool_calls] == [tool.name]
    vendor.rules(server.requests[0].json, server.requests[0].path)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.name)
def test_a_stop_closes_the_connection(vendor: Vendor) -> None:
    """Whoever leaves a stream hangs up on its server at once."""

    async def leave(provider: providers.Provider) -> None:
        async with aclosing(provider.stream(vendor.request())) as events:
            async for event in events:
                assert event == TextDelta("High water")
                break
        assert await asyncio.to_thread(server.requests[-1].gone.wait, 30)

    with FakeServer([Reply([vendor.begins("High water")], end="stall")]) as server:
        using(vendor.name, vendor.env(server.url + vendor.path.partition("/v1")[1]), leave)


@each_row("vendor", VENDORS)
def test_a_server_that_is_not_there(vendor: Vendor) -> None:
    """The remedy names the setting that points to it; on this machine no retry would help."""
    with pytest.raises(ProviderError) as caught:
        asked(vendor.name, vendor.env("http://127.0.0.1:9/v1", KEY), vendor.request())
    assert (caught.value.code, caught.value.retryable) == ("unreachable", False)
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


LISTS = json.loads((OURS / "models.json").read_text("utf-8"))


def listed(model: ModelInfo) -> dict[str, Any]:
    """What a list says of a model; of its abilities those that are unusual."""
    can, usual = asdict(model.capabilities), asdict(Capabilities())
    unusual = {name: value for name, value in can.items() if value != usual[name]}
    found = {"title": model.title, "local": model.local, "can": unusual}
    return json.loads(json.dumps({"id": model.id, **found}))  # type: ignore[no-any-return]


@each_row("name", LISTS)
def test_models_of_a_server(name: str) -> None:
    """A server that lists its models is believed; one that cannot never breaks the picker."""
    vendor = BY_NAME[name]
    broken = [Reply([b"<html>"], 500), json_reply([1]), json_reply({"data": [1], "models": [1]})]
    for reply in (json_reply(LISTS[name]["answer"]), *broken):
        with FakeServer([reply]) as server:
            models = vendor.listed(f"{server.url}/v1", KEY)
        got = server.requests[0]
        assert got.path.partition("?")[0] == "/v1/models"
        assert KEY in got.headers[HEADERS.get(name, "authorization")]
        if reply in broken:
            assert len(models) > 1 or models[0].remedy
        else:
            assert [listed(model) for model in models] == LISTS[name]["listed"]


@each_row("vendor", KEYED)
@each_row("key", ["", KEY])
@each_row("status", [200, 401, 404, 500])
def test_models_count_as_usable_if_somebody_could_answer(
    vendor: Vendor, status: int, key: str
) -> None:
    """A refused key is none. A server of one's own without a key must answer."""
    reply = json_reply(LISTS[vendor.name]["answer"] if status == 200 else {}, status)
    with FakeServer([reply]) as server:
        models = vendor.listed(server.url, key)
    usable = status == 200 or (bool(key) and status != 401)
    assert {model.available for model in models} == {usable}
    assert all(bool(model.missing and model.remedy) != usable for model in models)


# --- ends that are no answer ---


# What we call an end: the reasons that mean it behind half an answer, and those without a word.
ENDS = [
    (OPENAI, "empty_answer", "", "completed"),
    (ANTHROPIC, "answer_cut", "max_tokens model_context_window_exceeded", ""),
    (ANTHROPIC, "withheld", "refusal", "refusal"),
    (ANTHROPIC, "endless_pause", "pause_turn", "pause_turn"),
    (ANTHROPIC, "empty_answer", "", "end_turn stop_sequence"),
    (GEMINI, "answer_cut", "MAX_TOKENS", "MAX_TOKENS"),
    (GEMINI, "withheld", "PROHIBITED_CONTENT", "SAFETY"),
    (GEMINI, "empty_answer", "", "STOP"),
    (GEMINI, "model_stumbled", "OTHER UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL"),
    (CHAT, "answer_cut", "length repetition_truncation", ""),
    (CHAT, "withheld", "sensitive RECITATION", "content_filter"),
    (CHAT, "server_error", "insufficient_system_resource abort", ""),
    (CHAT, "empty_answer", "", "stop"),
    (OLLAMA, "answer_cut", "length", ""),
    (OLLAMA, "empty_answer", "", "stop"),
]


def ended() -> Iterator[tuple[Vendor, bytes, str]]:
    """Answers that end so, and those that say it in another way."""
    for vendor, code, *reasons in ENDS:
        for text, whys in zip(("Half", ""), reasons, strict=True):
            yield from ((vendor, vendor.wire(vendor.says(text, why=w)), code) for w in whys.split())
    for vendor, text in product((OPENAI, XAI), ("Half", "")):
        part = {"type": "output_text", "text": text}
        output = [{"type": "message", "id": "m_1", "content": [part]}] if text else []
        for why, code in (("max_output_tokens", "answer_cut"), ("content_filter", "withheld")):
            response = {
                "status": "incomplete",
                "output": output,
                "incomplete_details": {"reason": why},
            }
            yield vendor, vendor.wire([{"type": "response.incomplete", "response": response}]), code
    yield GEMINI, GEMINI.wire([{"promptFeedback": {"blockReason": "SAFETY"}}]), "withheld"
    yield OLLAMA, b'{"message": {"thinking": "Hm."}, "done": true}\n', "empty_answer"


@each_row("vendor, data, code", list(ended()))
def test_an_end_that_is_no_answer_is_told(vendor: Vendor, data: bytes, code: str) -> None:
    """One sentence and what to do about it; never a silent stop."""
    error: AgentError | None
    try:
        end = vendor.finished(data)
        error = Outcome(end.message, end.usage, end.stop_reason).error
    except ProviderError as fault:
        error = fault
    assert error
    assert error.code == code
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")


@each_row("vendor", VENDORS)
def test_a_limit_says_how_long_it_lasts(vendor: Vendor) -> None:
    """Whoever sets it."""
    limit = json_reply({"error": {"message": "Slow."}}, 429, {"retry-after": "300"})
    with FakeServer([limit]) as server, pytest.raises(ProviderError, match="Slow") as caught:
        vendor.stream(server)
    assert "in 5 minutes" in caught.value.remedy


WAITS = {"1": "in 1 second.", "59": "in 59 seconds.", "60.5": "in 2 minutes.", "7200": "in 2 hours",
         "172800": "in 2 days"}  # fmt: skip


@each_row("seconds", WAITS)
def test_the_length_of_a_wait_in_words(seconds: str) -> None:
    """Rounded up, in the largest unit that is reached."""
    error = ProviderError("rate_limited", "Stop.", "Wait.", retry_after=float(seconds))
    assert WAITS[seconds] in with_delay(error).remedy


# --- a history that the server refuses ---


def history(vendor: Vendor, session: str | None = None) -> tuple[Request, Message, list[str]]:
    """A request with an answer of before that has opaque parts, the answer, and those parts."""
    name, opaque = OPAQUE[vendor.name]
    search = NATIVE if vendor.searches else None
    made = CHAT.at("127.0.0.1") if vendor is CHAT else vendor
    answer = made.recorded(name, native_search=search)
    told = (USER, answer, *results(answer), Message("assistant", "At 07:40."), USER)
    return vendor.request(*told, session_id=session, native_search=search), answer, opaque


OF_HISTORY = {  # one for each vendor: `test_what_a_refusal_means` reads them all
    BY_NAME[r["of"]]: r["body"] for r in REFUSALS if r["means"]["code"] == "history_refused"
}


@each_row("vendor, body", OF_HISTORY.items())
def test_opaque_parts_are_left_out_once_for_the_session(vendor: Vendor, body: Any) -> None:
    """The second question pays nothing, another session learns for itself; each is told once."""

    requests, answers, (opaque, *_) = zip(*(history(vendor, s) for s in "aab"), strict=True)

    def reply(received: Received) -> Reply:
        if opaque[0] in received.body.decode():
            return json_reply(body, 400)
        return vendor.reply()

    with FakeServer(reply) as server:
        events: list[StreamEvent] = vendor.stream(server, *requests)
    sent = [json.dumps(received.json) for received in server.requests]
    assert [opaque[0] in each for each in sent] == [True, False, False, True, False]
    for each, received in zip(sent, server.requests, strict=True):
        assert opaque[0] in each or json.dumps(answers[0].content)[1:-1] in each
        assert all(call.name in each for call in answers[0].tool_calls)
        vendor.rules(received.json, received.path)
    assert [e.message.content for e in events if isinstance(e, Finished)] == ["Good."] * 3
    assert [e.code for e in events if isinstance(e, Notice)] == ["history_as_text"] * 2


def test_a_gemini_stream_that_misses_a_signature() -> None:
    """The reason of an end counts as well as a status; the calls get the documented mark."""
    ends = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}
    with FakeServer([sse_reply([ends]), GEMINI.reply()]) as server:
        GEMINI.stream(server, history(GEMINI)[0])
    assert "skip_thought_signature_validator" in server.requests[1].body.decode()
