"""The events of a chat as typed values: what `Agent.stream` yields.

from searchloop import events

for event in agent.stream("What is new?"):
    match event:
        case events.TextDelta(text=text):
            print(text, end="")
        case events.SearchFinished(by=engine, results=count):
            print(engine, count)

Each is an `Event` with `seq`, `type`, `data` and `at` (epoch seconds); its fields are what `data`
holds, and empty where that has none. Made by scripts/event_types.py; edit the table in
agent/log/events.py instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, dataclass_transform, get_args

from searchloop.agent.log.session import Event
from searchloop.agent.types import NOTHING, Citation, Source, Usage
from searchloop.agent.types import ToolCall as Call
from searchloop.agent.types.attachments import Attachment


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Typed(Event):
    """Makes each class below it a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class UserMessage(_Typed):
    """`user_message`: text, replaces? (the question that this one stands beside), note?, plan?
    (its id), imported? (from a file of anybody), folders? (of the library: all that is
    searched), attachments? (what is known of each file; never its bytes)."""

    type: Literal["user_message"]
    text: str = ""
    replaces: int = 0
    note: str = ""
    plan: str = ""
    imported: bool = False
    folders: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class BranchChosen(_Typed):
    """`branch_chosen`: turn."""

    type: Literal["branch_chosen"]
    turn: int = 0


class TurnRemoved(_Typed):
    """`turn_removed`: turn."""

    type: Literal["turn_removed"]
    turn: int = 0


class TurnRestored(_Typed):
    """`turn_restored`: turn."""

    type: Literal["turn_restored"]
    turn: int = 0


class TurnRated(_Typed):
    """`turn_rated`: turn, rating (1 is good, -1 is not, 0 takes it back; for the reader, never
    sent)."""

    type: Literal["turn_rated"]
    turn: int = 0
    rating: int = 0


class RunResumed(_Typed):
    """`run_resumed`: run_id, takeovers (another process goes on; deltas before it do not
    count)."""

    type: Literal["run_resumed"]
    run_id: str = ""
    takeovers: int = 0


class RunStarted(_Typed):
    """`run_started`: run_id, session_id, model, mode, search, search_path, local? (stays here),
    effort?."""

    type: Literal["run_started"]
    run_id: str = ""
    session_id: str = ""
    model: str = ""
    mode: str = ""
    search: str = ""
    search_path: str = ""
    local: bool = False
    effort: str = ""


class TextDelta(_Typed):
    """`text_delta`: text (scaffolding: gone once their `message` is there)."""

    type: Literal["text_delta"]
    text: str = ""


class ThinkingDelta(_Typed):
    """`thinking_delta`: text (scaffolding: gone once their `message` is there)."""

    type: Literal["thinking_delta"]
    text: str = ""


class ServersAwaited(_Typed):
    """`servers_awaited`: servers (MCP servers whose tools the turn waits for)."""

    type: Literal["servers_awaited"]
    servers: tuple[str, ...] = ()


class ServersReady(_Typed):
    """`servers_ready`: servers, missing (those of them that did not come)."""

    type: Literal["servers_ready"]
    servers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class SearchStarted(_Typed):
    """`search_started`: query, by, years? (past ones in the query that the user never
    named)."""

    type: Literal["search_started"]
    query: str = ""
    by: str = ""
    years: tuple[str, ...] = ()


class SearchFinished(_Typed):
    """`search_finished`: query, by, status, results, attempts, error?, years?, invisible?,
    notes?."""

    type: Literal["search_finished"]
    query: str = ""
    by: str = ""
    status: str = ""
    results: int | None = None
    attempts: tuple[Mapping[str, Any], ...] = ()
    error: str = ""
    years: tuple[str, ...] = ()
    invisible: int = 0
    notes: tuple[Mapping[str, Any], ...] = ()


class PageOpened(_Typed):
    """`page_opened`: url, status, title?, error?, reader? (if not we), invisible?, notes?."""

    type: Literal["page_opened"]
    url: str = ""
    status: str = ""
    title: str = ""
    error: str = ""
    reader: str = ""
    invisible: int = 0
    notes: tuple[Mapping[str, Any], ...] = ()


class ToolCall(_Typed):
    """`tool_call`: call_id, name, arguments, effect, server?."""

    type: Literal["tool_call"]
    call_id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    effect: str = ""
    server: str = ""


class ToolStarted(_Typed):
    """`tool_started`: call_id (of a call that may change something, once it may run)."""

    type: Literal["tool_started"]
    call_id: str = ""


