"""Gemini: what is sent, and that no history can be refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.providers.gemini import GeminiCodec
from searchloop.agent.providers.gemini.request import UNSIGNED
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    ProviderData,
    Request,
    ToolCall,
    ToolSpec,
)
from tests.rules_gemini import check
from tests.tables import each_row

OURS = Path(__file__).resolve().parents[3] / "recordings" / "gemini"
LARGE = Path(__file__).resolve().parents[5] / "shared" / "recordings" / "gemini"
KEY = "AIzaCanary0123456789abcdef"
MODEL = "gemini-3.5-flash"
CODEC = GeminiCodec(KEY)
SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "additionalProperties": False,
}
FERRY = ToolSpec("ferry_times", "When ferries leave.", SCHEMA)
USER = Message("user", "When is high water?")
Exchange = dict[str, Any]


def ask(*messages: Message, model: str = MODEL, **more: Any) -> dict[str, Any]:
    """The body of a request with these messages, which the server would accept."""
    request = Request(model, messages or (USER,), **more)
    sent: dict[str, Any] = json.loads(CODEC.encode(request))
    check(sent, CODEC.url(request))
    return sent


def exchanges(path: Path) -> list[Exchange]:
    found: list[Exchange] = json.loads(path.read_text("utf-8"))["exchanges"]
    return found


def recorded(exchange: Exchange, model: str = MODEL) -> Finished:
    """How a recorded answer ends."""
    answer = exchange["response"]
    text = answer.get("text")
    data = (text if text is not None else json.dumps(answer["body"])).encode()
    kind = "text/event-stream" if text is not None else "application/json"
    decoder = CODEC.decoder(Request(model, ()), kind)
    last = [*decoder.feed(data), *decoder.close()][-1]
    assert isinstance(last, Finished)
    return last


def ours(name: str, number: int = 0, model: str = MODEL) -> Message:
    return recorded(exchanges(OURS / f"{name}.json")[number], model).message


def results(message: Message) -> list[Message]:
    return [
        Message("tool", "07:40", tool_call_id=call.id, tool_name=call.name)
        for call in message.tool_calls
    ]


# --- requests ---


def test_a_plain_request() -> None:
    """The question and the system text, and nothing of tools or searching when neither is on."""
    sent = ask(system="Be brief.", session_id="s1")
    assert sent == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": USER.content}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }


def test_where_it_is_sent() -> None:
    """The base URL as given, the model in the path, the key in a header and nowhere else."""
    codec = GeminiCodec(KEY, "http://127.0.0.1:9/v1beta/")
    url = "http://127.0.0.1:9/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    assert codec.url(Request(MODEL, ())) == url
    assert codec.url(Request(f"models/{MODEL}", ())) == url
    assert codec.headers() == {"x-goog-api-key": KEY}
    assert KEY not in repr(codec)
    assert GeminiCodec("", "http://127.0.0.1:9").headers() == {}


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
    """A limit to domains would be lost without a word, so it is refused; pages need the web."""
    for search in (NativeSearch(("a.example",)), NativeSearch((), ("b.example",))):
        with pytest.raises(NativeSearchRejected) as caught:
            ask(native_search=search)
        assert "domains" in caught.value.message
    assert ask(native_search=NativeSearch(external_access=False))["tools"] == [{"googleSearch": {}}]


def test_functions_alone() -> None:
    """Schemas go as they are where any schema is allowed; no arguments means no schema."""
    bare = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
    sent = ask(tools=(FERRY, bare))
    assert sent["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "ferry_times",
                    "description": FERRY.description,
                    "parametersJsonSchema": SCHEMA,
                },
                {"name": "now", "description": "The time."},
            ]
        }
    ]
    assert "toolConfig" not in sent


def test_an_answer_without_further_calls() -> None:
    """The functions stay listed and none may be called; without functions nothing is said."""
    sent = ask(tools=(FERRY,), answer_now=True, max_output_tokens=77)
    assert sent["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert sent["tools"]
    assert sent["generationConfig"]["maxOutputTokens"] == 77
    assert "toolConfig" not in ask(answer_now=True, native_search=NativeSearch())


def test_thoughts_are_asked_for_where_they_exist() -> None:
    """A model without thinking would refuse the setting."""
    assert "generationConfig" not in ask(model="gemini-2.0-flash")
    assert "generationConfig" in ask(model="gemini-2.5-flash")
    assert "generationConfig" not in ask(model="stranger-1")


def test_broken_characters_can_be_sent() -> None:
    """Half a surrogate pair from a page does not stop the conversation, nor does an empty text."""
    sent = ask(Message("user", "a\ud83d b"), Message("user", ""))
    assert [part["text"] for part in sent["contents"][0]["parts"]] == ["a? b", "(empty)"]


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
        {"id": "b2", "name": "ferry_times", "response": {"output": "07:40"}},
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


def test_a_search_after_the_switch_went_off() -> None:
    """The words and the calls stay, and nothing in the request speaks of searching."""
    answer = ours("search_and_function_stream")
    sent = json.dumps(ask(USER, answer, *results(answer), tools=(FERRY,)))
    assert "search" not in sent.lower()
    assert "toolCall" not in sent
    assert "c2lnbmVkLWZ1bmN0aW9u" in sent


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


def test_a_call_that_never_got_its_result() -> None:
    """It is answered for the user; a result without a call becomes text; an error says so."""
    call = Message("assistant", "", tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})))
    failed = Message("tool", "No such file", tool_call_id="b", is_error=True)
    stray = Message("tool", "42", tool_call_id="z", tool_name="calculate")
    sent = ask(USER, call, failed, stray, USER)["contents"]
    first, second, third, fourth = sent[2]["parts"]
    assert "interrupted" in first["functionResponse"]["response"]["error"]
    assert second["functionResponse"]["response"] == {"error": "No such file"}
    assert "42" in third["text"]
    assert fourth == {"text": USER.content}


def test_names_of_other_makers() -> None:
    """What is not allowed in a name here is made to fit, the same way in call and result."""
    call = Message("assistant", "", tool_calls=(ToolCall("1", "9 lives/" + "x" * 200, {}),))
    sent = ask(USER, call, Message("tool", "", tool_call_id="1"))["contents"]
    name = sent[1]["parts"][0]["functionCall"]["name"]
    assert name.startswith("_9_lives_x")
    assert len(name) == 128


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


def test_answers_that_say_nothing() -> None:
    """Thoughts alone are no turn; a transcript may begin and end with the model."""
    thoughts = ours("thoughts_only_max_tokens")
    assert len(ask(USER, thoughts, USER)["contents"]) == 1
    alone = ask(Message("assistant", "Hello"))["contents"]
    assert [content["role"] for content in alone] == ["user", "model", "user"]


ANSWERS = [
    *(ours("function_calls_parallel_stream", n) for n in (0, 1)),
    *(ours("search_and_function_stream", n) for n in (0, 1)),
    *(ours("paused_stream", n) for n in (0, 1)),
    *map(
        ours,
        (
            *("search_stream", "function_calls_without_ids", "function_call_in_pieces"),
            *("max_tokens_stream", "thoughts_only_max_tokens", "blocked_prompt_stream"),
            *("blocked_answer_stream", "leaked_marks_stream"),
        ),
    ),
    Message("assistant", "elsewhere", provider_data=ProviderData("other", "m", "1", ({},))),
    Message("assistant", "", tool_calls=(ToolCall("toolu_1", "a.b/c", {"x": [1]}),)),
    Message("assistant", "Half an answer"),
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(range(len(ANSWERS))),
            st.sampled_from(["answered", "stopped", "half", "stray", "on"]),
        ),
        max_size=7,
    ),
    st.sampled_from([MODEL, "gemini-3.1-pro-preview", "gemini-2.5-flash", "stranger-1"]),
    st.booleans(),
    st.booleans(),
)
def test_no_history_is_refused(
    turns: list[tuple[int, str]], model: str, searching: bool, functions: bool
) -> None:
    """Any mix of makers, models, stops and lost results gives a request that keeps the rules."""
    messages = [USER]
    for index, outcome in turns:
        answer = replace(ANSWERS[index], encoded={})
        messages.append(answer)
        found = results(answer)
        messages += found if outcome in ("answered", "on") else found[1:]
        if outcome == "stray":
            messages.append(Message("tool", "late", tool_call_id="nobody"))
        messages += [] if outcome == "on" else [USER]
    tools = (FERRY,) if functions and not (searching and "2.5" in model) else ()
    search = NativeSearch() if searching else None
    sent = ask(*messages, model=model, tools=tools, native_search=search)
    roles = [content["role"] for content in sent["contents"]]
    assert all(one != other for one, other in pairwise(roles))
    if not searching:
        assert "toolCall" not in json.dumps(sent)
        assert "googleSearch" not in json.dumps(sent)


@pytest.mark.parametrize("search", [None, NativeSearch()])
@pytest.mark.parametrize("model", [MODEL, "gemini-3.1-pro-preview"])
def test_each_request_extends_the_one_before(search: NativeSearch | None, model: str) -> None:
    """Prompt caches hit: byte for byte, a step adds to the end; old messages are not redone."""
    messages: list[Message] = []
    before = b""
    paused = ANSWERS[4]
    for answer in ANSWERS:
        refused = answer.details.get("blocked") == "prompt"
        if answer is paused or refused:
            continue  # a paused beginning is left out until the answer is whole
        messages += [Message("user", "next"), replace(answer, encoded={})]
        messages += results(answer)
        messages.append(Message("user", "and then"))
        request = Request(model, tuple(messages), "S", (FERRY,), search, session_id="s")
        data = CODEC.encode(request)
        assert data.startswith(before)
        before = data.partition(b'],"toolConfig"')[0].partition(b'],"generationConfig"')[0]
        before = before.removesuffix(b"]}")
        assert len(before) > len(data) - 160
        last = messages[-1]
        last.encoded.update(dict.fromkeys(last.encoded, b'{"memo":1}'))
        assert b'{"memo":1}' in CODEC.encode(request)
        last.encoded.clear()


def recordings() -> list[Any]:
    """Every recorded request of clients, ours and of the large set."""
    return [
        pytest.param(exchange, id=f"{path.parent.name}-{path.stem}-{number}")
        for path in [*sorted(OURS.glob("*.json")), *sorted(LARGE.glob("*.json"))]
        for number, exchange in enumerate(exchanges(path))
        if exchange.get("request")
    ]


@each_row("exchange", recordings())
def test_the_rules_agree_with_the_server(exchange: Exchange) -> None:
    """What the server accepted keeps our rules, and what it refused for its shape breaks them."""
    request, answer = exchange["request"], exchange["response"]
    message = json.dumps(answer.get("body") or "")
    if answer["status"] == 400 and "API_KEY_INVALID" not in message:
        with pytest.raises(AssertionError):
            check(request["body"], request["url"])
    else:
        check(request["body"], request["url"])


@each_row("path", sorted(LARGE.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_conversations_can_go_on(path: Path) -> None:
    """What real runs answered is sent back within the rules, to its model and to another."""
    messages: list[Message] = []
    for exchange in exchanges(path):
        if (exchange["response"].get("status") or 200) != 200:
            continue
        if exchange["response"].get("framing") == "payload-lines":
            lines = exchange["response"]["text"].splitlines()
            exchange["response"]["text"] = "".join(f"data: {line}\n\n" for line in lines if line)
        message = recorded(exchange).message
        messages += [USER, message, *results(message)]
        for model in (MODEL, "gemini-2.5-pro"):
            for search in (None, NativeSearch()):
                ask(*messages, model=model, native_search=search)


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("no contents", {"contents": []}),
    ("no parts", {"contents": [{"role": "user", "parts": []}]}),
    ("a role of others", {"contents": [{"role": "tool", "parts": [{"text": "a"}]}]}),
    ("an unknown field", {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "stream": 1}),
    (
        "an unanswered call",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                {"role": "user", "parts": [{"text": "b"}]},
            ]
        },
    ),
    (
        "a call without its signature",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "response": {}}}],
                },
            ]
        },
    ),
    (
        "both kinds of tools without the flag",
        {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "tools": [{"googleSearch": {}, "functionDeclarations": [{"name": "f"}]}],
        },
    ),
    (
        "a schema word that the old field does not know",
        {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": SCHEMA}]}],
        },
    ),
]


@each_row(("what", "body"), BROKEN, ids=[what for what, _ in BROKEN])
def test_the_rules_refuse(what: str, body: dict[str, Any]) -> None:
    """The validator that the other tests rest on can fail."""
    with pytest.raises(AssertionError):
        check(body)
