"""Turns taken out of a chat, brought back, and shown in the place of another."""

from __future__ import annotations

from agent.branches import Turns, no_turn
from agent.errors import ConfigError, busy
from agent.log import EventLog
from web.calls import Call, OnLoop, Reply, whole


class TurnsApi:
    """See `agent.branches` for what becomes of a chat."""

    def __init__(self, log: EventLog, on_loop: OnLoop) -> None:
        self._log = log
        self._on_loop = on_loop

    def change(self, call: Call) -> Reply:
        """Shows a turn, or takes it out of the chat or back; which are shown then."""
        if len(call.body) != 1:
            raise ConfigError(
                "bad_request", "A turn is either shown or removed.", "Send one of the two."
            )
        kind = "branch_chosen"
        if "removed" in call.body:
            kind = "turn_removed" if call.body["removed"] else "turn_restored"
        turn = whole(call.path["turn"]) or 0
        return Reply({"shown": self._on_loop(self._note(call.session, kind, turn))})

    async def _note(self, session: str, kind: str, turn: int) -> list[int]:
        """On the loop that starts runs, so that none begins in between."""
        if self._log.session(session).running:
            raise busy()
        events = self._log.read(session)
        if turn not in Turns.of(events):
            raise no_turn(turn)
        return Turns.of([*events, *self._log.append(session, [(kind, {"turn": turn})])]).shown()
