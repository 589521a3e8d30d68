"""Chat Completions: what is sent, that no history can be refused, and how answers are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import (
    ConfigError,
    IncompleteError,
    NativeSearchRejected,
    ProviderError,
)
from searchloop.agent.providers.openai_chat import ChatCodec
from searchloop.agent.providers.openai_chat.models import ChatServer
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
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
from tests.rules_openai_chat import check, check_templates
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[4]
OURS = ROOT / "tests" / "recordings" / "openai_chat"
LARGE = ROOT.parent / "shared" / "recordings"
KEY = "sk-canary-0123456789abcdef"
MODEL = "tidewater-8b"
SEARCHER = "gpt-5-search-api"
HOST = "chat.example"
CODEC = ChatCodec(ChatServer(f"https://{HOST}/v1", KEY))
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
USER = Message("user", "When is high water?")


def ask(*messages: Message, model: str = MODEL, **more: Any) -> dict[str, Any]:
    """The body of a request with these messages, which every server takes."""
    sent: dict[str, Any] = json.loads(CODEC.encode(Request(model, messages or (USER,), **more)))
    check(sent)
    check_templates(sent)
    return sent


def exchanges(path: Path) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["exchanges"]
    return recorded


def stream_of(name: str, number: int = 0) -> bytes:
    answer = exchanges(OURS / f"{name}.json")[number]["response"]
    return (answer.get("text") or json.dumps(answer["body"])).encode()


def decode(
    data: bytes, content_type: str = "text/event-stream", *, model: str = MODEL
) -> list[StreamEvent]:
    search = NativeSearch() if model == SEARCHER else None
    decoder = CODEC.decoder(Request(model, (), native_search=search), content_type)
    return [*decoder.feed(data), *decoder.close()]


def finished(data: bytes, content_type: str = "text/event-stream", **more: Any) -> Finished:
    last = decode(data, content_type, **more)[-1]
    assert isinstance(last, Finished)
    return last


def chunk(delta: Mapping[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    value = {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def piece(
    index: int | None, call_id: str | None, name: str | None, arguments: Any = ""
) -> dict[str, Any]:
    """A delta with one piece of a call; None leaves a member out."""
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call_id, "function": function}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def results(message: Message) -> list[Message]:
    return [
        Message("tool", f"07:4{n}", tool_call_id=call.id, tool_name=call.name)
        for n, call in enumerate(message.tool_calls)
    ]


DONE = b"data: [DONE]\n\n"
SECOND = piece(1, "b", "f", '{"n":2}')

# --- requests ---


def test_a_plain_request() -> None:
    """Streamed and counted; no sampling settings, nothing of tools or searching."""
    sent = ask(system="Be brief.", session_id="s1")
    assert sent == {
        "model": MODEL,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": USER.content},
        ],
    }


def test_tools_and_limits() -> None:
    """Tools stay listed when none may be called; the limit has the name that the server knows."""
    sent = ask(tools=(FERRY, FERRY._replace(name="bad name!")), answer_now=True)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["ferry_times", "bad_name_"]
    assert sent["tools"][0]["function"]["parameters"] == FERRY.parameters
    assert sent["tool_choice"] == "none"
    assert "tool_choice" not in ask(answer_now=True)
    assert ask(max_output_tokens=7)["max_tokens"] == 7
    official = ChatCodec(ChatServer("https://api.openai.com/v1", KEY))
    sent = json.loads(official.encode(Request(MODEL, (USER,), max_output_tokens=7)))
    assert sent["max_completion_tokens"] == 7


def test_search_options() -> None:
    """Only what the API knows, in its nesting; a model whose name says it all gets no options."""
    search = NativeSearch(context_size="low", country="DK")
    assert ask(model=SEARCHER, native_search=search)["web_search_options"] == {
        "search_context_size": "low",
        "user_location": {"type": "approximate", "approximate": {"country": "DK"}},
    }
    assert ask(model=SEARCHER, native_search=NativeSearch())["web_search_options"] == {}
    assert "web_search_options" not in ask(model="tide/x:online", native_search=search)


@each_row(
    ("model", "search", "code"),
    [
        (SEARCHER, None, "always_searches"),
        ("gpt-4o-mini-search-preview-2025-03-11", None, "always_searches"),
        ("openai/gpt-4o-search-preview", None, "always_searches"),
        ("tide/x:online", None, "always_searches"),
        ("perplexity/sonar-pro", None, "always_searches"),
        (MODEL, NativeSearch(), "no_native_search"),
        (SEARCHER, NativeSearch(allowed_domains=("a.example",)), "no_domain_filter"),
        (SEARCHER, NativeSearch(blocked_domains=("a.example",)), "no_domain_filter"),
    ],
)
def test_a_switch_that_cannot_be_kept(model: str, search: NativeSearch | None, code: str) -> None:
    """Off means off: a model that would search anyway is refused before anything is sent."""
    with pytest.raises(ConfigError) as caught:
        CODEC.encode(Request(model, (USER,), native_search=search))
    assert caught.value.code == code
    assert caught.value.remedy


def test_broken_characters_can_be_sent() -> None:
    """Half a surrogate pair from a page does not stop the conversation."""
    assert ask(Message("user", 'a\ud83d "b"\n'))["messages"][0]["content"] == 'a? "b"\n'


# --- histories ---


def test_calls_go_back_with_the_ids_of_their_server() -> None:
    """Ours are unique in the session; the server gets its own, with its results right after."""
    answer = finished(stream_of("tool_calls_parallel_stream")).message
    recorded = exchanges(OURS / "tool_calls_parallel_stream.json")[1]["request"]["body"]
    sent = ask(USER, answer, *results(answer), tools=(FERRY,))["messages"]
    assert sent[1] == recorded["messages"][1]
    assert [m["tool_call_id"] for m in sent[2:]] == ["call_aa", "call_bb"]
    other = ask(USER, answer, *results(answer), model="other")["messages"]
    assert [m["tool_call_id"] for m in other[2:]] == [call.id for call in answer.tool_calls]


def test_ids_that_repeat() -> None:
    """A server that calls everything "0" gets that back once, and ids of ours after that."""
    data = stream_of("tool_call_bent_ids_stream")
    first, second = finished(data).message, finished(data).message
    assert first.tool_calls[0].id != second.tool_calls[0].id
    sent = ask(USER, first, *results(first), USER, second, *results(second))["messages"]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == [
        "0",
        second.tool_calls[0].id,
    ]
    nameless = finished(stream_of("tool_call_whole_delta_stream")).message
    ask(USER, nameless, *results(nameless))


def test_an_id_of_another_maker_that_was_used_already() -> None:
    """Each id names one call of the request, even if two makers chose the same."""
    own = finished(stream_of("tool_calls_parallel_stream")).message
    other = Message("assistant", "", tool_calls=(ToolCall("call_aa", "f", {}),))
    sent = ask(USER, own, *results(own), other, *results(other))["messages"]
    assert sent[-1]["tool_call_id"] not in ("call_aa", "call_bb")


def test_reasoning_goes_back_to_who_made_it() -> None:
    """Signatures and reasoning of a calling answer are replayed whole, and to nobody else."""
    answer = finished(stream_of("reasoning_details_stream")).message
    sent = ask(USER, answer, *results(answer))["messages"][1]
    assert sent["reasoning"] == "I need the table."
    assert sent["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "I need the table.",
            "format": "v1",
            "index": 0,
            "signature": "c2lnbmVk",
        }
    ]
    assert sent["tool_calls"][0]["extra_content"] == {"vendor": {"thought_signature": "c2ln"}}
    other_model = ask(USER, answer, *results(answer), model="other")["messages"][1]
    elsewhere = ChatCodec(ChatServer("https://other.example/v1"))
    other_host = json.loads(elsewhere.encode(Request(MODEL, (USER, answer, *results(answer)))))
    for message in (other_model, other_host["messages"][1]):
        assert set(message) == {"role", "content", "tool_calls"}
        assert set(message["tool_calls"][0]) == {"id", "type", "function"}
    plain = finished(stream_of("text_stream")).message
    assert plain.thinking
    assert set(ask(USER, plain, USER)["messages"][1]) == {"role", "content"}


def test_broken_arguments_do_not_go_back() -> None:
    """A server parses what it is sent; a call that was never run says so in its result."""
    data = chunk(piece(0, "a", "ferry_times", '{"day": ')) + chunk(None, "tool_calls") + DONE
    answer = finished(data).message
    assert "not valid JSON" in (answer.tool_calls[0].problem or "")
    assert ask(answer, *results(answer))["messages"][0]["tool_calls"][0]["function"] == {
        "name": "ferry_times",
        "arguments": "{}",
    }


def test_a_call_without_a_result_and_a_result_without_a_call() -> None:
    """The one is answered for the user, the other becomes text; an error says that it is one."""
    call = Message("assistant", "", tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})))
    failed = Message("tool", "No such file", tool_call_id="b", is_error=True)
    stray = Message("tool", "42", tool_call_id="z", tool_name="calculate")
    sent = ask(call, failed, USER, stray)["messages"]
    told = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert told["b"] == "Error: No such file"
    assert "interrupted" in told["a"]
    assert "42" in sent[-1]["content"]


def test_neighbours_of_one_role_are_one_message() -> None:
    """Turns alternate; an empty answer is left out, and calls stand with the text before them."""
    call = Message("assistant", "", tool_calls=(ToolCall("c" * 80, "f g", {"a": (1,)}),))
    half = Message("assistant", 'I "look"\n')
    sent = ask(USER, Message("assistant", ""), USER, half, call, *results(call))["messages"]
    assert sent[0]["content"] == f"{USER.content}\n\n{USER.content}"
    assert sent[1]["content"] == half.content
    assert sent[1]["tool_calls"][0]["function"] == {"name": "f_g", "arguments": '{"a": [1]}'}
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]


WIRES = st.sampled_from(["0", "1", "", "call_x", "ferry_times:0", "x" * 40])
TEXTS = st.sampled_from(["", "High water.", 'A "quoted"\nline – 🌊', "<think>", "\ud83d"])


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """Questions and answers of any maker; calls with their results, or with some of them lost."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 6))):
        messages += [Message("user", draw(TEXTS))] * draw(st.integers(0, 2))
        if draw(st.booleans()):
            messages.append(Message("tool", "stray", tool_call_id=f"stray{turn}"))
        for step in range(draw(st.integers(0, 2))):
            messages += draw(answers(f"{turn}.{step}"))
    return messages


