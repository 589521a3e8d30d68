"""A question with a schema: its answer is JSON that fits, maybe at a second try, or it fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.calls.schema import closed
from searchloop.agent.providers import Abilities
from searchloop.agent.run.question import TurnOptions
from searchloop.agent.types import Limits, NativeSearch, Usage
from tests.agent.scripted import (
    Scripted,
    SearchApp,
    Step,
    call,
    calls,
    found,
    open_house,
    page,
    says,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "ids": {"type": "array"}},
    "required": ["city", "ids"],
}
GOOD = '{"city": "Oslo", "ids": [1, 7]}'
BAD = '{"city": "Oslo"}'


def asked(home: Path, *steps: Step, search: str = "off", **turn: Any) -> tuple[Any, Scripted, Any]:
    """The end of a run, the provider, and the events."""

    async def run() -> tuple[Any, Scripted, Any]:
        scripted = Scripted(steps)
        scripted.abilities = Abilities(options=("temperature", "max_tokens"))
        app = SearchApp({"/api/web-search": found("https://a.example/")})
        app.routes["/api/open-page"] = page("Oslo is the capital.")
        async with open_house(home, scripted, app=app, search=search) as house:
            end = await house.ask("Which city?", **turn)
            return end.data, scripted, house.log.read(house.session)

    return asyncio.run(run())


@pytest.mark.parametrize("written", [GOOD, f"```json\n{GOOD}\n```", f"\n {GOOD}\n"])
def test_an_answer_that_fits_is_all_json(tmp_path: Path, written: str) -> None:
    """The model gets the schema, and no second request; a fence around its answer is removed."""
    end, scripted, _ = asked(tmp_path, says(written), schema=SCHEMA)
    assert (end["reason"], end["answer"]) == ("stop", GOOD)
    assert len(scripted.requests) == 1
    assert scripted.requests[0].schema == closed(SCHEMA)
    assert json.dumps(SCHEMA) in scripted.requests[0].system


def test_one_that_does_not_fit_is_written_anew_once(tmp_path: Path) -> None:
    """The second request says what was wrong; both count."""
    first = says(BAD, usage=Usage(input_tokens=5))
    second = says(GOOD, usage=Usage(input_tokens=6))
    end, scripted, events = asked(tmp_path, first, second, schema=SCHEMA)
    assert (end["reason"], end["answer"]) == ("stop", GOOD)
    assert end["usage"]["input_tokens"] == 11
    again = scripted.requests[1]
    assert again.answer_now
    assert "'ids' is a required property" in again.messages[-1].content
    shown = "".join(e.data["text"] for e in events if e.type == "message")
    assert BAD not in shown, "nobody reads an answer that is replaced"


def test_one_that_never_fits_fails_with_a_sentence(tmp_path: Path) -> None:
    """The answer is kept, the run is not a success."""
    end, _, _ = asked(tmp_path, says("Oslo."), says(BAD), schema=SCHEMA)
    assert end["reason"] == "incomplete"
    assert end["error"]["code"] == "schema_mismatch"
    assert "'ids' is a required property" in end["error"]["message"]
    assert end["answer"] == BAD


def test_lists_are_no_marks_of_sources(tmp_path: Path) -> None:
    """`[1, 7]` stays although there is a source 1 and none 7; a mark in a string cites."""
    answer = '{"city": "Oslo [1]", "ids": [1, 7]}'
    search = calls(call("web_search", query="capital"))
    opened = calls(call("open_page", 2, url="https://a.example/"))
    steps = (search, opened, says(answer))
    end, scripted, _ = asked(tmp_path, *steps, search="local", schema=SCHEMA)
    assert end["answer"] == answer
    assert [c["n"] for c in end["citations"]] == [1]
    (mark,) = end["citations"][0]["marks"]
    assert answer[slice(*mark["span"])] == "[1]"
    assert all(request.schema == closed(SCHEMA) for request in scripted.requests)


def test_a_run_that_is_taken_over_keeps_its_instructions() -> None:
    """Another process reads them from the lease, as JSON; older leases have none."""
    own = Instructions.of("Be brief.", {"stop": "END", "seed": 1}, SCHEMA)
    turn = TurnOptions(Limits(), NativeSearch(), "auto", own)
    assert TurnOptions.of(json.loads(json.dumps(turn.as_data()))) == turn
    assert TurnOptions.of({}) == TurnOptions()
