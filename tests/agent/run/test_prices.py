"""Prices: what is known is counted exactly, and what is not is never guessed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.run.prices import load_prices, packaged, pricer, search_price
from searchloop.agent.types import Usage
from tests.tables import each_row

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


@each_row(
    ("model", "usage", "cost"),
    [
        ("openai:gpt-6-luna", SPENT, 1 + 2 + 0.03),  # the user's price and the packaged fee
        ("openai:gpt-6-sol", SPENT, None),
        ("openai:gpt-6-sol", Usage(input_tokens=0, output_tokens=0), 0),
        ("ollama:qwen3:8b", SPENT, None),
        ("builtin:extractive", Usage(), 0),
        ("openai-chat:any", Usage(input_tokens=5, cost_usd=0.25), 0.25),  # as the provider told
        ("tide:large", SPENT, 2 + 4 + 0.03),
        ("tide:large", Usage(output_tokens=5), None),  # one part is not known, nor is the sum
        ("tide:large", Usage(input_tokens=5, output_tokens=5, cached_tokens=2), None),
        ("tide:small-2", Usage(1_000_000, 0, 400_000), 0.6 + 0.04),  # the longest pattern wins
    ],
)
def test_what_a_run_costs(tmp_path: Path, model: str, usage: Usage, cost: float | None) -> None:
    """The user's table wins price by price; cached tokens are not charged twice; no guess."""
    assert load_prices(tmp_path / "none") == (packaged(),)
    (tmp_path / "prices.toml").write_text(OWN, "utf-8-sig")
    told = pricer(model, load_prices(tmp_path))(usage)
    assert told == (cost if cost is None else pytest.approx(cost))


def test_the_price_of_a_search(tmp_path: Path) -> None:
    """Of one search of the model's own, the user's table first; unknown is not free."""
    for fee in (8, 0):
        (tmp_path / "prices.toml").write_text(f'[models."openai:*"]\nsearches = {fee}\n')
        assert search_price("openai:gpt-6-luna", load_prices(tmp_path)) == fee / 1000
    assert search_price("openai:gpt-6-luna", [packaged()]) == 0.01
    assert search_price("builtin:extractive", [packaged()]) == 0
    assert search_price("nobody:nothing", [packaged()]) is None


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
