"""How fast a turn was, from what a local server told of each of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.types import Message

_SUMS = ("load_ms", "prompt_ms", "eval_ms")
_LAST = ("calls", "window", "prompt_estimate", "shortened")


def performance(messages: Sequence[Message]) -> dict[str, Any]:
    """The numbers of the last turn, empty where no step told any.

    Milliseconds are those of all steps together; `prefix_reused` is the worst step's share,
    `tokens_per_second` the mean; `calls`, `window` and the estimate are those of the last step.
    """
    last = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    steps = [m.details for m in messages[last + 1 :] if m.role == "assistant"]
    numbers: dict[str, Any] = {}
    for name in _SUMS:
        known = [step[name] for step in steps if name in step]
        if known:
            numbers[name] = round(sum(known), 3)
    timed = [(s["tokens_per_second"], s["eval_ms"]) for s in steps if "tokens_per_second" in s]
    if timed:
        spent = sum(ms for _, ms in timed)
        numbers["tokens_per_second"] = round(sum(rate * ms for rate, ms in timed) / spent, 2)
    reused = [step["prefix_reused"] for step in steps if "prefix_reused" in step]
    if reused:
        numbers["prefix_reused"] = min(reused)
    for name in _LAST:
        known = [step[name] for step in steps if name in step]
        if known:
            numbers[name] = known[-1]
    return numbers
