"""Anthropic: what is sent, how answers are read, and what its errors mean."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from searchloop.agent.providers.anthropic import MessagesCodec
from searchloop.agent.providers.anthropic.request import MODELS
from searchloop.agent.types import (
    Message,
    NativeSearch,
    Request,
    ToolSpec,
)
from tests.agent.providers.vendors import ANTHROPIC, FERRY, USER
from tests.rules_anthropic import check
from tests.tables import each_row

MODEL, CODEC = ANTHROPIC.model, ANTHROPIC.codec
ask, stream_of, finished = ANTHROPIC.ask, ANTHROPIC.stream_of, ANTHROPIC.finished


def events_of(*events: Mapping[str, Any]) -> bytes:
    return ANTHROPIC.wire(events)


TABLE = files("searchloop.agent.providers.anthropic").joinpath("models.toml")
CLAUDES = tomllib.loads(TABLE.read_text("utf-8"))["models"]
TIDES = "https://tides.example/lindhoj"


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


def test_the_search_tools() -> None:
    """Every choice of the user is in the tools; allowed and blocked are never given together."""
    search = NativeSearch(("a.example", "b.example"), ("c.example", "b.example"), "DK", 3)
    assert ask(native_search=search)["tools"] == [
        {
            "type": "web_search_20260318",
            "name": "web_search",
            "allowed_callers": ["direct"],
            "max_uses": 3,
            "allowed_domains": ["a.example"],
            "user_location": {"type": "approximate", "country": "DK"},
        },
        {
            "type": "web_fetch_20260318",
            "name": "web_fetch",
            "allowed_callers": ["direct"],
            "max_uses": 8,
            "max_content_tokens": 20_000,
            "citations": {"enabled": True},
            "allowed_domains": ["a.example"],
            "cache_control": {"type": "ephemeral"},
        },
    ]
    blocked = ask(native_search=NativeSearch(blocked_domains=("c.example",)))["tools"]
    assert [tool["blocked_domains"] for tool in blocked] == [["c.example"]] * 2


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


# --- answers ---


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
    """It is never an empty bubble."""
    assert finished(events_of(START) + end("refusal")).message.content


@each_row("said", ["of_tomorrow", None])
def test_why_an_answer_ends(said: str | None) -> None:
    """A reason nobody has heard of is an ordinary end; the others are in the contract's table."""
    data = events_of(START) + block(0, {"type": "text", "text": "Hi"}) + end(said)
    assert finished(data).stop_reason == "stop"


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


# --- the provider ---


def test_functions() -> None:
    """Names and schemas as the API takes them; nothing is enforced, so nothing is rewritten."""
    combined = {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}
    sent = ask(tools=(FERRY, ToolSpec("mcp.time now", "Now.", combined)))["tools"]
    assert [tool["name"] for tool in sent] == ["ferry_times", "mcp_time_now"]
    assert sent[0]["input_schema"] == FERRY.parameters
    assert sent[1]["input_schema"] == {"type": "object", "properties": {"a": {}}}
    assert not any("strict" in tool for tool in sent)
