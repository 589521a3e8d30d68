"""The loop: ask, act, observe, until the model stops asking for tools.

It knows nothing of the search switch, which decides tools and the request's own search beforehand.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

from searchloop.agent.errors import IncompleteError, lacking
from searchloop.agent.log.events import message_data, result_data, result_message
from searchloop.agent.search.citations import joined, settle_aside
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import (
    DEFAULT_LIMITS,
    NOBODY_LISTENS,
    Emit,
    Finished,
    Limits,
    Message,
    Meter,
    Price,
    Request,
    RunReason,
    StopReason,
    Streams,
    TextDelta,
    ThinkingDelta,
    Toolbox,
    ToolResult,
    Usage,
)

_PAUSES = 8  # a provider that pauses one answer more often is stuck
_CUT = "Not run: the answer was cut off before this call was complete."
_LATE = "Not run: a limit was reached, and an answer was asked for."


class Outcome(NamedTuple):
    """The end of a run: its last message and usage, why it stopped, the limit that it reached."""

    message: Message
    usage: Usage
    why: StopReason = "stop"
    limit: str | None = None

    @property
    def error(self) -> IncompleteError | None:
        """Says what an incomplete answer lacks."""
        whole = self.limit or (self.why == "stop" and self.message.content.strip())
        return None if whole else lacking(self.why, self.message.content)

    @property
    def reason(self) -> RunReason:
        """Says how the run ended."""
        return "limit" if self.limit else "incomplete" if self.error else "stop"


async def run_agent_loop(
    messages: list[Message],
    request: Request,
    *,
    provider: Streams,
    tools: Toolbox,
    emit: Emit = NOBODY_LISTENS,
    sources: SourceTable | None = None,
    limits: Limits = DEFAULT_LIMITS,
    price: Price | None = None,
) -> Outcome:
    """Runs one turn and appends its answers and tool results to `messages`.

    `request` names model, system text and native search; the loop fills in the rest. `provider`
    streams a step, `tools` run calls, `emit` takes events, `sources` numbers pages; `limits` and
    `price` bound the cost. Raises ProviderError when the model fails, after emitting what came.
    """
    table = sources if sources is not None else SourceTable.of(messages)
    request = replace(request, messages=messages, tools=tools.specs)
    meter = Meter(limits, price)
    limit: str | None = None
    paused: list[Message] = []
    while True:
        finished = await _ask(provider, request, emit)
        reply, why = await settle_aside(finished.message, table), finished.stop_reason
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
                meter.tool(result.usage)
                messages.append(result_message(result))
            late = bool((limit := meter.reached()) or tools.exhausted)
            request, paused = replace(request, tools=tools.specs, answer_now=late), []
            continue
        return Outcome(joined([*paused, reply]), meter.usage, why, limit)


async def _ask(provider: Streams, request: Request, emit: Emit) -> Finished:
    """Runs one model step and emits its events as they come."""
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta | ThinkingDelta):
                emit.delta(event)
            elif isinstance(event, Finished):
                return event
            else:
                await emit.activity(event)
    raise IncompleteError("incomplete", "The answer broke off before its end.", "Send it again.")
