"""Arguments in the right types, calls that repeat, and an end to asking the same thing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import Message, Request, ToolCall
from tests.agent.guard.guarding import made
from tests.agent.scripted import Memory, Scripted, Step, call, calls, says
from tests.tables import each_row

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "n": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "sites": {"type": "array", "items": {"type": "string"}},
        "range": {"type": "string", "enum": ["d", "w"]},
        "options": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "any": {},
        "odd": True,
    },
    "required": ["query"],
    "additionalProperties": False,
}


@each_row(
    ("given_", "meant"),
    [
        ({"n": "5"}, {"n": 5}),
        ({"n": 5.0}, {"n": 5}),
        ({"n": "5.0"}, {"n": 5}),
        ({"n": "five"}, {"n": "five"}),
        ({"n": "true"}, {"n": "true"}),
        ({"share": "0.5"}, {"share": 0.5}),
        ({"share": "NaN"}, {"share": "NaN"}),
        ({"deep": "True"}, {"deep": True}),
        ({"deep": "yes"}, {"deep": "yes"}),
        ({"query": 1999}, {"query": "1999"}),
        ({"query": "5"}, {"query": "5"}),
        ({"sites": '["a", "b"]'}, {"sites": ["a", "b"]}),
        ({"sites": "a.example"}, {"sites": ["a.example"]}),
        ({"options": '{"n": "3"}'}, {"options": {"n": 3}}),
        ({"range": None}, {}),
        ({"range": ""}, {}),
        ({"query": None}, {"query": None}),
        ({"any": "5", "odd": "5", "new": "5"}, {"any": "5", "odd": "5", "new": "5"}),
    ],
)
def test_arguments_are_put_into_the_schema_s_types(
    given_: dict[str, Any], meant: dict[str, Any]
) -> None:
    """What can only mean one thing is put right; everything else stays as it was."""
    assert coerced(given_, SCHEMA) == meant


def run(tools: list[Tool], *steps: Step) -> tuple[Outcome, list[Message], Memory, Scripted]:
    """A turn in which the model takes these steps."""
    provider, memory = Scripted(steps), Memory()
    messages = [Message("user", "When?")]
    outcome = asyncio.run(
        run_agent_loop(
            messages,
            Request("one", ()),
            provider=provider,
            tools=Toolset(tools, "agent", SourceTable()),
            emit=memory,
        )
    )
    return outcome, messages, memory, provider


def results(messages: list[Message]) -> list[Message]:
    """The tools' answers."""
    return [m for m in messages if m.role == "tool"]


def test_the_third_time_ends_the_searching() -> None:
    """Three equal calls, in whatever spelling: the next request asks for an answer, a notice says
    why.
    """
    look, asked = made("look", "network")
    spelt = ({"text": "ferry times", "url": "1"}, {"url": 1, "text": " ferry\n times"})
    given = [ToolCall(f"call-{n}", "look", spelt[n % 2]) for n in (1, 2, 3)]
    outcome, messages, memory, provider = run([look], *map(calls, given), says("At 07:40."))
    assert len(asked) == 2
    assert [r.answer_now for r in provider.requests] == [False, False, False, True]
    first, second, third = results(messages)
    assert not first.is_error
    assert not second.is_error
    assert "Answer now" in third.content
    assert [n["code"] for n in memory.of("notice")] == ["repeated_call"]
    assert (outcome.reason, outcome.message.content) == ("stop", "At 07:40.")


def test_a_model_that_will_not_stop_meets_a_limit() -> None:
    """Who goes on calling when an answer was asked for is cut, and the run says at what."""
    look, asked = made("look", "network")
    steps = [calls(call("look", n, text="ferry")) for n in (1, 2, 3, 4)]
    outcome, *_ = run([look], *steps)
    assert (outcome.reason, outcome.limit) == ("limit", "the same call 3 times")
    assert len(asked) == 2


def test_a_server_may_be_polled() -> None:
    """Equal calls of an MCP tool all run: what it waits for may be done by now."""
    look, asked = made("look", "network")
    steps = [calls(call("look", n, text="job 7")) for n in range(1, 7)]
    outcome, _, memory, _ = run([replace(look, origin="mcp")], *steps, says("Done."))
    assert [each["text"] for each in asked] == ["job 7"] * 6
    assert (outcome.reason, memory.of("notice")) == ("stop", [])


def test_a_change_makes_everything_new() -> None:
    """Calls that change something always run, and what is read afterwards is read again."""
    reading, asked = made("look", "read")
    writing, written = made("write", "write")
    steps = []
    for n in range(1, 9, 2):
        steps += [calls(call("look", n, text="a")), calls(call("write", n + 1, text="a"))]
    outcome, *_ = run([reading, writing], *steps, says("Done."))
    assert (len(asked), len(written)) == (4, 4)
    assert outcome.reason == "stop"


def test_a_wrong_name_asked_thrice_is_enough() -> None:
    """A tool that does not exist is answered with what exists, and not for ever."""
    look, _ = made("look", "network")
    steps = [calls(call("serch", n, text="a")) for n in (1, 2, 3)]
    _, messages, _, provider = run([look], *steps, says("I cannot look it up."))
    assert "Tools you can call: look" in results(messages)[0].content
    assert provider.requests[-1].answer_now
