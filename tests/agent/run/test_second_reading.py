"""A model judges the marks of an answer; its verdicts stand beside ours."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.log.events import Event
from searchloop.agent.run.second_reading import Read, marks_of, second_reading
from searchloop.agent.types import Usage
from tests.agent.scripted import House, Scripted, SearchApp, call, calls, found, open_house, says
from tests.agent.scripted import page as read_page
from tests.tables import each_row

URL = "https://a.example/"
READ = Read(1, 0, "It opened in 1931.", "The bridge was opened in 1931.")


def judged(verdict: object, reason: object = "It says so.") -> str:
    """A model's answer."""
    return json.dumps({"verdict": verdict, "reason": reason})


async def read_again(answer: str) -> dict[str, Any]:
    """What one answer of the model comes to."""
    model = Scripted([says(answer, usage=Usage(input_tokens=9, output_tokens=2))])
    found = [r async for r in second_reading([READ], model, "one", lambda usage: 0.5)]
    request = model.requests[0]
    assert (request.tools, request.native_search) == ((), None)
    assert json.loads(request.messages[0].content) == {"claim": READ.claim, "passage": READ.passage}
    return found[0]


@each_row(
    ("answer", "verdict", "reason"),
    [
        (judged("supported"), "supported", "It says so."),
        (judged(" Contradicted"), "contradicted", "It says so."),
        ("```json\n" + judged("contradicted") + "\n```", "contradicted", "It says so."),
        ("I think " + judged("unclear") + ".", "unclear", "It says so."),
        (judged("quoted"), "unclear", "The model gave no verdict."),
        (judged(["supported"]), "unclear", "The model gave no verdict."),
        (judged("supported", 5), "unclear", "The model gave no verdict."),
        ("", "unclear", "The model gave no verdict."),
        ("{" * 5000, "unclear", "The model gave no verdict."),
    ],
)
def test_a_models_answer_is_a_verdict_or_unclear(answer: str, verdict: str, reason: str) -> None:
    """It reads claim and passage alone; whatever else it says is no verdict."""
    said = asyncio.run(read_again(answer))
    assert (said["verdict"], said["reason"]) == (verdict, reason)
    assert (said["n"], said["mark"], said["usage"]["cost_usd"]) == (1, 0, 0.5)


async def answered(house: House) -> Event:
    """A finished answer with one mark of a page that was read."""
    return await house.ask("When was it opened?", search="local")


def script(*more: Any) -> Scripted:
    """A model that searches, reads, answers, and then says `more`."""
    return Scripted(
        [
            calls(call("web_search", 1, query="bridge")),
            calls(call("open_page", 2, url=URL)),
            says("The bridge was opened in 1931 [1]."),
            *more,
        ]
    )


def pages() -> SearchApp:
    """A search backend with one page."""
    opened = read_page("The bridge was opened in 1931.")
    return SearchApp({"/api/web-search": found(URL), "/api/open-page": opened})


def asked(house: House) -> int:
    """The number of the first question."""
    return next(e.seq for e in house.log.read(house.session) if e.type == "user_message")


def readings(house: House) -> list[Event]:
    """What was stored of second readings."""
    return [e for e in house.log.read(house.session) if e.type == "second_reading"]


def test_readings_are_stored_beside_the_verdicts(tmp_path: Path) -> None:
    """One event a mark, with the model's name and cost; our own verdict stays."""

    async def scenario() -> None:
        async with open_house(tmp_path, script(says(judged("contradicted"))), app=pages()) as house:
            finished = await answered(house)
            turn = asked(house)
            begun = await house.runner.read_again(house.session, turn, None)
            assert begun == {"model": "scripted:one", "marks": 1}
            await asyncio.gather(*house.runner._readings.values())
            (event,) = readings(house)
            assert (event.data["turn"], event.data["left"]) == (turn, 0)
            assert (event.data["n"], event.data["verdict"]) == (1, "contradicted")
            (citation,) = finished.data["citations"]
            assert citation["marks"][0]["verdict"] == "supported"
            with pytest.raises(ConfigError, match="no language model"):
                await house.runner.read_again(house.session, turn, "builtin:extractive")
            with pytest.raises(ConfigError, match="no finished answer"):
                await house.runner.read_again(house.session, turn + 99, None)

    asyncio.run(scenario())


def test_a_model_that_fails_says_why(tmp_path: Path) -> None:
    """The error becomes the last event; the chat goes on."""
    failing = [ProviderError("overloaded", "It is busy.", "Try later.")]

    async def scenario() -> None:
        async with open_house(tmp_path, script(failing, says("Yes.")), app=pages()) as house:
            await answered(house)
            turn = asked(house)
            await house.runner.read_again(house.session, turn, None)
            await asyncio.gather(*house.runner._readings.values())
            (event,) = readings(house)
            assert event.data["error"]["message"] == "It is busy."
            assert (await house.ask("Really?")).data["answer"] == "Yes."

    asyncio.run(scenario())


def test_an_answer_without_passages_has_nothing_to_read(tmp_path: Path) -> None:
    """It says what to do."""

    async def scenario() -> None:
        async with open_house(tmp_path, Scripted([says("Yes.")])) as house:
            await house.ask("Is it?")
            with pytest.raises(ConfigError) as caught:
                marks_of(house.log.read(house.session), asked(house))
            assert caught.value.code == "nothing_to_check"
            assert caught.value.remedy

    asyncio.run(scenario())
