"""What a session's log may contain, and the fold from that log to a transcript.

| type | data |
|---|---|
| user_message | text, replaces? (the question that this one stands beside), note?, plan? (its id) |
| branch_chosen, turn_removed, turn_restored | turn (see `agent.branches`) |
| run_resumed | run_id, takeovers (another process goes on; deltas before it do not count) |
| run_started | run_id, session_id, model, mode, search, search_path |
| text_delta, thinking_delta | text (scaffolding: gone once their `message` is there) |
| servers_awaited | servers (MCP servers whose tools the turn waits for) |
| servers_ready | servers, missing (those of them that did not come) |
| search_started | query, by, years? (past ones in the query that the user never named) |
| search_finished | query, by, status, results, attempts, error?, years?, invisible? |
| page_opened | url, status, title?, error?, reader? (who read it, if not we), invisible? |
| tool_call | call_id, name, arguments, effect, server? |
| tool_started | call_id (of a call that may change something, once it may run) |
| approval_requested | call_id, name, arguments, effect, server, why, preview?, definition |
| approval_decided | call_id, decision, arguments, by, key |
| tool_result | call_id, name, is_error, content, details, sources |
| plan | plan_id, title, steps, files, sources, by (see `agent.plans`) |
| files_undone | files (what an answer changed in them was taken back) |
| message | text, thinking, tool_calls, citations, sources, step, usage, stop_reason, partial? |
| notice | code, message, remedy? |
| exchange | what a provider answered, if it is recorded (see `agent.observing`, `agent.replay`) |
| run_finished | run_id, reason, answer, citations, sources, usage, search_path, error? |

`invisible` counts the characters that nobody sees and that were taken out of a page, or of what a
search found.
`run_finished` of a local model also holds `performance`, see `agent.performance`.
The prompt and the page are both folds of this log; nothing else is saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agent.branches import shown
from agent.checksum import data_in
from agent.dates import dated_question, day_of
from agent.types import (
    Citation,
    Mark,
    Message,
    ProviderData,
    Source,
    StopReason,
    ToolCall,
    ToolResult,
    Usage,
)

DELTAS = frozenset({"text_delta", "thinking_delta"})
_OPAQUE = frozenset({"provider_data", "body", "base64"})
STOPPED = "The user stopped this call before it gave a result."
_UNREADABLE = {
    "code": "damaged",
    "message": "Something that stood here cannot be read any more.",
    "remedy": "`searchloop sessions check` says what is damaged.",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a log: `seq` grows within a session, `at` is in epoch seconds."""

    seq: int
    type: str
    data: Mapping[str, Any]
    at: float


def event_of(seq: int, kind: str, data: dict[str, Any], at: float) -> Event:
    """An event out of a store; what an earlier version wrote is given the shape of today."""
    if data.get("citations"):
        data["citations"] = [
            c if "marks" in c else citation_data(citation_from(c)) for c in data["citations"]
        ]
    return Event(seq, kind, data, at)


def event_in(
    session: str, seq: int, kind: str, text: str, at: float, checksum: int | None
) -> Event:
    """An event out of a row; one that is not what was written is a notice of that."""
    data = data_in(session, seq, kind, text, at, checksum)
    return Event(seq, "notice", _UNREADABLE, at) if data is None else event_of(seq, kind, data, at)


def message_data(
    message: Message,
    *,
    step: int,
    usage: Usage,
    stop_reason: StopReason | None,
    partial: bool = False,
) -> dict[str, Any]:
    """An assistant message as the data of a `message` event."""
    data: dict[str, Any] = {
        "text": message.content,
        "thinking": message.thinking,
        "tool_calls": [_call_data(call) for call in message.tool_calls],
        "citations": [citation_data(c) for c in message.citations],
        "sources": [source_data(s) for s in message.sources],
        "details": dict(message.details),
        "step": step,
        "usage": usage.as_dict(),
        "stop_reason": stop_reason,
    }
    raw = message.provider_data
    if raw:
        data["provider_data"] = {
            "provider": raw.provider,
            "model": raw.model,
            "version": raw.version,
            "blocks": list(raw.blocks),
        }
    if partial:
        data["partial"] = True
    return data


def _call_data(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
        "problem": call.problem,
    }


def result_data(result: ToolResult) -> dict[str, Any]:
    """A tool result as the data of a `tool_result` event."""
    used = {f: n for f, n in result.usage.as_dict().items() if n is not None}
    return {
        **({"usage": used} if used else {}),
        "call_id": result.call_id,
        "name": result.name,
        "is_error": result.is_error,
        "content": result.content,
        "details": dict(result.details),
        "sources": [source_data(s) for s in result.sources],
    }


def source_data(source: Source) -> dict[str, Any]:
    """A source on the surfaces: {n?, url, title, state, published?}."""
    data: dict[str, Any] = {"url": source.url, "title": source.title, "state": source.state}
    if source.published:
        data["published"] = source.published
    return data if source.n is None else {"n": source.n, **data}


