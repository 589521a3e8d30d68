"""The loop: ask, act, observe, until the model stops asking for tools.

Provider, tools and emitter arrive as arguments. Whether web search is on decides which tools are in
the toolset and whether the request asks for the provider's own search; the loop does not know.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.citations import joined, settle
from agent.errors import IncompleteError
from agent.events import message_data, result_data, result_message
from agent.limits import DEFAULT_LIMITS, Limits, Meter, Price
from agent.seams import Calls, Emit, Streams
from agent.sources import SourceTable
from agent.types import (
    Finished,
    Message,
    Request,
    RunReason,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    Usage,
)

_PAUSES = 8  # how often a provider may pause one answer before that counts as stuck
_CUT = "Not run: the answer was cut off before this call was complete."
_LATE = "Not run: a limit was reached, and an answer was asked for."


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its last message, what it used, and the limit it met, if any."""

    message: Message
    usage: Usage
    reason: RunReason
    limit: str | None = None


async def run_agent_loop(
    messages: list[Message],
    request: Request,
    *,
    provider: Streams,
    tools: Calls,
    emit: Emit,
    sources: SourceTable | None = None,
    limits: Limits = DEFAULT_LIMITS,
    price: Price | None = None,
) -> Outcome:
    """Runs one turn; `messages` grows by what is said and done.

    `request` names the model, the system text and the provider's own search; its messages and
    tools are filled in here. `price` says what the provider's own counts cost. Raises ProviderError
    when the model fails, after emitting what came.
    """
    table = sources if sources is not None else SourceTable.of(messages)
    request = replace(request, messages=messages, tools=tools.specs)
    meter = Meter(limits, price)
    limit: str | None = None
    paused: list[Message] = []
    while True:
        finished = await _ask(provider, request, emit)
        reply, why = settle(finished.message, table), finished.stop_reason
        meter.step(finished.usage)
        messages.append(reply)
        data = message_data(reply, step=meter.steps, usage=meter.usage, stop_reason=why)
        await emit.event("message", data)
        if why == "pause" and not reply.tool_calls and len(paused) < _PAUSES:
            paused.append(reply)
            continue
        cut = why in ("length", "refusal", "pause")
        if reply.tool_calls and (cut or request.answer_now):
            for call in reply.tool_calls:
                refused = ToolResult(call.id, call.name, _CUT if cut else _LATE, is_error=True)
                await emit.event("tool_result", result_data(refused))
                messages.append(result_message(refused))
            limit = limit or tools.exhausted
        elif reply.tool_calls:
            for result in await tools.call_all(reply.tool_calls, emit):
                meter.tool(result)
                messages.append(result_message(result))
            limit = meter.reached()
            late = bool(limit or tools.exhausted)
            request, paused = replace(request, tools=tools.specs, answer_now=late), []
            continue
        reason: RunReason = "incomplete" if cut and why != "refusal" else "stop"
        whole = joined([*paused, reply])
        return Outcome(whole, meter.usage, "limit" if limit else reason, limit)


async def _ask(provider: Streams, request: Request, emit: Emit) -> Finished:
    """One model step; what it says goes out as it comes."""
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta | ThinkingDelta):
                emit.delta(event)
            elif isinstance(event, Finished):
                return event
            else:
                await emit.activity(event)
    raise IncompleteError("incomplete", "The answer broke off before its end.", "Send it again.")