@st.composite
def answers(draw: st.DrawFn, where: str) -> list[Message]:
    """One answer with its results."""
    long = draw(st.sampled_from(["", "-" * 60]))
    calls = tuple(
        ToolCall(f"call_{where}.{n}{long}", draw(st.sampled_from(["f", "bad name"])), {"n": n})
        for n in range(draw(st.integers(0, 3)))
    )
    maker = draw(st.sampled_from(["own", "other model", "other", "nobody"]))
    raw = [
        {"id": draw(WIRES), "type": "function", "function": {"name": c.name, "arguments": ""}}
        for c in calls
    ]
    data = ProviderData(
        "other" if maker == "other" else "openai-chat",
        "elder-8b" if maker == "other model" else MODEL,
        f"1 {HOST}",
        ({"role": "assistant", "tool_calls": raw, "reasoning": "Hm."},),
    )
    answer = Message(
        "assistant",
        draw(TEXTS),
        tool_calls=calls,
        provider_data=None if maker == "nobody" else data,
    )
    return [answer, *(r for r in results(answer) if draw(st.integers(0, 9)))]


def fresh(messages: list[Message]) -> tuple[Message, ...]:
    return tuple(replace(message, encoded={}) for message in messages)


@given(transcripts(), st.sampled_from([MODEL, "elder-8b", SEARCHER]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_history_is_refused(messages: list[Message], model: str, tools: bool) -> None:
    """Whoever made it and whatever got lost, requests follow the rules; memos change nothing."""
    search = NativeSearch() if model == SEARCHER else None
    offered = (FERRY,) if tools and search is None else ()
    more: Any = {"native_search": search, "tools": offered, "system": "Be brief."}
    sent = ask(*messages, model=model, **more)
    assert sent == ask(*fresh(messages), model=model, **more)
    ask(*messages, model="elder-8b" if model == MODEL else MODEL)
    assert sent == ask(*messages, model=model, **more)
    told = json.dumps(sent)
    assert ("web_search" in told) == (search is not None)


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_a_request_begins_with_the_one_before(messages: list[Message]) -> None:
    """Nothing that was sent changes later: the server's cache of the prompt stays good."""
    whole = CODEC.encode(Request(MODEL, messages, system="Be brief.", tools=(FERRY,)))
    waiting: set[str] = set()
    for end, message in enumerate(messages, 1):
        waiting |= {call.id for call in message.tool_calls}
        waiting.discard(message.tool_call_id or "")
        if message.role == "user":
            waiting.clear()  # lost ones were answered by then
        if not waiting:
            before = Request(MODEL, messages[:end], system="Be brief.", tools=(FERRY,))
            assert whole.startswith(CODEC.encode(before).removesuffix(b'"}]}'))


def accepted() -> Iterator[Any]:
    for path in (
        *sorted(OURS.glob("*.json")),
        *sorted(LARGE.glob("openai_chat/*.json")),
        *sorted(LARGE.glob("ollama/v1_*.json")),
    ):
        for number, exchange in enumerate(exchanges(path)):
            if exchange["response"]["status"] == 200:
                yield pytest.param(exchange["request"]["body"], id=f"{path.stem}-{number}")


@each_row("body", list(accepted()))
def test_the_rules_accept_what_servers_accepted(body: dict[str, Any]) -> None:
    """The rules of these tests are not stricter than the servers."""
    check(body)


def test_the_rules_refuse_what_servers_refused() -> None:
    """A call without its result, and search options for a model that does not search."""
    bodies = [exchanges(OURS / "error_400_search_refused.json")[1]["request"]["body"]]
    large = LARGE / "openai_chat" / "search_options_unsupported_model_400.json"
    bodies += [exchanges(large)[0]["request"]["body"]] if large.is_file() else []
    for body in bodies:
        with pytest.raises(AssertionError):
            check(body)


# --- answers ---


def calls_of(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[tuple[str, Any]]:
    data = b"".join(chunk(delta) for delta in deltas) + chunk(None, finish) + DONE
    found = finished(data).message.tool_calls
    assert len({call.id for call in found}) == len(found)
    assert not any(call.problem for call in found)
    return [(call.name, dict(call.arguments)) for call in found]


@each_row(
    "deltas",
    [
        [piece(0, "a", "f", '{"n"'), piece(0, None, None, ":1}"), piece(1, "b", "f", '{"n":2}')],
        [piece(0, "a", "f", '{"n"'), piece(1, "b", "f", '{"n":2}'), piece(0, None, None, ":1}")],
        [piece(0, "0", "f"), piece(0, "0", "f", '{"n":1}'), piece(1, "0", "f", '{"n":2}')],
        [piece(0, None, "f", '{"n":1}'), piece(0, None, "f", '{"n":2}')],
        [piece(0, "a", "f", '{"n":1}'), piece(0, "b", "f", '{"n":2}')],
        [piece(0, "a", "f", '{"n":1}'), piece(0, "a", "f", '{"n":2}')],
        [piece(None, "a", "f", '{"n":1}'), piece(None, "b", "f", '{"n":2}')],
        [
            piece(None, None, "f", '{"n":'),
            piece(None, None, None, "1}"),
            piece(1, "b", "f", '{"n":2}'),
        ],
        [piece(0, "a", "f", {"n": 1}), piece(1, "b", "f", {"n": 2})],
        [piece(0, "a", "f", "{}"), piece(0, None, None, '{"n":1}'), piece(1, "b", "f", '{"n":2}')],
        [
            piece(0, "a", "f", '{"n":1}'),
            piece(0, "a", "f", '{"n":1}'),
            piece(1, "b", "f", '{"n":2}'),
        ],
    ],
)
def test_calls_however_a_server_streams_them(deltas: list[dict[str, Any]]) -> None:
    """By index, or without; in pieces or whole; ids repeated, missing, or new with each piece."""
    assert calls_of(*deltas) == [("f", {"n": 1}), ("f", {"n": 2})]
    assert calls_of(*deltas, finish="stop") == [("f", {"n": 1}), ("f", {"n": 2})]


def test_calls_of_an_answer_that_was_cut() -> None:
    """They are dropped: their arguments may be half of what was meant."""
    last = finished(stream_of("length_call_stream"))
    assert (last.stop_reason, last.message.tool_calls) == ("length", ())
    assert last.message.provider_data is None
    data = chunk(piece(0, "a", "f", "{}")) + chunk(None, "content_filter") + DONE
    assert finished(data).stop_reason == "refusal"
    assert not finished(data).message.tool_calls


def test_thinking_is_told_apart() -> None:
    """In its own field under either name, printed in tags, or as parts of the content."""
    for name in ("reasoning", "reasoning_content"):
        data = chunk({name: "Hm. "}) + chunk({"content": "Yes."}) + chunk(None, "stop") + DONE
        message = finished(data).message
        assert (message.thinking, message.content) == ("Hm. ", "Yes.")
    both = chunk({"reasoning": "Hm.", "reasoning_content": "Hm."}) + DONE
    assert finished(both).message.thinking == "Hm."
    message = finished(stream_of("think_tags_stream")).message
    assert (message.thinking, message.content) == (
        "The table says 07:40.",
        "High water is at 07:40.",
    )
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes."},
    ]
    message = finished(chunk({"content": parts}) + DONE).message
    assert (message.thinking, message.content) == ("Hm.", "Yes.")


def test_citations_lie_where_the_page_is_named() -> None:
    """Placed ones are cited; a page that the answer does not name was only found."""
    last = finished(stream_of("annotations_stream"))
    message = last.message
    (citation,) = message.citations
    assert [message.content[a:b] for a, b in citation.spans] == [
        "([Harbour table](https://tides.example/lindhoej))"
    ]
    assert [(s.url, s.state) for s in message.sources] == [
        ("https://tides.example/lindhoej", "cited"),
        ("https://moon.example/phase", "found"),
    ]
    assert (last.usage.searches, last.usage.cost_usd) == (2, 0.0076)


def test_citations_after_printed_thinking() -> None:
    """Offsets count from the beginning of the content, thinking included."""
    text = "<think>Let me look.</think>Low water is late. High water is early."
    start = text.index("High")
    note = {"url": "https://t.example/x", "start_index": start, "end_index": len(text)}
    notes = [{"type": "url_citation", "url_citation": note}]
    message = finished(chunk({"content": text, "annotations": notes}) + DONE).message
    (citation,) = message.citations
    assert [message.content[a:b] for a, b in citation.spans] == ["High water is early."]


def test_a_search_model_says_when_it_searched() -> None:
    """The API tells nothing of its searches; one that always searches did so before it spoke."""
    events = decode(stream_of("search_body"), "application/json", model=SEARCHER)
    assert events[:2] == [SearchStarted(), SearchFinished("")]
    last = events[-1]
    assert isinstance(last, Finished)
    assert len(last.message.citations) == 2
    assert "【" not in last.message.content
    assert not any(isinstance(e, SearchStarted) for e in decode(stream_of("text_stream")))


def test_pages_that_a_server_lists_keep_their_day() -> None:
    """Beside the answer, with a day where the server knows one."""
    pages = [{"title": "Tides", "url": "https://t.example/", "date": "2025-04-30"}]
    pages += [{"title": "Moon", "url": "https://m.example/", "date": None}]
    message = finished(chunk({"content": "High water."}, search_results=pages) + DONE).message
    assert [(s.url, s.published) for s in message.sources] == [
        ("https://t.example/", "2025-04-30"),
        ("https://m.example/", None),
    ]


def test_counts() -> None:
    """As reported; cached tokens are part of the input, reasoning of the output."""
    usage = finished(stream_of("text_stream")).usage
    assert (usage.input_tokens, usage.output_tokens) == (41, 12)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (32, 7)
    none = finished(stream_of("think_tags_stream")).usage
    assert none.input_tokens is none.cost_usd is none.searches is None
    odd = chunk({"content": "a"}, "stop", usage={"prompt_tokens": "9", "completion_tokens": -1})
    assert finished(odd).usage.input_tokens is None


def test_the_end_of_a_stream() -> None:
    """`[DONE]` or a reason ends it; anything else is not a whole answer, and worth another try."""
    text = chunk({"role": "assistant", "content": "High water"})
    assert finished(text + chunk(None, "stop")).message.content == "High water"
    assert finished(text + DONE).stop_reason == "stop"
    assert finished(text + b"data: [DONE]").stop_reason == "stop"
    call = chunk(piece(0, "a", "f", '{"day"'))
    for cut in (b"", text, text + chunk(None, "stop")[:-9], call, DONE):
        with pytest.raises(IncompleteError) as caught:
            decode(cut)
        assert caught.value.retryable


def test_one_answer_of_several() -> None:
    """Other choices, unknown members and unknown chunks are passed over."""
    other = {"choices": [{"index": 1, "delta": {"content": "no"}}], "object": "x"}
    data = b"data: " + json.dumps(other).encode() + b"\n\n"
    data += chunk({"content": "yes", "mood": 1}, "stop", weather="fair") + b'data: {"x": 1}\n\n'
    assert finished(data + DONE).message.content == "yes"


@pytest.mark.parametrize("kind", ["application/json", "", "text/event-stream"])
def test_an_answer_that_is_not_streamed(kind: str) -> None:
    """A plain body is the same answer, whatever it is called (but for an event stream)."""
    message = {
        "role": "assistant",
        "content": "One moment.",
        "reasoning": "Hm.",
        "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": '{"n":1}'}},
            {"id": "a", "function": {"name": "f", "arguments": '{"n":1}'}},
        ],
    }
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    data = json.dumps(body).encode()
    if kind == "text/event-stream":
        data = b"data: " + data + b"\n\n" + DONE
    last = finished(data, kind)
    assert (last.stop_reason, last.message.thinking) == ("tool_calls", "Hm.")
    assert len(last.message.tool_calls) == 2
    for broken in (b"", data[:40]):
        with pytest.raises(IncompleteError):
            decode(broken, kind)


