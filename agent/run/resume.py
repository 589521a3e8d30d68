"""Resumes a run from its log, after its process has died.

The loop runs again behind wrappers that return what the log has. A call that may change something
and had begun does not run again: its outcome is unknown, and model and user learn so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from searchloop.agent.log.events import (
    Event,
    messages_from,
    question_message,
    result_data,
    result_from,
)
from searchloop.agent.search.switch import REJECTED
from searchloop.agent.tools.dispatcher import canonical
from searchloop.agent.types import (
    NOTHING,
    Emit,
    Finished,
    Message,
    Request,
    StopReason,
    StreamEvent,
    Streams,
    TextDelta,
    ThinkingDelta,
    Toolbox,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

UNKNOWN = "outcome_unknown"
_WHAT = "searchloop stopped while this call ran: whether it took effect is unknown."
_REMEDY = "Look what became of it before it is made again; that is for the user to decide."
_ONCE = frozenset({"tool_call", "tool_result", "approval_requested", "approval_decided"})


@dataclass(frozen=True, slots=True)
class Past:
    """A run as the log has it."""

    run_id: str
    question: Event
    started: Mapping[str, Any]
    steps: tuple[Finished, ...] = ()
    usage: Usage = field(default_factory=Usage)
    results: Mapping[str, ToolResult] = field(default_factory=dict)
    begun: frozenset[str] = frozenset()  # calls with an effect that had begun
    written: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    transcript: tuple[Message, ...] = ()
    finished: bool = False
    seconds: float = 0.0  # that its processes worked on it

    @property
    def fell_back(self) -> bool:
        """True if the provider rejected its own search in this run."""
        return any(t == "notice" and d.get("code") == REJECTED for t, d in self.written)

    @classmethod
    def of(cls, events: Sequence[Event], run_id: str) -> Past | None:
        """Reads a run from the events of its session; None if the log has nothing of it."""
        place = 0
        for i, event in enumerate(events):
            if event.type == "run_started" and event.data["run_id"] == run_id:
                place = i
                break
        asked = next((e for e in reversed(events[:place]) if e.type == "user_message"), None)
        if asked is None:
            return None
        own = events[place:]
        alone = Event.of(asked.seq, "user_message", {"text": ""}, asked.at)  # beside no other
        whole = [e for e in own if e.type == "message" and not e.data.get("partial")]
        results = [result_from(e.data) for e in own if e.type == "tool_result"]
        said = messages_from([alone, *(e for e in own if e.type in ("message", "tool_result"))])[1:]
        answers = [m for m in said if m.role == "assistant"]
        answered = {result.call_id for result in results}
        worked = sum(max(0.0, b.at - a.at) for a, b in pairwise(own) if b.type != "run_resumed")
        return cls(
            run_id,
            asked,
            events[place].data,
            tuple(_steps(whole, answers, results, worked)),
            Usage(**whole[-1].data["usage"]) if whole else Usage(),
            {result.call_id: result for result in results},
            frozenset(e.data["call_id"] for e in own if e.type == "tool_started"),
            tuple((e.type, e.data) for e in own),
            tuple(m for m in said if m.role != "tool" or m.tool_call_id in answered),
            any(e.type == "run_finished" for e in own),
            worked,
        )

    def before(self, events: Sequence[Event]) -> tuple[list[Message], Message]:
        """Returns the transcript before the question, and the question."""
        asked = self.question.seq
        earlier = [event for event in events if event.seq < asked or event.type == "summary"]
        said = messages_from(earlier, before=self.question.data.get("replaces"))
        return said, question_message(self.question.data, self.question.at, said)


def _steps(
    whole: Sequence[Event],
    answers: Sequence[Message],
    results: Sequence[ToolResult],
    seconds: float,
) -> Iterable[Finished]:
    """Yields the answers, the last with the sum of the log less what the loop counts of tools."""
    earlier = {call.id for message in answers[:-1] for call in message.tool_calls}
    tools = sum((r.usage for r in results if r.call_id in earlier), NOTHING)
    for event, message in zip(whole, answers, strict=False):
        total = Usage(**event.data["usage"]) if event is whole[-1] else NOTHING
        used: Any = [n and n - (known or 0) for n, known in zip(total, tools, strict=True)]
        why: StopReason = event.data["stop_reason"] or "stop"
        worked = seconds if event is whole[-1] else None
        yield Finished(message, why, Usage(*used)._replace(seconds=worked))


@dataclass(slots=True)
class ResumedRun:
    """Wraps `provider`, `tools` and `emit` of the loop; implements all three protocols."""

    past: Past
    provider: Streams
    tools: Toolbox
    emit: Emit
    _asked: int = 0
    _told: int = 0
    _unknown: set[str] = field(default_factory=set)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields the answers of the log first, then asks the model."""
        if self._asked < len(self.past.steps):
            self._asked += 1
            yield self.past.steps[self._asked - 1]
            return
        async with aclosing(self.provider.stream(request)) as stream:
            async for event in stream:
                yield event

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.tools.specs

    @property
    def exhausted(self) -> str | None:
        return self.tools.exhausted

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """Takes results from the log, and runs the calls that have none and did not begin."""
        known = {c.id: self.past.results[c.id] for c in calls if c.id in self.past.results}
        for call in calls:
            lost = call.id in self.past.begun and call.id not in known
            if lost:
                self._unknown.add(canonical(call))
                await self.event("notice", {"code": UNKNOWN, "message": _WHAT, "remedy": _REMEDY})
            if lost or (call.id not in known and canonical(call) in self._unknown):
                known[call.id] = result = unknown_outcome(call)
                await self.event("tool_result", result_data(result))
        rest = tuple(call for call in calls if call.id not in known)
        if rest:
            made = await self.tools.call_all(rest, self)
            known |= {result.call_id: result for result in made}
        return [known[call.id] for call in calls]

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        self.emit.delta(event)

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Emits an event unless the log has it already."""
        if type == "message" and self._told < len(self.past.steps):
            self._told += 1
            return
        if type in _ONCE and any(t == type and _same(d, data) for t, d in self.past.written):
            return
        await self.emit.event(type, data)

    async def activity(self, event: StreamEvent) -> None:
        await self.emit.activity(event)


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(a.get(key) == b.get(key) for key in ("call_id", "name", "arguments", "decision"))


def unknown_outcome(call: ToolCall) -> ToolResult:
    """Returns the error result of a call that had begun when the process died."""
    error = {"code": UNKNOWN, "message": _WHAT, "remedy": _REMEDY}
    text = f"{_WHAT} {_REMEDY} Do not repeat it; ask."
    return ToolResult(call.id, call.name, text, is_error=True, details={"error": error})
