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
class Rates:
    """A `Price`: US dollars per million tokens and per thousand searches, None if unknown."""

    input: float | None
    cached_input: float | None
    output: float | None
    searches: float | None

    def __call__(self, usage: Usage) -> float | None:
        """Returns what a usage costs; None if a price that it needs is unknown."""
        if usage.cost_usd is not None:
            return usage.cost_usd
        cached = usage.cached_tokens or 0
        fresh = None if usage.input_tokens is None else max(0, usage.input_tokens - cached)
        counts = (fresh, cached, usage.output_tokens, (usage.searches or 0) * 1000)
        total = 0.0
        rates = (self.input, self.cached_input, self.output, self.searches)
        for count, rate in zip(counts, rates, strict=True):
            if count == 0 or rate == 0:
                continue
            if count is None or rate is None:
                return None
            total += count * rate / 1e6
        return total


class Budget(NamedTuple):
    """The division of a window, in tokens: `fixed` is the system text and the tools."""

    window: int
    fixed: int = 0

    @property
    def answer(self) -> int:
        """The tokens reserved for the answer and its thinking."""
        return min(self.window // 4, 8192)

    @property
    def room(self) -> int:
        """The tokens that messages may take."""
        return self.window - self.answer - self.fixed

    @property
    def result(self) -> int:
        """The tokens that one tool result may take."""
        return int(self.room * 0.4)


class Limits(NamedTuple):
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
            (self.steps, limits.steps, "step limit of {}"),
            (usage.searches, limits.searches, "search limit of {}"),
            (usage.pages, limits.pages, "page limit of {}"),
            (tokens, limits.tokens, "token limit of {}"),
            (usage.seconds, limits.seconds, "time limit of {:g} s"),
            (usage.cost_usd, limits.cost_usd, "cost limit of ${:g}"),
        )
        for used, ceiling, words in ceilings:
            if ceiling is not None and (used or 0) >= ceiling:
                return f"the {words.format(ceiling)}"
        return None
