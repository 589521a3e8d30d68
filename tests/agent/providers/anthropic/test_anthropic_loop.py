"""Anthropic under the loop: answers in several parts, over the wire and through the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log.events import Event, messages_from
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.providers.anthropic import create
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Message,
    NativeSearch,
    Request,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from tests.fakes import FakeServer, Reply
from tests.rules_anthropic import check

OURS = Path(__file__).resolve().parents[3] / "recordings" / "anthropic"
FERRY = ToolSpec("ferry_times", "When ferries leave.", {"type": "object", "properties": {}})
TIDES = "https://tides.example/lindhoj"


class Kept:
    """An emitter that keeps what a log would."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.activities: list[StreamEvent] = []

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        pass

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        # Through JSON and back, as a stored event comes.
        self.events.append(Event(len(self.events), type, json.loads(json.dumps(data)), 0.0))

    async def activity(self, event: StreamEvent) -> None:
        self.activities.append(event)


class Ferries:
    """One tool, which knows when ferries leave; or finds the tide table, if told so."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.specs = (FERRY,)
        self.exhausted: str | None = None
        self._result = result

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Any) -> list[ToolResult]:
        results = [ToolResult(call.id, call.name, **self._result) for call in calls]
        for result in results:
            await emit.event(
                "tool_result",
                {
                    "call_id": result.call_id,
                    "name": result.name,
                    "content": result.content,
                    "is_error": False,
                    "details": dict(result.details),
                },
            )
        return results


def parts(name: str) -> list[Reply]:
    exchanges = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"]
    return [Reply(exchange["response"]["text"].encode()) for exchange in exchanges]


def turn(
    server: FakeServer, messages: list[Message], search: bool, **result: Any
) -> tuple[Outcome, Kept]:
    emit = Kept()
    request = Request(
        "claude-sonnet-5-5", (), "S", native_search=NativeSearch() if search else None
    )

    async def main() -> Outcome:
        transport = Transport()
        provider = create({"ANTHROPIC_BASE_URL": server.url}, transport)
        tools = Ferries(result or {"content": "09:15"})
        try:
            return await run_agent_loop(
                messages, request, provider=provider, tools=tools, emit=emit
            )
        finally:
            await transport.aclose()

    return asyncio.run(main()), emit


@pytest.mark.parametrize("name", ["pause_turn_stream", "search_and_call_stream"])
def test_an_answer_in_two_parts(name: str) -> None:
    """It goes on by itself; stored and read back, the transcript gives the same bytes."""
    messages = [Message("user", "When is high water?")]
    with FakeServer(parts(name)) as server:
        outcome, emit = turn(server, messages, search=True)
        first, second = server.requests
    for received in (first, second):
        check(received.json)
    assert second.body.startswith(first.body[: first.body.rindex(b'],"max_tokens"')])
    assert outcome.reason == "stop"
    assert outcome.message.citations
    stored = [Event(-1, "user_message", {"text": messages[0].content}, 0.0), *emit.events]
    again = messages_from(stored)
    assert len(again) == len(messages)
    again.append(Message("user", "And tomorrow?"))
    with FakeServer([parts("web_search_stream")[1]]) as server:
        turn(server, again, search=True)
        (third,) = server.requests
    check(third.json)
    assert third.body.startswith(second.body[: second.body.rindex(b'],"max_tokens"')])


def test_our_own_search_is_cited() -> None:
    """Results go out as citable blocks, and the citation comes back with the session's number."""
    rows = [{"n": 1, "url": TIDES, "title": "Tide table of Lindhøj"}]
    content = f"1 results.\n<<f>>\n[1] Tide table of Lindhøj\n{TIDES}\nHigh water 07:40.\n<<f end>>"
    details = {"kind": "search", "query": "q", "status": "ok", "results": rows}
    messages = [Message("user", "When is high water?")]
    with FakeServer(parts("local_results_stream")) as server:
        outcome, _ = turn(server, messages, search=False, content=content, details=details)
        check(server.requests[1].json)
    (result,) = server.requests[1].json["messages"][2]["content"]
    assert [block["source"] for block in result["content"]] == [TIDES]
    (citation,) = outcome.message.citations
    assert (citation.n, citation.url, citation.quote) == (1, TIDES, "High water 07:40.")
