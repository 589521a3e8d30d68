"""Taking back what an answer did to files, and telling the session of it."""

from __future__ import annotations

from agent.errors import busy
from agent.log import EventLog
from agent.question import UNDONE
from agent.settings import Settings
from agent.workspace import Workspace


def undo_files(log: EventLog, settings: Settings, session_id: str) -> list[str]:
    """The files that are as they were before the last answer that changed any.

    The page learns of it from a `files_undone` event, the model from the next question. Raises
    Conflict, with nothing changed, when an answer is under way, no answer changed a file, or a
    file was changed since.
    """
    session = log.session(session_id)
    if session.running:
        raise busy()
    files = Workspace.of(settings).undo(session_id)
    told = dict.fromkeys([*session.settings.get(UNDONE, ()), *files])
    log.update_session(session_id, {UNDONE: list(told)})
    log.append(session_id, [("files_undone", {"files": files})], durable=True)
    return files
