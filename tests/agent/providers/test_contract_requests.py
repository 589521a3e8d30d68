"""What every provider's requests owe: an honest switch, and a history that no server refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.types import Message, NativeSearch, ProviderData, Replay, ToolCall, ToolSpec
from tests import rules_openai_chat
from tests.agent.providers.vendors import (
    ANTHROPIC,
    BY_NAME,
    CHAT,
    ELSEWHERE,
    FERRY,
    GEMINI,
    MISTRAL,
    NATIVE,
    OLLAMA,
    OPAQUE,
    USER,
    VENDORS,
    Vendor,
    results,
)
from tests.recorded import OURS, exchanges, recordings, row_id
from tests.tables import each_row

LOCAL = ToolSpec("web_find", "Our own search.", {"type": "object", "properties": {}})


# Answers that go on in the next one: after a pause, or behind a search that is still open.
PARTED = [
    (ANTHROPIC, "pause_turn_stream"),
    (ANTHROPIC, "search_and_call_stream"),
    (GEMINI, "paused_stream"),
    (GEMINI, "search_and_function_stream"),
]


def answers() -> Iterator[Message]:
    """Recorded answers of every vendor, and some that nobody here has made."""
    for vendor in VENDORS:
        for name in vendor.recordings:
            if name != "x_search_stream":  # its calls are the server's own
                yield vendor.recorded(name)
    for vendor, name in PARTED:
        yield from (vendor.recorded(name, number) for number in (0, 1))
    yield Message("assistant", "elsewhere", provider_data=ProviderData("other", "m", "1", ({},)))
    yield ELSEWHERE
    yield Message("assistant", "", tool_calls=(ToolCall("c", "f", {}), ToolCall("c", "g", {})))
    yield Message("assistant", "Half an answer")
    yield Message("assistant", "")


ANSWERS = list(answers())
OUTCOMES = ("answered", "stopped", "half", "stray", "goes on", "text first")
TURNS = st.lists(st.tuples(st.integers(0, len(ANSWERS) - 1), st.sampled_from(OUTCOMES)), max_size=6)


def ids(message: Message) -> set[str]:
    """The ids that an answer gives to calls of ours and of the server's own."""
    blocks = message.provider_data.blocks if message.provider_data else ()
    found = {b[key] for b in blocks for key in ("id", "call_id") if b.get(key)}
    return found | {call.id for call in message.tool_calls}


def renamed(message: Message, mark: str) -> Message:
    """The same answer with ids of its own: those of a session differ."""
    blocks = message.provider_data.blocks if message.provider_data else ()
    text = json.dumps(blocks)
    for given_id in ids(message) | {b["tool_use_id"] for b in blocks if b.get("tool_use_id")}:
        text = text.replace(json.dumps(given_id), json.dumps(f"{given_id}_{mark}"))
    data = message.provider_data
    data = data._replace(blocks=tuple(json.loads(text))) if data else None
    calls = tuple(replace(call, id=f"{call.id}_{mark}") for call in message.tool_calls)
    return replace(message, tool_calls=calls, provider_data=data, encoded={})


def transcript(turns: list[tuple[int, str]]) -> list[Message]:
    """Turns that end in every way there is; one that goes on has no question of its own."""
    messages, known = [USER], set[str]()
    for number, (index, outcome) in enumerate(turns):
        # A pause or an open search and what follows it keep the ids that connect them.
        answer = renamed(
            ANSWERS[index], f"p{number // 2}" if outcome == "goes on" else f"n{number}"
        )
        if known & ids(answer):
            answer = renamed(ANSWERS[index], f"n{number}")
        known |= ids(answer)
        replies = results(answer)[outcome == "half" :] if outcome != "stopped" else []
        messages += [answer, *([USER] if outcome == "text first" else []), *replies]
        if outcome == "stray":
            messages.append(Message("tool", "late", tool_call_id="nobody"))
        messages += [] if outcome == "goes on" else [USER]
    return messages


# --- what is sent ---


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.name)
def test_off_means_no_search_tool(vendor: Vendor) -> None:
    """With the switch off no request speaks of a search of the provider's; with it on, it does."""
    for more in ({}, {"tools": (FERRY, LOCAL)}, {"tools": (LOCAL,), "answer_now": True}):
        told = json.dumps(vendor.ask(system="Be brief.", session_id="s1", **more))
        for words in (*vendor.searches, "search", "grounding"):
            assert words not in told.replace("Our own search.", "")
    if vendor.searches:
        told = json.dumps(vendor.ask(native_search=NATIVE))
        assert all(f'"{words}"' in told for words in vendor.searches)


