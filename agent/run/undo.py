"""Undo of file changes, and deleting a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from searchloop.agent.errors import AgentError, StoreError, busy
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.log.session import shown
from searchloop.agent.run.question import UNDONE
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import Backend
from searchloop.agent.tools.workspace import Workspace


def undo_files(log: EventLog, settings: Settings, session_id: str) -> list[str]:
    """Undoes the file changes of the last shown answer that made any; returns the files.

    Raises Conflict, with nothing changed, if that is impossible. The next question tells the model.
    """
    session = log.session(session_id)
    if log.under_way(session_id):
        raise busy()
    events = log.read(session_id)
    hidden = _kept_as(events) - _kept_as(shown(events))
    files = Workspace.of(settings).undo(session_id, hidden)
    undone = dict.fromkeys([*session.settings.get(UNDONE, ()), *files])
    log.update_session(session_id, {UNDONE: list(undone)})
    log.append(session_id, [("files_undone", {"files": files})], durable=True)
    return files


def _kept_as(events: Iterable[Event]) -> set[str]:
    """Returns the names of these events' turns in the undo journal."""
    results = (event.data["details"] for event in events if event.type == "tool_result")
    return {details["kept_as"] for details in results if "kept_as" in details}


async def delete_session(
    log: EventLog, settings: Settings, backend: Backend, session_id: str
) -> None:
    """Deletes a session and what it left elsewhere: pages, answers to its searches, old files.

    The session goes last: if something cannot be deleted, it is still there to be deleted again. On
    a full disk the search backend makes room of what can be made anew. Raises AgentError.
    """
    events = await asyncio.to_thread(log.read, session_id)
    if any(event.type in ("search_started", "page_opened") for event in events):
        await backend.ask("/api/forget", {"chat": session_id})
    await asyncio.to_thread(Workspace.of(settings).forget, session_id)
    try:
        await asyncio.to_thread(log.delete_session, session_id)
    except StoreError as error:
        if error.code not in ("disk_full", "disk_failed"):
            raise
        with suppress(AgentError):
            await backend.ask("/api/forget", {"chat": session_id})
        await asyncio.to_thread(log.delete_session, session_id)
