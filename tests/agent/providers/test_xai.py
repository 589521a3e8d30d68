"""xAI: its searches of the web and of X through the Responses API, costs, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import (
    Finished,
    NativeSearch,
    StreamEvent,
)
from tests.agent.providers.vendors import XAI as VENDOR

MODEL, body = VENDOR.model, VENDOR.ask


def decode(name: str) -> list[StreamEvent]:
    data = VENDOR.stream_of(name)
    return VENDOR.decode(data, "application/json" if data.startswith(b"{") else None)


def finished(name: str) -> Finished:
    last = decode(name)[-1]
    assert isinstance(last, Finished)
    return last


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


def test_the_vendor_s_number_becomes_ours() -> None:
    """Its [1] is the first page of its answer, which is another number in a long session."""
    table = SourceTable()
    table.meet("https://other.example/", "Other", "cited")
    message = settle(finished("web_search_stream").message, table)
    (cited,) = message.citations
    assert message.content == "**07:40.**[2] The harbour says so too."
    assert [message.content[a:b] for a, b in cited.spans] == ["[2]"]
