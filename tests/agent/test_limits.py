"""What one turn may cost, and how it is counted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agent.errors import ConfigError
from agent.limits import Limits, Meter
from agent.prices import cost, parse_prices
from agent.settings import Environment, Settings
from agent.types import ToolResult, Usage

PRICES = parse_prices('[models."x:*"]\ninput = 1\noutput = 2\ncached_input = 1\nsearches = 10', "x")
STEP = Usage(input_tokens=1_000_000, output_tokens=500_000, searches=2)


def meter(limits: Limits, model: str = "x:y") -> Meter:
    """One step of a model with known prices, and one search of our own."""
    counted = Meter(limits, partial(cost, model, tables=(PRICES,)))
    counted.step(STEP)
    counted.tool(ToolResult("c", "web_search", "", usage=Usage(searches=1)))
    return counted


def test_our_searches_count_and_cost_nothing() -> None:
    """The provider's searches are paid for, ours are only counted."""
    usage = meter(Limits()).usage
    assert usage.searches == 3
    assert usage.cost_usd == pytest.approx(1 + 1 + 0.02)


def test_an_unknown_price_is_unknown() -> None:
    """No price, no cost: None, and a limit in dollars does not hold by guessing."""
    counted = meter(Limits(cost_usd=0.01), model="nobody:x")
    assert counted.usage.cost_usd is None
    assert counted.reached() is None


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
    """Every limit has a setting; a bad one is named."""
    own = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_MAX_SEARCHES": "4"}
    env = Environment({"environment": {**own, "SEARCHLOOP_MAX_COST_USD": "0.5"}})
    assert Settings.load(env).limits == Limits(searches=4, cost_usd=0.5)
    for bad in ("0", "-1", "many", "inf", "nan"):
        env = Environment({"environment": {**own, "SEARCHLOOP_MAX_COST_USD": bad}})
        with pytest.raises(ConfigError, match="SEARCHLOOP_MAX_COST_USD"):
            Settings.load(env)