def public_data(event: Event) -> dict[str, Any]:
    """An event as people see it: without opaque blocks, and what a result was cut by."""
    data = {k: v for k, v in event.data.items() if k not in _OPAQUE}
    if "whole" in data.get("details", ()):
        data["details"] = {k: v for k, v in data["details"].items() if k != "whole"}
    return {"type": event.type, "seq": event.seq, "at": event.at, **data}


def result_message(result: ToolResult) -> Message:
    """A tool result as the transcript holds it."""
    return Message(
        role="tool",
        content=result.content,
        tool_call_id=result.call_id,
        tool_name=result.name,
        is_error=result.is_error,
        details=result.details,
        sources=result.sources,
    )


def question_text(data: Mapping[str, Any]) -> str:
    """What a model reads of a `user_message`: the user's words, after the program's own note."""
    return f"{data['note']}\n\n{data['text']}" if "note" in data else str(data["text"])


def messages_from(events: Iterable[Event], *, before: int | None = None) -> list[Message]:
    """The transcript a model may be sent: of the turns shown, or of those `before` a turn.

    Every call has a result, whatever was interrupted, and results stand in the order of the calls,
    whichever was done first.
    """
    transcript: list[Message] = []
    waiting: dict[str, Message] = {}
    answered: set[str] = set()
    partial: list[str] = []
    for event in shown(events, before=before):
        data = event.data
        if event.type == "run_resumed":
            partial.clear()
        elif event.type == "user_message":
            _close(transcript, waiting, partial)
            transcript.append(dated_question(question_text(data), day_of(event.at), transcript))
        elif event.type == "text_delta":
            partial.append(data["text"])
        elif event.type == "message":
            partial.clear()
            _close(transcript, waiting, partial)
            message = _assistant(data)
            transcript.append(message)
            waiting = {call.id: _stopped(call) for call in message.tool_calls}
            answered.clear()
        elif event.type == "tool_result" and data["call_id"] in waiting.keys() - answered:
            waiting[data["call_id"]] = result_message(result_from(data))
            answered.add(data["call_id"])
    _close(transcript, waiting, partial)
    return transcript


def unfinished(events: Iterable[Event]) -> str:
    """The text of an answer whose message never came."""
    pieces: list[str] = []
    for event in events:
        if event.type in ("message", "user_message", "run_resumed"):
            pieces.clear()
        elif event.type == "text_delta":
            pieces.append(event.data["text"])
    return "".join(pieces)


def _stopped(call: ToolCall) -> Message:
    return result_message(ToolResult(call.id, call.name, STOPPED, is_error=True))


def _close(transcript: list[Message], waiting: dict[str, Message], partial: list[str]) -> None:
    transcript.extend(waiting.values())
    waiting.clear()
    if partial:
        transcript.append(Message("assistant", "".join(partial)))
        partial.clear()


def _assistant(data: Mapping[str, Any]) -> Message:
    raw = data.get("provider_data")
    return Message(
        role="assistant",
        content=data["text"],
        thinking=data.get("thinking", ""),
        tool_calls=tuple(ToolCall(**call) for call in data.get("tool_calls", ())),
        citations=tuple(citation_from(c) for c in data.get("citations", ())),
        sources=tuple(Source(**s) for s in data.get("sources", ())),
        details=data.get("details", {}),
        provider_data=ProviderData(**{**raw, "blocks": tuple(raw["blocks"])}) if raw else None,
    )


def result_from(data: Mapping[str, Any]) -> ToolResult:
    """A tool result read back from its event."""
    return ToolResult(
        call_id=data["call_id"],
        name=data["name"],
        content=data["content"],
        is_error=data["is_error"],
        details=data.get("details", {}),
        sources=tuple(Source(**s) for s in data.get("sources", ())),
        usage=Usage(**data.get("usage", {})),
    )


def citation_data(citation: Citation) -> dict[str, Any]:
    """A citation on the surfaces: {n, url, title, quote, verified, spans, marks}, where a mark is
    {span, quote, verified} and what stands before the marks is made of them."""
    return {
        "n": citation.n,
        "url": citation.url,
        "title": citation.title,
        "quote": citation.quote,
        "verified": citation.verified,
        "spans": [list(span) for span in citation.spans],
        "marks": [
            {**asdict(mark), "span": list(mark.span) if mark.span else None}
            for mark in citation.marks
        ],
    }


def citation_from(data: Mapping[str, Any]) -> Citation:
    """A citation read back from its JSON. Before there were marks, one quote was said of all
    spans; logs of that time still open."""
    marks = data.get("marks")
    if marks is None:
        said = {"quote": data.get("quote"), "verified": data.get("verified")}
        marks = [{"span": span, **said} for span in data.get("spans") or (None,)]
        marks = [mark for mark in marks if mark["span"] or mark["quote"]]
    return Citation(data["n"], data["url"], data.get("title", ""), tuple(map(_mark, marks)))


def _mark(data: Mapping[str, Any]) -> Mark:
    start_end = data.get("span")
    span = (int(start_end[0]), int(start_end[1])) if start_end else None
    return Mark(span, data.get("quote"), data.get("verified"))
