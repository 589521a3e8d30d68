"""What one turn may cost: steps, tokens, seconds. A limit ends in an answer, not in silence."""

from __future__ import annotations

from dataclasses import dataclass

from agent.types import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one run; None means no ceiling. A model call that is under way is not cut."""

    steps: int = 12
    tokens: int | None = None
    seconds: float | None = None

    def reached(self, steps: int, usage: Usage, seconds: float) -> str | None:
        """Which limit has been reached, in words, or None."""
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if steps >= self.steps:
            return f"the limit of {self.steps} steps"
        if self.tokens is not None and tokens >= self.tokens:
            return f"the limit of {self.tokens} tokens"
        if self.seconds is not None and seconds >= self.seconds:
            return f"the limit of {self.seconds:g} seconds"
        return None


DEFAULT_LIMITS = Limits()
