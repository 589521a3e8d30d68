"""How a response ended: its calls, its stop reason and its counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.arguments import read_arguments
from agent.providers.openai.searches import Searches
from agent.types import StopReason, ToolCall, Usage

Item = dict[str, Any]


def calls(items: Iterable[Item], *, complete: bool) -> tuple[tuple[ToolCall, ...], list[Item]]:
    """The calls to answer, and the items to keep: no call twice, none of an answer cut short."""
    found: dict[str, ToolCall] = {}
    kept: list[Item] = []
    for item in items:
        if item.get("type") == "function_call":
            call_id = item.get("call_id") or item.get("id") or f"call_{len(found)}"
            if not complete or item.get("status") == "incomplete" or call_id in found:
                continue
            arguments, problem = read_arguments(item.get("arguments"))
            found[call_id] = ToolCall(call_id, item.get("name") or "", arguments, problem)
            item = {**item, "call_id": call_id}
        kept.append(item)
    return tuple(found.values()), kept


def stop_reason(
    response: Mapping[str, Any], items: Iterable[Item], tool_calls: tuple[ToolCall, ...]
) -> StopReason:
    """Why the answer ends here."""
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details") or {}
        return "refusal" if details.get("reason") == "content_filter" else "length"
    if tool_calls:
        return "tool_calls"
    parts = [part for item in items for part in item.get("content") or () if _is_message(item)]
    refused = any(part.get("type") == "refusal" for part in parts)
    return "refusal" if refused else "stop"


def _is_message(item: Item) -> bool:
    return item.get("type") == "message"


def usage(response: Mapping[str, Any], searches: Searches) -> Usage:
    """Counts as reported; searches are those billed, when the server says how many."""
    counts = response.get("usage") or {}
    billed = ((response.get("tool_usage") or {}).get("web_search") or {}).get("num_requests")
    return Usage(
        input_tokens=counts.get("input_tokens"),
        output_tokens=counts.get("output_tokens"),
        cached_tokens=(counts.get("input_tokens_details") or {}).get("cached_tokens"),
        reasoning_tokens=(counts.get("output_tokens_details") or {}).get("reasoning_tokens"),
        searches=searches.searches if billed is None else billed,
        pages=searches.pages,
    )
