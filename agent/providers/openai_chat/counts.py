"""What a Chat Completions server counts: tokens, and some of them their own speed.

Spec: https://platform.openai.com/docs/api-reference/chat/object
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.types import Usage


def read_usage(usage: Any) -> Usage:
    """Counts as reported; prompt tokens include cached ones, completion tokens reasoning."""
    if not isinstance(usage, dict):
        return Usage()
    prompt = usage.get("prompt_tokens_details")
    completion = usage.get("completion_tokens_details")
    server = usage.get("server_tool_use_details")
    cost = usage.get("cost")
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(prompt, "cached_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        searches=_count(server, "web_search_requests"),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def read_times(times: Mapping[str, Any]) -> dict[str, Any]:
    """What llama.cpp tells of its speed: milliseconds, and tokens a second.

    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """
    named = {
        "prompt_ms": "prompt_ms",
        "predicted_ms": "eval_ms",
        "predicted_per_second": "tokens_per_second",
    }
    return {
        ours: round(float(times[theirs]), 3)
        for theirs, ours in named.items()
        if type(times.get(theirs)) in (int, float) and times[theirs] > 0
    }


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and value >= 0 else None