OLDER = {"temperature", "top_p", "top_k"}  # a version of Anthropic's API took them


def sent_for(name: str, asks: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request that JSON describes; `at` is another server than the usual one."""
    more, vendor = dict(asks), BY_NAME[name]
    if at := more.pop("at", ""):
        vendor = vendor.at(at)
    search = more.get("native_search")
    if search is not None:
        lists = {k: tuple(v) for k, v in search.items() if isinstance(v, list)}
        more["native_search"] = NativeSearch(**search | lists)
    more["tools"] = tuple(ToolSpec(**tool) for tool in more.get("tools", ()))
    request = vendor.request(**more)
    body: dict[str, Any] = json.loads(vendor.codec.encode(request))
    kept = body.keys() - OLDER if vendor is ANTHROPIC else body.keys()
    vendor.rules({name: body[name] for name in kept}, vendor.codec.url(request))
    return body


def wanted() -> Iterator[Any]:
    """What is asked of each provider, and what it sends for that."""
    for name, cases in json.loads((OURS / "requests.json").read_text("utf-8")).items():
        yield from (pytest.param(name, case, id=f"{name}-{case['shows']}") for case in cases)


@each_row("name, case", list(wanted()))
def test_what_is_asked_for_is_what_is_sent(name: str, case: Mapping[str, Any]) -> None:
    """Each choice in the words of the API: the whole body, or some members (null: left out)."""
    sent = sent_for(name, case["asks"])
    if "whole" in case:
        assert sent == case["whole"]
    else:
        assert {key: sent.get(key) for key in case["sends"]} == case["sends"]


CHOICES = {"openai": "none", "xai": "none", "anthropic": {"type": "none"}, "openai-chat": "none"}


@each_row("vendor", VENDORS)
def test_an_answer_without_further_calls(vendor: Vendor) -> None:
    """The tools stay listed and none may be called; without tools nothing is said of them."""
    sent = vendor.ask(tools=(FERRY,), answer_now=True)
    plain = vendor.ask(answer_now=True)
    assert not {"tools", "tool_choice", "toolConfig"} & set(plain)
    if vendor is GEMINI:
        assert sent["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert sent.get("tool_choice") == CHOICES.get(vendor.name)
    assert ("tools" in sent) == (vendor is not OLLAMA)  # which has no way to forbid a call


@each_row("vendor", VENDORS)
def test_text_that_cannot_be_sent(vendor: Vendor) -> None:
    """Half a surrogate pair becomes a question mark, and no text at all is no fault."""
    assert '"a? b\\"\\n"' in json.dumps(vendor.ask(Message("user", 'a\ud83d b"\n')))
    vendor.ask(Message("user", " "), Message("assistant", ""), Message("user", ""), system=" ")


# --- histories ---


@pytest.mark.parametrize("vendor", [*VENDORS, MISTRAL], ids=lambda v: v.model)
@given(TURNS, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(get_args(Replay)))
@settings(max_examples=60, deadline=None)
def test_no_history_is_refused(
    vendor: Vendor,
    turns: list[tuple[int, str]],
    other: bool,
    searching: bool,
    tools: bool,
    replay: Replay,
) -> None:
    """Any mix of providers, models, switches, stops and lost results keeps the server's rules."""
    search = NATIVE if searching and vendor.searches else None
    more: dict[str, Any] = {"model": vendor.other if other else vendor.model, "replay": replay}
    more |= {"native_search": search, "tools": (FERRY,) if tools else ()}
    messages = transcript(turns)
    sent = vendor.ask(*messages, **more)
    vendor.ask(*messages, answer_now=True, **more)
    vendor.ask(*messages, **more | {"model": vendor.model if other else vendor.other})
    assert vendor.ask(*messages, **more) == sent, "one model's ids are not those of another"
    if not search:
        told = json.dumps([sent.get("tools"), sent.get("web_search_options")])
        assert not any(words in told for words in vendor.searches)
    for message in messages:
        message.encoded.clear()
    assert vendor.ask(*messages, **more) == sent, "what is remembered changes nothing"


@each_row("vendor", [*VENDORS, MISTRAL])
@each_row("search", [None, NATIVE])
def test_each_request_extends_the_one_before(vendor: Vendor, search: Any) -> None:
    """Byte for byte, a step adds to the end, so prompt caches hit; each message is encoded once."""

    def conversation(messages: list[Message]) -> bytes:
        request = vendor.request(
            *messages, system="S", tools=(FERRY,), native_search=search, session_id="s"
        )
        data: bytes = vendor.codec.encode(request)
        return data[: data.rindex(vendor.end)].replace(
            b',"cache_control":{"type":"ephemeral"}', b""
        )

    search = search if vendor.searches else None
    messages: list[Message] = []
    before = b""
    for number, name in enumerate(vendor.recordings):
        answer = renamed(vendor.recorded(name), f"n{number}")
        messages += [replace(USER, encoded={}), answer, *results(answer), replace(USER, encoded={})]
        data = conversation(messages)
        assert data.startswith(before)
        before = data
    for message in messages[-1:]:
        message.encoded.update(dict.fromkeys(message.encoded, b"MEMO"))
    assert b"MEMO" in conversation(messages)


@each_row("name", OPAQUE)
def test_opaque_parts_go_back_to_who_made_them(name: str) -> None:
    """To the letter to the same model; to any other, and to another vendor, text and calls go."""
    vendor = BY_NAME[name]
    recording, opaque = OPAQUE[name]
    search = NATIVE if vendor.searches else None
    answer = vendor.recorded(recording, tools=(), native_search=search)
    told = (USER, answer, *results(answer), USER)
    whole = json.dumps(vendor.ask(*told, native_search=search))
    assert all(part in whole for part in opaque)
    for more in ({"model": vendor.other}, {"replay": "neutral"}):
        less = json.dumps(vendor.ask(*told, native_search=search, **more))
        assert not any(part in less for part in opaque)
        assert all(call.name in less for call in answer.tool_calls)
        assert json.dumps(answer.content)[1:-1] in less
    for stranger in (*VENDORS, CHAT.at("other.example")):
        if stranger is not vendor:
            sent = json.dumps(stranger.ask(*told))
            assert not any(part in sent for part in opaque)
            assert json.dumps(answer.content)[1:-1] in sent


@each_row("vendor", VENDORS)
def test_calls_without_results_and_results_without_calls(vendor: Vendor) -> None:
    """The one is answered for the user, the other becomes text; an error says that it is one."""
    call = Message("assistant", "", tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})))
    failed = Message("tool", "No such file", tool_call_id="b", tool_name="f", is_error=True)
    stray = Message("tool", "42", tool_call_id="z", tool_name="calculate")
    told = json.dumps(vendor.ask(USER, call, failed, USER, stray, USER))
    assert "No such file" in told
    assert "42" in told
    if vendor is not OLLAMA:  # its server asks for no results
        assert "interrupted" in told


