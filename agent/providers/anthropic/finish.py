"""What events and blocks come to: calls, a stop reason, counts, and what is kept of a response."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from agent.arguments import read_arguments
from agent.providers.anthropic.searches import Searches
from agent.types import StopReason, ToolCall, Usage

Block = dict[str, Any]
_STOPS: dict[str, StopReason] = {
    "pause_turn": "pause",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def complete(block: Block, streamed: str) -> str | None:
    """Puts what streamed into a block that is done. Returns what is wrong with its arguments."""
    match block["type"]:
        case "text":
            block["text"] = (block.get("text") or "") + streamed
            if not block["citations"]:
                del block["citations"]
        case "thinking":
            block["thinking"] = (block.get("thinking") or "") + streamed
        case "tool_use" | "server_tool_use" if streamed.strip():
            block["input"], problem = read_arguments(streamed)
            return problem
    return None


def calls(
    blocks: Iterable[Block], problems: Mapping[int, str], *, complete: bool
) -> tuple[tuple[ToolCall, ...], list[Block]]:
    """The calls to answer, and the blocks to keep: no call twice, none of an answer cut short.

    `problems` are those with the arguments, by the block's identity.
    """
    found: dict[str, ToolCall] = {}
    kept: list[Block] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            call_id = block.get("id") or f"toolu_{secrets.token_hex(12)}"
            if not complete or not isinstance(call_id, str) or call_id in found:
                continue
            given, problem = block.get("input"), problems.get(id(block))
            if not isinstance(given, dict):
                given, problem = {}, problem or "The arguments must be a JSON object."
            found[call_id] = ToolCall(call_id, str(block.get("name") or ""), given, problem)
            block = {**block, "id": call_id, "input": given}
        kept.append(block)
    return tuple(found.values()), kept


def cut_short(said: object) -> bool:
    """Whether an answer with this stop reason may hold half a call."""
    return _STOPS.get(str(said)) in ("length", "refusal")


def stop_reason(said: object, tool_calls: tuple[ToolCall, ...]) -> StopReason:
    """Why the answer ends here; a reason nobody has heard of is an ordinary end."""
    return "tool_calls" if tool_calls else _STOPS.get(str(said), "stop")


def details(end: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """What the next request of the same turn must know."""
    found: dict[str, Any] = {"paused": True} if reason == "pause" else {}
    used = end.get("container")
    if isinstance(used, dict) and isinstance(used.get("id"), str):
        found["container"] = used["id"]
    return found


def refusal_words(details: object) -> str:
    """What is shown of a refusal, for the server sends no text with it."""
    given = details if isinstance(details, Mapping) else {}
    category, explanation = given.get("category"), given.get("explanation")
    why = f" ({category.replace('_', ' ')})" if isinstance(category, str) and category else ""
    more = f" {explanation}" if isinstance(explanation, str) and explanation else ""
    return f"The model declined to answer{why}.{more}"


def usage(counts: Mapping[str, Any], searches: Searches) -> Usage:
    """Counts as reported; what was read from and written to the cache is input as well."""
    parts = [
        counts.get(name)
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    told = [part for part in parts if isinstance(part, int)]
    details = counts.get("output_tokens_details") or {}
    billed = counts.get("server_tool_use") or {}
    searched, read = billed.get("web_search_requests"), billed.get("web_fetch_requests")
    return Usage(
        input_tokens=sum(told) if told else None,
        output_tokens=counts.get("output_tokens"),
        cached_tokens=counts.get("cache_read_input_tokens"),
        reasoning_tokens=details.get("thinking_tokens"),
        searches=searches.searches if searched is None else searched,
        pages=searches.pages if read is None else read,
    )
