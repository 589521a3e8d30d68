"""Transcripts kept in memory, so that a turn costs nothing for the turns before it."""

from __future__ import annotations

from collections import OrderedDict

from agent.events import messages_from
from agent.log import EventLog
from agent.types import Message

_KEPT = 32


class Transcripts:
    """Those of the sessions that were answered last; the log has all of them."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._kept: OrderedDict[str, tuple[int, list[Message]]] = OrderedDict()

    def take(self, session_id: str, before: int | None) -> list[Message]:
        """What was said so far, or `before` a turn; a list that the caller may let grow."""
        seq, messages = self._kept.pop(session_id, (-1, []))
        if before is None and seq == self._log.last_seq(session_id):
            return messages
        return messages_from(self._log.read(session_id), before=before)

    def keep(self, session_id: str, messages: list[Message]) -> None:
        """Keeps it for the next turn: it is all that the log holds now."""
        self._kept[session_id] = (self._log.last_seq(session_id) or 0, messages)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
