"""xAI: its searches of the web and of X through the Responses API, costs, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.providers.xai import XAI, XAICodec, create
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    PageOpened,
    Request,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    ToolSpec,
)
from tests.tables import each_row

OURS = Path(__file__).parents[2] / "recordings" / "xai"
CODEC = XAICodec("test-key-0123456789")
MODEL = "grok-4.3"
USER = Message("user", "When is high water?")
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
TIDES = "https://tides.example/lindhoj"


def body(*messages: Message, model: str = MODEL, **more: Any) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(CODEC.encode(Request(model, messages or (USER,), **more)))
    return sent


def decode(name: str) -> list[StreamEvent]:
    (exchange,) = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"]
    answer = exchange["response"]
    data = (answer.get("text") or json.dumps(answer["body"])).encode()
    decoder = CODEC.decoder(Request(MODEL, ()), answer["headers"]["content-type"])
    return [*decoder.feed(data), *decoder.close()]


def finished(name: str) -> Finished:
    last = decode(name)[-1]
    assert isinstance(last, Finished)
    return last


def test_a_request() -> None:
    """Stateless and streamed, only with members that the server is known to take."""
    assert body(system="Be brief.", tools=(FERRY,), max_output_tokens=9, session_id="s") == {
        "model": MODEL,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "ferry_times",
                "description": "When ferries leave.",
                "parameters": FERRY.parameters,
                "strict": False,
            }
        ],
        "input": [{"role": "user", "content": "When is high water?"}],
        "max_output_tokens": 9,
    }
    assert "include" not in body(model="grok-4-1-fast-non-reasoning")
    assert body(tools=(FERRY,), answer_now=True)["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("search", "web", "posts"),
    [
        (NativeSearch(), {}, True),
        (NativeSearch(allowed_domains=("a.example",)), {"allowed_domains": ["a.example"]}, False),
        (NativeSearch(allowed_domains=("x.com",)), {"allowed_domains": ["x.com"]}, True),
        (NativeSearch(blocked_domains=("a.example",)), {"excluded_domains": ["a.example"]}, True),
        (NativeSearch(blocked_domains=("x.com",)), {"excluded_domains": ["x.com"]}, False),
    ],
)
def test_the_search_tools(search: NativeSearch, web: dict[str, Any], posts: bool) -> None:
    """The switch offers both; domains that leave X out leave its search out."""
    tool = {"type": "web_search", **({"filters": web} if web else {})}
    assert body(native_search=search)["tools"] == [tool, {"type": "x_search"}][: 1 + posts]
    assert "tools" not in body()


def test_a_searched_answer() -> None:
    """Searches and pages are told, the mark is a citation, billed searches and cost count."""
    events = decode("web_search_stream")
    steps = [e for e in events if isinstance(e, SearchStarted | SearchFinished | PageOpened)]
    assert steps == [
        SearchStarted("high water Lindhøj"),
        SearchFinished("high water Lindhøj", "ok", 2),
        PageOpened(TIDES),
    ]
    end = finished("web_search_stream")
    (cited,) = end.message.citations
    assert (cited.url, cited.title) == (TIDES, "")
    assert end.message.thinking == "A table has it."
    assert (end.usage.searches, end.usage.cost_usd, end.usage.cached_tokens) == (1, 0.01615, 2048)


def test_the_vendor_s_number_becomes_ours() -> None:
    """Its [1] is the first page of its answer, which is another number in a long session."""
    table = SourceTable()
    table.meet("https://other.example/", "Other", "cited")
    message = settle(finished("web_search_stream").message, table)
    (cited,) = message.citations
    assert message.content == "**07:40.**[2] The harbour says so too."
    assert [message.content[a:b] for a, b in cited.spans] == ["[2]"]


@pytest.mark.parametrize(
    ("name", "searches"), [("x_search_stream", 2), ("x_search_body", 1)], ids=["stream", "body"]
)
def test_a_search_of_posts(name: str, searches: int) -> None:
    """It is a search like any other, no call of ours; posts without a place are cited."""
    events, end = decode(name), finished(name)
    assert SearchFinished("Lindhøj tide", "ok", None) in events
    assert end.message.tool_calls == ()
    assert end.stop_reason == "stop"
    assert end.usage.searches == searches
    assert [c.url for c in end.message.citations] == [
        "https://x.com/i/status/199053",
        "https://x.com/i/status/7",
    ]
    if name == "x_search_stream":
        assert PageOpened("https://x.com/i/status/199053") in events


def test_history_goes_back() -> None:
    """Searches of the web go back as they came; calls of the server's own are text."""
    web, posts = finished("web_search_stream").message, finished("x_search_stream").message
    again = body(USER, web, USER, posts, USER, native_search=NativeSearch())["input"]
    kinds = [item.get("type", item.get("role")) for item in again]
    raw = ["reasoning", "web_search_call", "web_search_call", "reasoning"]
    assert kinds == ["user", *raw, "message", "user", "assistant", "user"]
    assert "sources" not in json.dumps(again)
    off = [item.get("type", item.get("role")) for item in body(USER, web, USER)["input"]]
    assert off == ["user", "assistant", "user"]
    other = body(USER, web, USER, model="grok-4.5")["input"]
    assert [item["role"] for item in other] == ["user", "assistant", "user"]


def test_a_call_and_its_result() -> None:
    """The reasoning goes back with the call that follows from it."""
    message = finished("function_call_stream").message
    (call,) = message.tool_calls
    result = Message("tool", "07:40", tool_call_id=call.id, tool_name=call.name)
    sent = body(USER, message, result, tools=(FERRY,))["input"]
    assert [item.get("type") for item in sent] == [
        *(None, "reasoning", "function_call", "function_call_output")
    ]
    assert sent[2]["call_id"] == sent[3]["call_id"] == "call_77"


@each_row(
    ("status", "said", "code"),
    [
        (400, "Incorrect API key provided. You can obtain an API key.", "unauthorized"),
        (404, "The model grok-9 does not exist or your team has no access.", "model_not_found"),
        (400, "This model's maximum prompt length is 131072 but it is 537812.", "context_length"),
        (410, "Live search is gone.", "bad_request"),
        (429, "Too many requests.", "rate_limited"),
        (400, "Model grok-3 does not support the web_search tool.", "native_search_rejected"),
    ],
)
def test_refusals(status: int, said: str, code: str) -> None:
    """The server words errors as a bare sentence, a bad key too."""
    answer = json.dumps({"code": "Some fault", "error": said}).encode()
    error = CODEC.error(status, {}, answer)
    assert error.code == code
    assert error.remedy


def test_what_models_can_do() -> None:
    """Models since the fourth search beside tools; older ones do not."""
    provider = create({"XAI_API_KEY": "test-key-0123456789"}, Transport())
    assert isinstance(provider, XAI)
    can = [provider.capabilities(m) for m in ("grok-4.5", "grok-4-1-fast", "grok-3-mini")]
    assert [(c.native_search, c.tools_with_native_search) for c in can] == [
        (True, True),
        (True, True),
        (False, False),
    ]
