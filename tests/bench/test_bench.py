"""The benchmark does its work; what it measures is nobody's business here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.clock import WrongResult, check
from bench.measure import BARE, OURS
from bench.scale import crowd
from bench.scenarios import SCENARIOS, Outcome

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


def test_a_run_that_did_not_do_the_work_does_not_count() -> None:
    """A fast wrong answer is refused, not measured."""
    scenario = SCENARIOS[0]
    right = scenario.outcome()
    check(scenario, right)
    with pytest.raises(WrongResult, match="overhead"):
        check(scenario, Outcome(right.calls - 1, right.characters, right.requests))