def test_what_came_before_an_error_is_shown() -> None:
    """Text of the same piece is handed out first."""
    data = stream_of("error_mid_stream")
    events = iter(CODEC.decoder(Request(MODEL, ()), "text/event-stream").feed(data))
    assert next(events) == TextDelta("High water")
    with pytest.raises(ProviderError) as caught:
        next(events)
    assert (caught.value.code, caught.value.retryable) == ("rate_limited", True)
    assert "too busy upstream" in caught.value.message
    with pytest.raises(ProviderError) as caught:
        decode(stream_of("error_200_body"), "application/json")
    assert caught.value.code == "server_error"


@pytest.mark.parametrize("data", [b"data: 7\n\n", b'data: {"choices": 7}\n\n', b"data: {]\n\n"])
def test_what_is_not_this_api(data: bytes) -> None:
    """Is said, with the setting to look at."""
    with pytest.raises(ProviderError) as caught:
        decode(data)
    assert caught.value.code == "bad_response"


@given(st.integers(0, 60), st.sampled_from(["tool_call_bent_ids_stream", "annotations_stream"]))
@settings(max_examples=40, deadline=None)
def test_cuts_never_make_an_answer(back: int, name: str) -> None:
    """A stream that broke off before its end mark and without a reason is never an answer."""
    data = stream_of(name)
    end = data.index(b'finish_reason":"') if b'finish_reason":"' in data else len(data) - 14
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    events = list(decoder.feed(data[: end - back]))
    assert all(isinstance(event, TextDelta | ThinkingDelta) for event in events)
    with pytest.raises(IncompleteError):
        list(decoder.close())


