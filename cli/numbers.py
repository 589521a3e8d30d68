"""How fast a local model was, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def performance_line(numbers: Mapping[str, Any]) -> str:
    """The `performance` of a turn for people; empty when there is none."""
    return ", ".join(_parts(numbers))


def _parts(numbers: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (("load_ms", "load"), ("prompt_ms", "prompt"), ("eval_ms", "answer")):
        if name in numbers:
            yield f"{words} {numbers[name] / 1000:.1f} s"
    if "tokens_per_second" in numbers:
        yield f"{numbers['tokens_per_second']:.1f} tokens/s"
    if "prefix_reused" in numbers:
        yield f"{numbers['prefix_reused'] * 100:.0f}% of the prompt reused"
    if "window" in numbers:
        yield f"about {numbers['prompt_estimate']:,} of {numbers['window']:,} tokens"
    if numbers.get("shortened"):
        yield f"{numbers['shortened']} older texts shortened"
    if "calls" in numbers:
        yield f"calls: {numbers['calls']}"