@each_row("vendor", VENDORS)
@each_row("call_id", ["x" * 90, "x|" * 50, "functions.f:0", ""])
@each_row("name", ["functions.look up", "9 lives/" + "x" * 200, "ä", ""])
def test_ids_and_names_of_other_makers(vendor: Vendor, call_id: str, name: str) -> None:
    """What would break the rules of a server is made to fit, the same way on both sides."""
    call = Message("assistant", "", tool_calls=(ToolCall(call_id, name, {"a": (1,)}),))
    vendor.ask(USER, call, Message("tool", "", tool_call_id=call_id, tool_name=name))


# Refused, but not for the shape of the request: what a key may do, a model can or a server offers.
NOT_FOR_ITS_SHAPE = {
    *("anthropic-error_400_search_refused-0", "gemini-error_400_bad_key-0"),
    *("openai-chat-error_400_tools_not_enabled-0", "openai-chat-error_400_search_refused-0"),
}


def decided() -> Iterator[Any]:
    """Every recorded request whose shape alone decided its answer, and whether it was taken."""
    for vendor in (ANTHROPIC, GEMINI, CHAT):
        files = recordings(vendor.folder.name)
        files += recordings("ollama", "v1_*.json") if vendor is CHAT else []
        for path in files:
            for number, exchange in enumerate(exchanges(path)):
                request, status = exchange.get("request") or {}, exchange["response"]["status"]
                by_shape = f"{vendor.name}-{path.stem}-{number}" not in NOT_FOR_ITS_SHAPE
                if request.get("body") and status in (200, 400) and by_shape:
                    row = vendor, request, status == 200
                    yield pytest.param(*row, id=f"{vendor.name}-{row_id(path, number)}")


@each_row("vendor, request, taken", list(decided()))
def test_the_rules_are_those_of_the_servers(
    vendor: Vendor, request: dict[str, Any], taken: bool
) -> None:
    """What a server took keeps them, what it refused breaks them."""
    body = request["body"]
    if vendor is ANTHROPIC:
        body = {name: body[name] for name in body.keys() - OLDER}
    with nullcontext() if taken else pytest.raises(AssertionError):
        if vendor is CHAT:  # without what templates add
            rules_openai_chat.check(body)
        else:
            vendor.rules(body, request["url"])
