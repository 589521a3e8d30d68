"""xAI: its searches of the web and of X through the Responses API, costs, and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import (
    Finished,
    NativeSearch,
    PageOpened,
    SearchFinished,
    SearchStarted,
    StreamEvent,
)
from tests.agent.providers.vendors import USER
from tests.agent.providers.vendors import XAI as VENDOR

MODEL, body = VENDOR.model, VENDOR.ask


def decode(name: str) -> list[StreamEvent]:
    data = VENDOR.stream_of(name)
    return VENDOR.decode(data, "application/json" if data.startswith(b"{") else None)


def finished(name: str) -> Finished:
    last = decode(name)[-1]
    assert isinstance(last, Finished)
    return last


TIDES = "https://tides.example/lindhoj"


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
