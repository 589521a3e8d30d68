"""Computes the cost of an answer from dated tables; it never guesses.

Each price is looked up by itself: the user's table before ours, longer patterns before shorter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings.private_files import remedy_for
from searchloop.agent.types import Rates

PRICES = tuple(each.name for each in fields(Rates))
PACKAGED = Path(__file__).with_name("prices.toml")
_THOUSAND = 1e3


class PriceTable(NamedTuple):
    """Prices in US dollars by model pattern: per million tokens, per thousand searches."""

    models: Mapping[str, Mapping[str, float]]
    as_of: date | None = None

    def price(self, model: str, name: str) -> float | None:
        """Returns one price of `provider:model`; None if this table does not have it."""
        fitting = (p for p in self.models if name in self.models[p] and fnmatchcase(model, p))
        pattern = max(fitting, key=len, default=None)
        return None if pattern is None else self.models[pattern][name]


def search_price(model: str, tables: Iterable[PriceTable]) -> float | None:
    """Returns US dollars for one search by the provider; None if no table has it."""
    rate = _rate(model, "searches", tables)
    return None if rate is None else rate / _THOUSAND


def _rate(model: str, name: str, tables: Iterable[PriceTable]) -> float | None:
    return next((p for table in tables if (p := table.price(model, name)) is not None), None)


def pricer(model: str, tables: Iterable[PriceTable] | None = None) -> Rates:
    """Returns what computes US dollars for the usage of one model.

    `tables` are asked in order, by default only the packaged one. `searches` are the provider's.
    """
    asked = (packaged(),) if tables is None else tuple(tables)
    return Rates(*(_rate(model, name, asked) for name in PRICES))


@cache
def packaged() -> PriceTable:
    """Reads the table that comes with the program."""
    return parse_prices(PACKAGED.read_text("utf-8"), PACKAGED.name)


def load_prices(home: Path) -> tuple[PriceTable, ...]:
    """Reads the tables, the user's first. Raises ConfigError when that one cannot be read."""
    path = home / "prices.toml"
    try:
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return (packaged(),)
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(str(path), error) from error
    return parse_prices(text, str(path)), packaged()


def parse_prices(text: str, name: str) -> PriceTable:
    """Reads the table in `text`. Raises ConfigError that names the mistake in the file `name`."""
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise _wrong(name, f"it is not valid TOML ({error})") from error
    models = data.get("models", {})
    unknown = set(data) - {"as_of", "models"}
    if unknown or not isinstance(models, dict):
        raise _wrong(name, f"only as_of and models belong there, not {sorted(unknown) or models}")
    as_of = data.get("as_of")
    return PriceTable(
        {pattern: _read(pattern, prices, name) for pattern, prices in models.items()},
        as_of if isinstance(as_of, date) else None,
    )


def _read(pattern: str, prices: Any, name: str) -> dict[str, float]:
    if not isinstance(prices, dict):
        raise _wrong(name, f"{pattern!r} is not a table of prices")
    for key, value in prices.items():
        if key not in PRICES:
            raise _wrong(name, f"{pattern!r} has {key!r}; prices are {', '.join(PRICES)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise _wrong(name, f"{key!r} of {pattern!r} is {value!r} and not a price")
    return {key: float(value) for key, value in prices.items()}


def _wrong(name: str, why: str | Exception) -> ConfigError:
    what = f"{name} cannot be used: {why}."
    remedy = remedy_for(
        why, 'Write for example [models."openai-chat:mine"] and below it input = 2.'
    )
    return ConfigError("bad_prices", what, remedy)
