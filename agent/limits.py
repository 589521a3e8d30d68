"""What one turn may cost, and the meter that counts it.

The counts are the providers' own where they give them. A limit is looked at after each step: a
model call that is under way is not cut, and the turn then ends with an answer, not in silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.types import NOTHING, ToolResult, Usage, plus

Price = Callable[[Usage], float | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one turn; None means no ceiling. `cost_usd` needs a known price to hold."""

    steps: int = 12
    searches: int | None = None
    pages: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None


DEFAULT_LIMITS = Limits()


class Meter:
    """Counts one turn: what the model's provider reported, and what our tools did."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, price: Price | None = None) -> None:
        self._limits = limits
        self._price = price
        self._began = time.monotonic()
        self._model = Usage()
        self._tools = Usage()
        self.steps = 0

    def step(self, usage: Usage) -> None:
        """One answer of the model."""
        self.steps += 1
        self._model = self._model + usage

    def tool(self, result: ToolResult) -> None:
        """One result of a tool."""
        if result.usage is not NOTHING:
            self._tools = self._tools + result.usage

    @property
    def usage(self) -> Usage:
        """All of it so far; the cost is the model's alone, None when a price is unknown."""
        done, did = self._model, self._tools
        return Usage(
            done.input_tokens,
            done.output_tokens,
            done.cached_tokens,
            done.reasoning_tokens,
            searches=plus(done.searches, did.searches),
            pages=plus(done.pages, did.pages),
            seconds=round(time.monotonic() - self._began, 3),
            cost_usd=self._price(done) if self._price else done.cost_usd,
        )

    def reached(self) -> str | None:
        """Which limit has been reached, in words, or None."""
        limits, usage = self._limits, self.usage
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        ceilings = (
            (self.steps, limits.steps, f"{limits.steps} steps"),
            (usage.searches, limits.searches, f"{limits.searches} searches"),
            (usage.pages, limits.pages, f"{limits.pages} pages"),
            (tokens, limits.tokens, f"{limits.tokens} tokens"),
            (usage.seconds, limits.seconds, f"{limits.seconds or 0:g} seconds"),
            (usage.cost_usd, limits.cost_usd, f"${limits.cost_usd or 0:g}"),
        )
        for used, ceiling, words in ceilings:
            if ceiling is not None and (used or 0) >= ceiling:
                return f"the limit of {words}"
        return None