class ApprovalRequested(_Typed):
    """`approval_requested`: call_id, name, arguments, effect, server, why, preview?,
    definition, folder, question? (a tool asks the user: `why` is the question, the arguments
    are the answer)."""

    type: Literal["approval_requested"]
    call_id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    effect: str = ""
    server: str = ""
    why: str = ""
    preview: str = ""
    definition: str = ""
    folder: str = ""
    question: bool = False


class ApprovalDecided(_Typed):
    """`approval_decided`: call_id, decision, arguments, by, key."""

    type: Literal["approval_decided"]
    call_id: str = ""
    decision: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    key: str = ""


class ToolResult(_Typed):
    """`tool_result`: call_id, name, is_error, content, details, sources, attachments?
    (pictures)."""

    type: Literal["tool_result"]
    call_id: str = ""
    name: str = ""
    is_error: bool = False
    content: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class Plan(_Typed):
    """`plan`: plan_id, title, steps, files, sources."""

    type: Literal["plan"]
    plan_id: str = ""
    title: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


class FilesUndone(_Typed):
    """`files_undone`: files (what an answer changed in them was taken back)."""

    type: Literal["files_undone"]
    files: tuple[str, ...] = ()


class Message(_Typed):
    """`message`: text, thinking, tool_calls, citations, sources, step, usage, stop_reason,
    partial?."""

    type: Literal["message"]
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[Call, ...] = ()
    citations: tuple[Citation, ...] = ()
    sources: tuple[Source, ...] = ()
    step: int = 0
    usage: Usage = NOTHING
    stop_reason: str = ""
    partial: bool = False


class Notice(_Typed):
    """`notice`: code, message, remedy?."""

    type: Literal["notice"]
    code: str = ""
    message: str = ""
    remedy: str = ""


class Summary(_Typed):
    """`summary`: upto (the last question covered), turns (all of them), text, model, by,
    usage."""

    type: Literal["summary"]
    upto: int = 0
    turns: tuple[int, ...] = ()
    text: str = ""
    model: str = ""
    by: str = ""
    usage: Usage = NOTHING


class Check(_Typed):
    """`check`: turn, left (pages and models to go), url?, status? (of a page), model?, tokens?
    (about, what it will take), usage?, error?, citations? (those that changed, as they are
    now)."""

    type: Literal["check"]
    turn: int = 0
    left: int = 0
    url: str = ""
    status: str = ""
    model: str = ""
    tokens: int = 0
    usage: Usage = NOTHING
    error: str = ""
    citations: tuple[Citation, ...] = ()


class Title(_Typed):
    """`title`: title (unless the user gave one meanwhile), model, usage (of a call that names
    the chat)."""

    type: Literal["title"]
    title: str = ""
    model: str = ""
    usage: Usage = NOTHING


class FollowUps(_Typed):
    """`follow_ups`: questions (what could be asked next), model, usage? (of a call for them
    alone)."""

    type: Literal["follow_ups"]
    questions: tuple[str, ...] = ()
    model: str = ""
    usage: Usage = NOTHING


class Exchange(_Typed):
    """`exchange`: what a provider answered; an earlier version recorded it."""

    type: Literal["exchange"]


class RunFinished(_Typed):
    """`run_finished`: run_id, session_id, model, reason, answer, citations, sources, usage,
    search_path, error?, limit? (the one it reached, in words), performance?."""

    type: Literal["run_finished"]
    run_id: str = ""
    session_id: str = ""
    model: str = ""
    reason: str = ""
    answer: str = ""
    citations: tuple[Citation, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: Usage = NOTHING
    search_path: str = ""
    error: Mapping[str, Any] = field(default_factory=dict)
    limit: str = ""
    performance: Mapping[str, Any] = field(default_factory=dict)


ChatEvent = (
    UserMessage
    | BranchChosen
    | TurnRemoved
    | TurnRestored
    | TurnRated
    | RunResumed
    | RunStarted
    | TextDelta
    | ThinkingDelta
    | ServersAwaited
    | ServersReady
    | SearchStarted
    | SearchFinished
    | PageOpened
    | ToolCall
    | ToolStarted
    | ApprovalRequested
    | ApprovalDecided
    | ToolResult
    | Plan
    | FilesUndone
    | Message
    | Notice
    | Summary
    | Check
    | Title
    | FollowUps
    | Exchange
    | RunFinished
)
# The discriminator is the text of its annotation: Literal["NAME"].
CLASSES: Mapping[str, Any] = {
    each.__annotations__["type"][9:-2]: each for each in get_args(ChatEvent)
}
