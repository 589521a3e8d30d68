"""What a turn uses, what it may use, and the meter between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Usage(NamedTuple):
    """Counts as the provider reported them; None for those it did not report."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    searches: int | None = None
    pages: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:  # type: ignore[override]  # sums, no longer tuple
        return Usage(*map(plus, self, other))

    def as_dict(self) -> dict[str, Any]:
        """Returns the usage object of every surface."""
        return self._asdict()


USAGE_FIELDS = Usage._fields


def plus(a: Any, b: Any) -> Any:
    """Adds two counts; None is an unknown one."""
    return b if a is None else a if b is None else a + b


NOTHING = Usage()


Price = Callable[[Usage], float | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one turn; None means no ceiling. `cost_usd` works only with known prices."""

    steps: int = 12
    searches: int | None = None
    pages: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None


DEFAULT_LIMITS = Limits()


class Meter:
    """Counts the usage of one turn: the provider's reports and our tools' work."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, price: Price | None = None) -> None:
        self._limits = limits
        self._price = price
        self._began = time.monotonic()
        self._model = Usage()
        self._tools = Usage()
        self.steps = 0

    def step(self, usage: Usage) -> None:
        """Adds one answer of the model, or the sum of those before a takeover, with their cost."""
        self.steps += 1
        cost = self._price(usage) if self._price else usage.cost_usd
        self._model = self._model + usage._replace(cost_usd=cost)

    def tool(self, usage: Usage) -> None:
        """Adds what one call of a tool used."""
        self._tools = self._tools + usage

    @property
    def usage(self) -> Usage:
        """The sum so far; the cost is the model's alone, None if a price is unknown."""
        model, tools = self._model, self._tools
        return model._replace(
            searches=plus(model.searches, tools.searches),
            pages=plus(model.pages, tools.pages),
            seconds=round((model.seconds or 0.0) + time.monotonic() - self._began, 3),
        )

    def reached(self) -> str | None:
        """Returns the limit that is reached, in words, or None."""
        limits, usage = self._limits, self.usage
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        ceilings = (
            (self.steps, limits.steps, "{} steps"),
            (usage.searches, limits.searches, "{} searches"),
            (usage.pages, limits.pages, "{} pages"),
            (tokens, limits.tokens, "{} tokens"),
            (usage.seconds, limits.seconds, "{:g} seconds"),
            (usage.cost_usd, limits.cost_usd, "${:g}"),
        )
        for used, ceiling, words in ceilings:
            if ceiling is not None and (used or 0) >= ceiling:
                return f"the limit of {words.format(ceiling)}"
        return None
