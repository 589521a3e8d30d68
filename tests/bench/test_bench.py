"""The benchmark does its work; what it measures is nobody's business here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.clock import WrongResult, check
from bench.fake_openai import answers
from bench.measure import BARE, OURS
from bench.scale import crowd
from bench.scenarios import SCENARIOS, Outcome, Scenario, Target, smaller
from bench.told import Figure

pytestmark = pytest.mark.integration


def test_every_scenario_runs_and_does_its_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tiny round of everything: each run is checked, and the table has a line for each peer."""
    file = tmp_path / "bench.json"
    assert main(["--smoke", "--rounds", "1", "--json", str(file)]) == 0
    table = capsys.readouterr().out
    for scenario in SCENARIOS:
        assert f"| {scenario.name} | {OURS} |" in table
    measured = json.loads(file.read_text("utf-8"))["measurements"]
    assert {(m["scenario"], m["peer"]) for m in measured} == {
        *((s.name, OURS) for s in SCENARIOS),
        *((s.name, BARE) for s in SCENARIOS if s.kind != "crowd"),
    }
    assert all(sample["wall"] > 0 for m in measured for sample in m["samples"])


def test_a_small_crowd_gets_every_word() -> None:
    """Four answers, two readers each, from a server as users start it: all figures come."""
    figures = list(crowd(None, 1, view="events", deltas=10, runs=4, at_once=8))
    assert [figure.unit for figure in figures[:3]] == ["ms", "ms", "MB"]
    assert 0 < figures[0].value <= figures[1].value


def test_a_figure_is_held_to_its_aim() -> None:
    """Without an aim every figure will do."""
    assert Figure("x", 3.0, "ms", 3).met
    assert not Figure("x", 3.1, "ms", 3).met
    assert str(Figure("x", 3.1, "ms", 3)) == "| x | 3.1 ms | ≤ 3 ms | MISSED |"
    assert Figure("x", 3.1, "ms").met


def test_a_run_that_did_not_do_the_work_does_not_count() -> None:
    """A fast wrong answer is refused, not measured."""
    scenario = SCENARIOS[0]
    right = scenario.outcome()
    check(scenario, right)
    with pytest.raises(WrongResult, match="overhead"):
        check(scenario, Outcome(right.calls - 1, right.characters, right.requests))


@pytest.mark.parametrize("scenario", smaller(), ids=lambda s: s.name)
def test_answers_are_events_of_the_real_shape(scenario: Scenario) -> None:
    """One HTTP chunk an event, numbered, from the first to the last."""
    for answer in answers(scenario):
        body = answer.partition(b"\r\n\r\n")[2]
        events = []
        while body:
            size, _, body = body.partition(b"\r\n")
            chunk, body = body[: int(size, 16)], body[int(size, 16) + 2 :]
            if chunk:
                name, data = chunk.decode().removesuffix("\n\n").split("\n")
                events.append(json.loads(data.removeprefix("data: ")))
                assert name == f"event: {events[-1]['type']}"
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[0]["type"] == "response.created"
        assert events[-1]["type"] == "response.completed"


def test_a_target_knows_which_side_is_good() -> None:
    """A ceiling is met from below, a floor from above."""
    assert Target("cpu_ratio", 1.3).met(1.2)
    assert not Target("cpu_ratio", 1.3).met(1.4)
    assert Target("turns_ratio", 0.9, least=True).met(1.4)
    assert not Target("turns_ratio", 0.9, least=True).met(0.8)
