"""Prices: what is known is counted exactly, and what is not is never guessed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError
from searchloop.agent.run.prices import load_prices, packaged, parse_prices, pricer, search_price
from searchloop.agent.types import Usage

OWN = """
[models."tide:*"]
input = 2
output = 8.0
searches = 10
[models."tide:small*"]
input = 1
cached_input = 0.1
[models."openai:gpt-6-luna"]
input = 1.0
output = 4.0
"""
SPENT = Usage(input_tokens=1_000_000, output_tokens=500_000, searches=3)


def test_the_packaged_table() -> None:
    """Dated; it holds the search fees and no token price that nobody checked."""
    table = packaged()
    assert isinstance(table.as_of, date)
    fees = {m: table.price(m, "searches") for m in ("openai:x", "anthropic:x", "gemini:gemini-3-x")}
    assert fees == {"openai:x": 10, "anthropic:x": 10, "gemini:gemini-3-x": 14}
    assert table.price("gemini:gemini-2.5-flash", "searches") is None
    assert table.price("openai:gpt-6-luna", "input") is None


def test_an_unknown_price_is_unknown() -> None:
    """One part without a price, and the sum is not known either."""
    assert pricer("openai:gpt-6-luna")(SPENT) is None
    assert pricer("ollama:qwen3:8b")(SPENT) is None
    assert pricer("tide:large", [parse_prices(OWN, "x")])(Usage(output_tokens=5)) is None
    half = Usage(input_tokens=5, output_tokens=5, cached_tokens=2)
    assert pricer("tide:large", [parse_prices(OWN, "x")])(half) is None


def test_what_costs_nothing_and_what_the_provider_told() -> None:
    """The model that is not one needs no counts; nothing asked is free; a told cost stays."""
    assert pricer("openai-chat:any")(Usage(input_tokens=5, cost_usd=0.25)) == 0.25
    assert pricer("builtin:extractive")(Usage()) == 0
    assert pricer("openai:gpt-6-luna")(Usage(input_tokens=0, output_tokens=0)) == 0


def test_the_price_of_a_search(tmp_path: Path) -> None:
    """Of one search of the model's own, the user's table first; unknown is not free."""
    (tmp_path / "prices.toml").write_text('[models."openai:*"]\nsearches = 8\n')
    assert search_price("openai:gpt-6-luna", load_prices(tmp_path)) == 0.008
    assert search_price("openai:gpt-6-luna", [packaged()]) == 0.01
    assert search_price("builtin:extractive", [packaged()]) == 0
    assert search_price("nobody:nothing", [packaged()]) is None


def test_the_user_s_table_wins(tmp_path: Path) -> None:
    """Price by price: a token price is added and the search fee stays."""
    assert load_prices(tmp_path) == (packaged(),)
    (tmp_path / "prices.toml").write_text(OWN, "utf-8-sig")
    tables = load_prices(tmp_path)
    assert pricer("openai:gpt-6-luna", tables)(SPENT) == pytest.approx(1 + 2 + 0.03)
    assert pricer("tide:large", tables)(SPENT) == pytest.approx(2 + 4 + 0.03)
    assert pricer("openai:gpt-6-sol", tables)(SPENT) is None
    (tmp_path / "prices.toml").write_text('[models."openai:*"]\nsearches = 0', "utf-8")
    assert load_prices(tmp_path)[0].price("openai:x", "searches") == 0


def test_the_longest_pattern_wins_and_cached_tokens_are_cheaper() -> None:
    """Cached tokens are part of the input and are not charged twice."""
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=400_000)
    charge = pricer("tide:small-2", [parse_prices(OWN, "x")])
    assert charge(usage) == pytest.approx(0.6 + 0.04)


@given(*[st.integers(0, 10**9)] * 4)
def test_more_costs_more(fresh: int, cached: int, output: int, searches: int) -> None:
    """The cost is never negative, and adds up over the steps of a run."""
    tables = [parse_prices(OWN, "x")]
    step = Usage(fresh + cached, output, cached, searches=searches)
    charge = pricer("tide:small", tables)
    one, two = charge(step), charge(step + step)
    assert one is not None
    assert two is not None
    assert one >= 0
    assert two == pytest.approx(2 * one)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("models = 7", "models"),
        ("[models", "TOML"),
        ("[model.x]\ninput = 1", "model"),
        ('[models."a:b"]\nprice = 1', "price"),
        ('[models."a:b"]\ninput = -1', "-1"),
        ('[models."a:b"]\ninput = "1"', "input"),
        ('[models."a:b"]\ninput = true', "True"),
        ('[models."a:b"]\ninput = nan', "nan"),
        ('[models."a:b"]\ninput = inf', "inf"),
        ('[models]\n"a:b" = 1', "a:b"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, word: str) -> None:
    """Is named, with what is wrong in it; no price is taken from it."""
    (tmp_path / "prices.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_prices(tmp_path)
    assert str(tmp_path) in caught.value.message
    assert word in caught.value.message
    assert caught.value.remedy
