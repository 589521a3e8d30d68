"""Gemini: what is sent, and that no history can be refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.providers.gemini.request import UNSIGNED
from searchloop.agent.types import Message, NativeSearch, ToolSpec
from tests.agent.providers.vendors import GEMINI, USER, results
from tests.recorded import exchanges, recordings, row_id
from tests.rules_gemini import check
from tests.tables import each_row

MODEL, ask, ours = GEMINI.model, GEMINI.ask, GEMINI.recorded
SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "additionalProperties": False,
}
FERRY = ToolSpec("ferry_times", "When ferries leave.", SCHEMA)


Exchange = dict[str, Any]


# --- requests ---


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("gemini-2.0-flash", [{"googleSearch": {}}]),
        ("gemini-2.5-pro", [{"googleSearch": {}, "urlContext": {}}]),
        (MODEL, [{"googleSearch": {}, "urlContext": {}}]),
    ],
)
def test_the_search_tool(model: str, tools: list[Any]) -> None:
    """Search, and reading of pages where the model can; the flag only where it is needed."""
    sent = ask(model=model, native_search=NativeSearch())
    assert sent["tools"] == tools
    assert "toolConfig" not in sent


def test_search_and_functions_together() -> None:
    """One tool object with the flag on newer models; an older one is not even asked."""
    sent = ask(tools=(FERRY,), native_search=NativeSearch())
    (tool,) = sent["tools"]
    assert set(tool) == {"googleSearch", "urlContext", "functionDeclarations"}
    assert sent["toolConfig"] == {"includeServerSideToolInvocations": True}
    with pytest.raises(NativeSearchRejected) as caught:
        ask(model="gemini-2.5-flash", tools=(FERRY,), native_search=NativeSearch())
    assert "local search" in caught.value.remedy


def test_what_this_search_cannot_do() -> None:
    """A limit to domains would be lost without a word, so it is refused."""
    for search in (NativeSearch(("a.example",)), NativeSearch((), ("b.example",))):
        with pytest.raises(NativeSearchRejected) as caught:
            ask(native_search=search)
        assert "domains" in caught.value.message


def test_thoughts_are_asked_for_where_they_exist() -> None:
    """A model without thinking would refuse the setting."""
    assert "generationConfig" not in ask(model="gemini-2.0-flash")
    assert "generationConfig" in ask(model="gemini-2.5-flash")
    assert "generationConfig" not in ask(model="stranger-1")


# --- histories ---


def test_a_step_is_replayed_as_it_came() -> None:
    """Thought, calls with ids and signature in place; all results in one content, with the ids."""
    answer = ours("function_calls_parallel_stream")
    sent = ask(USER, answer, *reversed(results(answer)), tools=(FERRY,))["contents"]
    assert [content["role"] for content in sent] == ["user", "model", "user"]
    assert sent[1]["parts"] == [
        {"text": "**Two days**", "thought": True},
        {
            "functionCall": {"name": "ferry_times", "args": {"day": "Saturday"}, "id": "a1"},
            "thoughtSignature": "c2lnbmVkLWZpcnN0",
        },
        {"functionCall": {"name": "ferry_times", "args": {"day": "Sunday – søndag"}, "id": "b2"}},
    ]
    assert [part["functionResponse"] for part in sent[2]["parts"]] == [
        {"id": "a1", "name": "ferry_times", "response": {"output": "07:40"}},
        {"id": "b2", "name": "ferry_times", "response": {"output": "07:41"}},
    ]


def test_a_signature_in_an_empty_part_is_kept() -> None:
    """The last part of a text answer may be nothing but a signature; it is not merged away."""
    answer = ours("function_calls_parallel_stream", 1)
    sent = ask(USER, answer, USER)["contents"]
    assert sent[1]["parts"] == [
        {"text": "Saturday 08:40, Sunday 09:10."},
        {"text": "", "thoughtSignature": "c2lnbmVkLWxhc3Q="},
    ]


def test_calls_without_ids() -> None:
    """An id that we gave is ours alone: it is neither in the call nor in the result."""
    answer = ours("function_calls_without_ids", model="gemini-2.0-flash")
    assert len({call.id for call in answer.tool_calls}) == 2
    sent = ask(USER, answer, *results(answer), model="gemini-2.0-flash")
    assert "gemini-" not in json.dumps(sent["contents"])
    assert [set(p["functionResponse"]) for p in sent["contents"][2]["parts"]] == [
        {"name", "response"},
        {"name", "response"},
    ]


def test_searches_of_the_server_are_echoed() -> None:
    """With their ids and signatures, in their places, while searching is on."""
    answer = ours("search_and_function_stream")
    sent = ask(USER, answer, *results(answer), tools=(FERRY,), native_search=NativeSearch())
    kinds = [next(iter(part)) for part in sent["contents"][1]["parts"]]
    assert kinds == ["text", "toolCall", "toolResponse", "text", "functionCall"]
    assert all(p.get("thoughtSignature") for p in sent["contents"][1]["parts"][1:3])
    alone = ask(USER, answer, *results(answer), native_search=NativeSearch())
    assert alone["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_another_model_reads_plain_text() -> None:
    """Signatures go to the model that made them; newer models get the documented stand-in."""
    answer = ours("function_calls_parallel_stream")
    newer = ask(USER, answer, *results(answer), model="gemini-3.1-pro-preview")["contents"]
    assert newer[1]["parts"] == [
        {
            "functionCall": {"name": "ferry_times", "args": {"day": "Saturday"}},
            "thoughtSignature": UNSIGNED,
        },
        {"functionCall": {"name": "ferry_times", "args": {"day": "Sunday – søndag"}}},
    ]
    older = ask(USER, answer, *results(answer), model="gemini-2.5-flash")
    assert "thoughtSignature" not in json.dumps(older)


def test_a_paused_answer_goes_on() -> None:
    """The same request again with the token; afterwards both halves are one turn."""
    first, second = ours("paused_stream"), ours("paused_stream", 1)
    resumed = ask(USER, first)
    assert resumed["continuationToken"] == "tok-1"
    assert resumed["contents"] == ask(USER)["contents"]
    later = ask(USER, first, second, USER)
    assert "continuationToken" not in json.dumps(later)
    assert [part["text"] for part in later["contents"][1]["parts"]] == [
        "The first half, ",
        "the second half.",
    ]
    assert "continuationToken" not in ask(USER, first, model="gemini-3.1-pro-preview")


def test_a_question_that_was_refused() -> None:
    """It is not sent again, or the server would refuse every later question with it."""
    refused = ours("blocked_prompt_stream")
    sent = ask(USER, refused, Message("user", "Then what about the ferry?"))["contents"]
    assert sent == [{"role": "user", "parts": [{"text": "Then what about the ferry?"}]}]


def recorded_requests() -> list[Any]:
    """Every recorded request of clients."""
    return [
        pytest.param(exchange, id=row_id(path, number))
        for path in recordings("gemini")
        for number, exchange in enumerate(exchanges(path))
        if exchange.get("request")
    ]


@each_row("exchange", recorded_requests())
def test_the_rules_agree_with_the_server(exchange: Exchange) -> None:
    """What the server accepted keeps our rules, and what it refused for its shape breaks them."""
    request, answer = exchange["request"], exchange["response"]
    message = json.dumps(answer.get("body") or "")
    if answer["status"] == 400 and "API_KEY_INVALID" not in message:
        with pytest.raises(AssertionError):
            check(request["body"], request["url"])
    else:
        check(request["body"], request["url"])


# Its invented part is one that no server takes back.
