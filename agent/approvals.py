"""Asking the user about a call, and their answer. Both are events, so both survive a restart.

    approval_requested {call_id, name, arguments, effect, server, why, preview, definition}
    approval_decided   {call_id, decision, arguments, by, key}

Whoever answers - a tab, the CLI, a process on another machine - appends `approval_decided`; the run
that asked follows its session's log. The first answer counts. `key` binds an approval to the tool,
its definition and the canonical arguments, and the event to the session: `always` lets that same
call run again in this session, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from agent.errors import ConfigError, Conflict
from agent.events import Event
from agent.log import EventLog
from agent.seams import Emit

Decision = Literal["once", "always", "deny"]
Approve = Literal["ask", "auto", "never"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
APPROVES: tuple[Approve, ...] = get_args(Approve)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was decided; `arguments` are those to run with, perhaps changed by the user."""

    decision: Decision
    arguments: Mapping[str, Any]
    by: str


def approval_key(name: str, arguments: Mapping[str, Any], definition: str) -> str:
    """SHA-256 of a call in one spelling, under this definition of its tool."""
    text = json.dumps([name, dict(arguments), definition], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def pending(events: Iterable[Event]) -> dict[str, Mapping[str, Any]]:
    """The requests that wait for an answer, by call."""
    waiting: dict[str, Mapping[str, Any]] = {}
    for event in events:
        if event.type == "approval_requested":
            waiting[event.data["call_id"]] = event.data
        elif event.type in ("approval_decided", "tool_result"):
            waiting.pop(event.data["call_id"], None)
        elif event.type in ("run_finished", "user_message"):
            waiting.clear()
    return waiting


def asked_before(events: Sequence[Event], request: Mapping[str, Any]) -> int | None:
    """The number of this very request, if it was made in the turn that runs."""
    for event in reversed(events):
        if event.type == "run_started":
            return None
        if event.type == "approval_requested" and all(
            event.data[name] == request[name] for name in ("call_id", "arguments", "definition")
        ):
            return event.seq
    return None


class Approvals:
    """The approvals of all sessions of one log."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def always(self, session_id: str) -> set[str]:
        """The keys of the calls that the user has approved for good in this session."""
        return {
            event.data["key"]
            for event in self._log.read(session_id)
            if event.type == "approval_decided" and event.data["decision"] == "always"
        }

    async def ask(self, session_id: str, request: Mapping[str, Any], emit: Emit) -> Answer:
        """Asks, and waits for as long as the run lives.

        What a run that goes on after a crash had asked before is not asked again.
        """
        after = asked_before(await self._log.aside(self._log.read, session_id), request)
        if after is None:
            after = await self._log.aside(self._log.last_seq, session_id) or 0
            await emit.event("approval_requested", request)
        async with aclosing(self._log.follow(session_id, after)) as batches:
            async for batch in batches:
                for event in batch:
                    if (
                        event.type == "approval_decided"
                        and event.data["call_id"] == (request["call_id"])
                    ):
                        return _answer(event.data)
        raise Conflict("no_session", "The session was deleted while a call waited for approval.")

    def answer(
        self,
        session_id: str,
        call_id: str,
        decision: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        by: str = "user",
    ) -> Mapping[str, Any]:
        """Stores the user's decision; may be called from any thread and any process.

        Raises Conflict('already_decided') when another was quicker, Conflict('nothing_to_approve')
        when no such call waits (any more), ConfigError for a decision that is none.
        """
        if decision not in DECISIONS:
            raise ConfigError(
                "bad_decision",
                f"There is no decision {decision[:40]!r}.",
                f"Choose one of {', '.join(DECISIONS)}.",
            )
        while True:
            last = self._log.last_seq(session_id)
            events = self._log.read(session_id)
            request = pending(events).get(call_id)
            if request is None:
                raise _late(events, call_id)
            data = decided(request, decision, arguments, by)
            try:
                self._log.append(session_id, [("approval_decided", data)], durable=True, after=last)
            except Conflict as conflict:
                if conflict.code != "moved":  # else it may be another's decision: look again
                    raise
            else:
                return data


def _late(events: Sequence[Event], call_id: str) -> Conflict:
    """Why a decision came too late, or was never asked for."""
    for event in reversed(events):
        if event.type == "approval_decided" and event.data["call_id"] == call_id:
            by, what = event.data["by"], event.data["decision"]
            when = datetime.fromtimestamp(event.at).strftime("%Y-%m-%d %H:%M:%S")
            said = f"Call {call_id[:80]!r} was decided already: {what}, by {by}, {when}."
            return Conflict("already_decided", said, "The first decision counts.")
    return Conflict(
        "nothing_to_approve",
        f"No call {call_id[:80]!r} waits for a decision.",
        "It is over, or the answer was stopped.",
    )


def decided(
    request: Mapping[str, Any],
    decision: str,
    arguments: Mapping[str, Any] | None,
    by: str,
) -> dict[str, Any]:
    """The data of `approval_decided`."""
    final = request["arguments"] if arguments is None else arguments
    return {
        "call_id": request["call_id"],
        "decision": decision,
        "arguments": dict(final),
        "by": by,
        "key": approval_key(request["name"], final, request["definition"]),
    }


def _answer(data: Mapping[str, Any]) -> Answer:
    return Answer(data["decision"], data["arguments"], data["by"])
