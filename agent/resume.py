"""Going on with a run from its log, after the process that held it is gone.

The loop runs again from the question, behind three fronts that remember: the model's answers and
the tools' results that the log holds are handed back instead of asked for, and what they would
write is in the log already. A call that may change something and had begun is not made again: its
outcome is unknown, and the model and the user are told so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from agent.dates import dated_question, day_of
from agent.events import Event, messages_from, question_text, result_data, result_from
from agent.repeats import canonical
from agent.seams import Calls, Emit, Streams
from agent.types import (
    USAGE_FIELDS,
    Finished,
    Message,
    Request,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

UNKNOWN = "outcome_unknown"
_WHAT = "searchloop stopped while this call ran: whether it took effect is unknown."
_REMEDY = "Look what became of it before it is made again; that is for the user to decide."
_ONCE = frozenset({"tool_call", "tool_result", "approval_requested", "approval_decided"})
REJECTED = "native_search_rejected"


@dataclass(frozen=True, slots=True)
class Past:
    """What the log holds of a run."""

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

    @property
    def fell_back(self) -> bool:
        """Whether the provider refused its own search in this run."""
        return any(t == "notice" and d.get("code") == REJECTED for t, d in self.written)

    @classmethod
    def of(cls, events: Sequence[Event], run_id: str) -> Past | None:
        """None when the run never began: nothing of it is in the log."""
        place = next(
            (
                i
                for i, e in enumerate(events)
                if e.type == "run_started" and e.data["run_id"] == run_id
            ),
            0,
        )
        asked = next((e for e in reversed(events[:place]) if e.type == "user_message"), None)
        if asked is None:
            return None
        own = events[place:]
        alone = Event(asked.seq, "user_message", {"text": ""}, asked.at)  # beside no other
        whole = [e for e in own if e.type == "message" and not e.data.get("partial")]
        results = [result_from(e.data) for e in own if e.type == "tool_result"]
        said = messages_from([alone, *(e for e in own if e.type in ("message", "tool_result"))])[1:]
        answers = [m for m in said if m.role == "assistant"]
        return cls(
            run_id,
            asked,
            events[place].data,
            tuple(_steps(whole, answers, results)),
            Usage(**whole[-1].data["usage"]) if whole else Usage(),
            {result.call_id: result for result in results},
            frozenset(e.data["call_id"] for e in own if e.type == "tool_started"),
            tuple((e.type, e.data) for e in own),
            tuple(m for m in said if m.role != "tool" or m.tool_call_id in _ids(results)),
            any(e.type == "run_finished" for e in own),
        )

    def before(self, events: Sequence[Event]) -> tuple[list[Message], Message]:
        """The transcript that the question came after, and the question."""
        earlier = [event for event in events if event.seq < self.question.seq]
        said = messages_from(earlier, before=self.question.data.get("replaces"))
        return said, dated_question(
            question_text(self.question.data), day_of(self.question.at), said
        )


def _ids(results: Iterable[ToolResult]) -> set[str]:
    return {result.call_id for result in results}


def _steps(
    whole: Sequence[Event], answers: Sequence[Message], results: Sequence[ToolResult]
) -> Iterable[Finished]:
    """The answers with what each of them alone used: the log holds sums, with the tools' own."""
    before, tools, at = Usage(), Usage(), 0
    for event, message in zip(whole, answers, strict=False):
        total = Usage(**event.data["usage"])
        calls = {call.id for call in answers[at - 1].tool_calls} if at else set()
        for result in results:
            if result.call_id in calls:
                tools = tools + result.usage
        yield Finished(message, _stop(event), _less(total, before, tools))
        before, tools, at = total, Usage(), at + 1


def _stop(event: Event) -> StopReason:
    reason: StopReason = event.data["stop_reason"] or "stop"
    return reason


def _less(total: Usage, *parts: Usage) -> Usage:
    counts = {}
    for name in USAGE_FIELDS:
        value = getattr(total, name)
        if value is not None:
            value -= sum(getattr(part, name) or 0 for part in parts)
        counts[name] = value
    return Usage(**{**counts, "seconds": None})


@dataclass(slots=True)
class Remembering:
    """The fronts of one run that goes on: `provider`, `tools` and `emit` of the loop."""

    past: Past
    provider: Streams
    tools: Calls
    emit: Emit
    _asked: int = 0
    _told: int = 0
    _unknown: set[str] = field(default_factory=set)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Streams`: what was answered before, then the model."""
        if self._asked < len(self.past.steps):
            self._asked += 1
            yield self.past.steps[self._asked - 1]
            return
        async with aclosing(self.provider.stream(request)) as stream:
            async for event in stream:
                yield event

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """See `Calls`."""
        return self.tools.specs

    @property
    def exhausted(self) -> str | None:
        """See `Calls`."""
        return self.tools.exhausted

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """See `Calls`: results that are there, then those that can be had."""
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
        """See `Emit`."""
        self.emit.delta(event)

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """See `Emit`: what the log holds already is not written again."""
        if type == "message" and self._told < len(self.past.steps):
            self._told += 1
            return
        if type in _ONCE and any(t == type and _same(d, data) for t, d in self.past.written):
            return
        await self.emit.event(type, data)

    async def activity(self, event: StreamEvent) -> None:
        """See `Emit`."""
        await self.emit.activity(event)


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(a.get(key) == b.get(key) for key in ("call_id", "name", "arguments", "decision"))


def unknown_outcome(call: ToolCall) -> ToolResult:
    """What is said of a call that had begun, and may or may not have been done."""
    error = {"code": UNKNOWN, "message": _WHAT, "remedy": _REMEDY}
    text = f"{_WHAT} {_REMEDY} Do not repeat it; ask."
    return ToolResult(call.id, call.name, text, is_error=True, details={"error": error})
