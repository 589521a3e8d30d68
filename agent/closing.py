"""The last words of a run, when it cannot say them itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.errors import AgentError
from agent.events import Event, message_data, result_data, unfinished
from agent.leases import Lease
from agent.log import EventLog
from agent.parcel import Pending
from agent.resume import Past, unknown_outcome
from agent.types import Message, RunReason, Usage

_INTERRUPTED = {
    "code": "interrupted",
    "message": "searchloop stopped before the answer was finished.",
    "remedy": "What came is kept. Send the question again.",
}


def close_run(
    log: EventLog,
    lease: Lease,
    reason: RunReason = "incomplete",
    error: AgentError | None = None,
) -> None:
    """Ends a run whose process is gone, as its holder, and gives up the lease."""
    path = log.session(lease.session).search_path
    said: dict[str, Any] = {"session_id": lease.session}
    if reason != "cancelled":
        said["error"] = error.as_dict() if error else _INTERRUPTED
    events = log.read(lease.session)
    ending = last_words(lease.run_id, path, events, reason, said)
    if ending:
        log.append(lease.session, ending, durable=True, fence=lease.fence)
    log.leases.release(lease)


def last_words(
    run_id: str,
    search_path: str,
    events: Sequence[Event],
    reason: RunReason,
    also: Mapping[str, Any],
) -> list[Pending]:
    """What is missing at the end of a run's events; nothing if it had ended."""
    past = Past.of(events, run_id)
    if past is None or past.finished:
        return []
    lost = [c for m in past.transcript for c in m.tool_calls if c.id in past.begun]
    unknown = [unknown_outcome(call) for call in lost if call.id not in past.results]
    said = unfinished(events)
    finished = {
        "run_id": run_id,
        "reason": reason,
        "answer": said,
        "citations": [],
        "sources": [],
        "usage": past.usage.as_dict(),
        "search_path": search_path,
        "model": past.started["model"],
        **also,
    }
    return [
        *(("tool_result", result_data(result)) for result in unknown),
        *partial_message(said, past.usage),
        ("run_finished", finished),
    ]


def partial_message(text: str, usage: Usage) -> list[Pending]:
    """What there is of an answer that broke off, as a message; nothing if there is nothing."""
    message = Message("assistant", text)
    data = message_data(message, step=0, usage=usage, stop_reason=None, partial=True)
    return [("message", data)] if text else []
