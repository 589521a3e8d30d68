"""What one turn may cost, and how it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.run.prices import parse_prices, pricer
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.types import Limits, Meter, Usage

PRICES = parse_prices('[models."x:*"]\ninput = 1\noutput = 2\ncached_input = 1\nsearches = 10', "x")
STEP = Usage(input_tokens=1_000_000, output_tokens=500_000, searches=2)


def meter(limits: Limits, model: str = "x:y") -> Meter:
    """One step of a model with known prices, and one search of our own."""
    counted = Meter(limits, pricer(model, (PRICES,)))
    counted.step(STEP)
    counted.tool(Usage(searches=1))
    return counted


def test_our_searches_count_and_cost_nothing() -> None:
    """The provider's searches are paid for, ours are only counted."""
    usage = meter(Limits()).usage
    assert usage.searches == 3
    assert usage.cost_usd == pytest.approx(1 + 1 + 0.02)


def test_a_cost_from_before_a_takeover_is_added_to() -> None:
    """What the log says a run has cost is no price of the steps that follow."""
    counted = Meter(Limits(cost_usd=4.0), pricer("x:y", (PRICES,)))
    counted.step(STEP._replace(cost_usd=2.02))
    assert counted.reached() is None
    counted.step(STEP)
    assert counted.usage.cost_usd == pytest.approx(4.04)
    assert counted.reached() == "the limit of $4"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(steps=1), "1 steps"),
        (Limits(searches=3), "3 searches"),
        (Limits(tokens=1_500_000), "1500000 tokens"),
        (Limits(cost_usd=2.0), "$2"),
        (Limits(seconds=0.0), "0 seconds"),
    ],
)
def test_each_limit_says_its_name(limits: Limits, words: str) -> None:
    """What was reached is told in words."""
    assert meter(limits).reached() == f"the limit of {words}"


def test_no_limit_is_reached_before_its_time() -> None:
    """Ceilings above what was used let the turn go on."""
    assert (
        meter(Limits(steps=2, searches=4, pages=1, tokens=2_000_000, cost_usd=3)).reached() is None
    )


def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    """One setting names each limit that is wanted; a wrong entry is quoted."""

    def limits(text: str) -> Limits:
        own = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_LIMITS": text}
        return Settings.load(Environment({"environment": own})).limits

    assert limits("") == Limits()
    assert limits("searches=4, cost_usd=0.5,") == Limits(searches=4, cost_usd=0.5)
    every = "steps=12,searches=20,pages=40,tokens=200000,seconds=600,cost_usd=0.50"
    assert limits(every) == Limits(12, 20, 40, 200_000, 600, 0.5)
    for bad in ("0", "-1", "many", "inf", "nan", ""):
        with pytest.raises(ConfigError, match=f"cost_usd is '{bad}'") as number:
            limits(f"searches=4,cost_usd={bad}")
        assert (number.value.code, "SEARCHLOOP_LIMITS" in number.value.remedy) == (
            "bad_limit",
            True,
        )
    for bad in ("4", "cost=1", "steps=1,steps=2", "STEPS=2"):
        with pytest.raises(ConfigError, match="SEARCHLOOP_LIMITS has an entry") as entry:
            limits(bad)
        assert (entry.value.code, "cost_usd" in entry.value.remedy) == ("bad_limits", True)
