"""Arguments in the right types, calls that repeat, and an end to asking the same thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.types import ToolCall
from tests.agent.guard.guarding import made
from tests.agent.scripted import Played, call, calls, says
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


def test_the_third_time_ends_the_searching() -> None:
    """Three equal calls, in whatever spelling: the next request asks for an answer, a notice says
    why.
    """
    look, asked = made("look", "network")
    spelt = ({"text": "ferry times", "url": "1"}, {"url": 1, "text": " ferry\n times"})
    given = [ToolCall(f"call-{n}", "look", spelt[n % 2]) for n in (1, 2, 3)]
    played = Played([look], *map(calls, given), says("At 07:40."))
    assert len(asked) == 2
    assert [r.answer_now for r in played.provider.requests] == [False, False, False, True]
    assert [m.is_error for m in played.results[:2]] == [False, False]
    assert "Answer now" in played.results[2].content
    assert [n["code"] for n in played.memory.of("notice")] == ["repeated_call"]
    assert (played.outcome.reason, played.outcome.message.content) == ("stop", "At 07:40.")


def test_a_model_that_will_not_stop_meets_a_limit() -> None:
    """Who goes on calling when an answer was asked for is cut, and the run says at what."""
    look, asked = made("look", "network")
    steps = [calls(call("look", n, text="ferry")) for n in (1, 2, 3, 4)]
    outcome = Played([look], *steps).outcome
    assert (outcome.reason, outcome.limit) == ("limit", "the same call 3 times")
    assert len(asked) == 2


def test_a_server_may_be_polled() -> None:
    """Equal calls of an MCP tool all run: what it waits for may be done by now."""
    look, asked = made("look", "network")
    steps = [calls(call("look", n, text="job 7")) for n in range(1, 7)]
    played = Played([replace(look, origin="mcp")], *steps, says("Done."))
    assert [each["text"] for each in asked] == ["job 7"] * 6
    assert (played.outcome.reason, played.memory.of("notice")) == ("stop", [])


def test_a_change_makes_everything_new() -> None:
    """Calls that change something always run, and what is read afterwards is read again."""
    reading, asked = made("look", "read")
    writing, written = made("write", "write")
    steps = []
    for n in range(1, 9, 2):
        steps += [calls(call("look", n, text="a")), calls(call("write", n + 1, text="a"))]
    played = Played([reading, writing], *steps, says("Done."))
    assert (len(asked), len(written), played.outcome.reason) == (4, 4, "stop")


def test_a_wrong_name_asked_thrice_is_enough() -> None:
    """A tool that does not exist is answered with what exists, and not for ever."""
    look, _ = made("look", "network")
    steps = [calls(call("serch", n, text="a")) for n in (1, 2, 3)]
    played = Played([look], *steps, says("I cannot look it up."))
    assert "Tools you can call: look" in played.results[0].content
    assert played.provider.requests[-1].answer_now
