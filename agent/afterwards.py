"""What a user does with an answer afterwards: takes back its changes to files, runs its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.branches import shown
from agent.errors import busy
from agent.events import Event
from agent.log import EventLog
from agent.plans import IN_TEXT, find_plan, plan_from_answer
from agent.question import UNDONE
from agent.settings import Settings
from agent.workspace import Workspace


def undo_files(log: EventLog, settings: Settings, session_id: str) -> list[str]:
    """The files that are as they were before the last answer on show that changed any.

    The page learns of it from a `files_undone` event, the model from the next question. Raises
    Conflict, with nothing changed, when an answer is under way, no answer changed a file, or a
    file was changed since.
    """
    session = log.session(session_id)
    if log.under_way(session_id):
        raise busy()
    events = log.read(session_id)
    hidden = _kept_as(events) - _kept_as(shown(events))
    files = Workspace.of(settings).undo(session_id, hidden)
    told = dict.fromkeys([*session.settings.get(UNDONE, ()), *files])
    log.update_session(session_id, {UNDONE: list(told)})
    log.append(session_id, [("files_undone", {"files": files})], durable=True)
    return files


def _kept_as(events: Iterable[Event]) -> set[str]:
    """The names under which what these events changed is kept."""
    results = (event.data["details"] for event in events if event.type == "tool_result")
    return {details["kept_as"] for details in results if "kept_as" in details}


def make_plan(log: EventLog, session_id: str) -> Mapping[str, Any]:
    """A plan made of the list in the last answer, stored as an event.

    Raises ConfigError('no_list') when there is no list and Conflict while an answer is under way.
    """
    log.session(session_id)
    if log.under_way(session_id):
        raise busy()
    data = plan_from_answer(log.read(session_id))
    log.append(session_id, [("plan", data)], durable=True)
    return data


def plan_to_run(log: EventLog, session_id: str) -> Mapping[str, Any]:
    """The plan that is meant where none is named: the newest, or one made now of the last answer.

    Raises Conflict('no_plan') when there is neither.
    """
    events = log.read(session_id)
    last = max((n for n, event in enumerate(events) if event.type == "user_message"), default=0)
    turn = events[last:]
    in_text = any(e.type == "notice" and e.data["code"] == IN_TEXT for e in turn)
    if in_text and not any(event.type == "plan" for event in turn):
        return make_plan(log, session_id)
    return find_plan(events)