# --- errors ---


@each_row(
    ("status", "body", "code", "retryable"),
    [
        (401, {"error": {"message": "Unauthorized", "code": None}}, "unauthorized", False),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, "quota", False),
        (403, {"error": {"message": "Not for you"}}, "forbidden", False),
        (429, {"error": {"message": "x", "code": "insufficient_quota"}}, "quota", False),
        (429, {"error": "slow down"}, "rate_limited", True),
        (404, {"detail": "Not Found"}, "bad_url", False),
        (404, "<html>", "bad_url", False),
        (404, {"error": {"message": "The model `x` does not exist."}}, "model_not_found", False),
        (400, {"error": {"message": "tide/x is not a valid model ID"}}, "model_not_found", False),
        (
            404,
            {"error": {"message": "No endpoints that support tool use."}},
            "no_tools",
            False,
        ),
        (500, {"error": {"message": "tools param requires --jinja flag"}}, "no_tools", False),
        (
            400,
            {"error": {"type": "exceed_context_size_error", "message": "too long"}},
            "context_length",
            False,
        ),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 9 tokens."},
            "context_length",
            False,
        ),
        (422, {"detail": [{"msg": "Extra inputs"}]}, "bad_request", False),
        (
            400,
            {"error": {"message": "Unknown field", "param": "stream_options"}},
            "usage_refused",
            False,
        ),
        (
            400,
            {"error": {"message": "Bad schema of 'web_search'"}},
            "bad_request",
            False,
        ),
        (503, {"error": {"message": "Loading model", "code": 503}}, "server_error", True),
        (502, "<html>bad gateway</html>", "server_error", True),
    ],
)
def test_errors_in_our_words(status: int, body: Any, code: str, retryable: bool) -> None:
    """Each says what happened, what to do, and whether another try can help."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = CODEC.error(status, {"retry-after": "3"}, data)
    assert (error.code, error.retryable, error.status) == (code, retryable, status)
    assert error.message
    assert error.remedy
    assert error.retry_after == 3


def test_a_refused_search_can_fall_back() -> None:
    """The model refuses to search: the caller may take another way."""
    for name in ("web_search_options", None):
        details = {"message": "Web search options not supported.", "param": name}
        error = CODEC.error(400, {}, json.dumps({"error": details}).encode())
        assert isinstance(error, NativeSearchRejected)


def test_keys_are_never_quoted() -> None:
    """Neither ours nor what looks like one; and the server decides whether to try again."""
    body = json.dumps({"error": {"message": f"Bad {KEY} and sk-abcdefgh, Bearer abc"}}).encode()
    error = CODEC.error(400, {"x-should-retry": "true"}, body)
    assert KEY not in error.message
    assert "abcdefgh" not in error.message
    assert error.retryable
    assert KEY not in repr(CODEC) + repr(ChatServer("x", KEY))
