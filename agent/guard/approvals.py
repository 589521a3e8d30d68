"""Approvals: asks the user about a call and stores the answer. Both are events, so both last.

Any process answers by appending `approval_decided`; the first answer counts. In this session,
`always` lets the same call, with the same arguments and definition, run again, and `folder` lets
tools of the workspace change every file in that folder, which is named by its absolute path.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.calls.caller import Decision, Reply
from searchloop.agent.calls.instructions import misfit
from searchloop.agent.errors import ConfigError, Conflict, ToolError
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.log.session import Session
from searchloop.agent.tools import Tool
from searchloop.agent.types import Emit
from searchloop.analysis.secret_files import plain_name
from searchloop.analysis.told import one_of

Approve = Literal["ask", "auto", "never"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
Decide = Callable[[Mapping[str, Any]], Awaitable[Reply]]


class ApprovalAnswer(NamedTuple):
    """A decision, with the arguments to run with: the user may have changed them."""

    decision: Decision
    arguments: Mapping[str, Any]
    by: str


def approval_key(name: str, arguments: Mapping[str, Any], definition: str) -> str:
    """Returns the SHA-256 of a call in one spelling, with the definition of its tool."""
    text = json.dumps([name, dict(arguments), definition], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def folder_key(folder: str) -> str:
    """Returns the key of every change of a file in this folder."""
    return approval_key("folder", {"path": folder}, "")


@cache
def _run_by_others() -> list[tuple[str, re.Pattern[str]]]:
    text = Path(__file__).with_name("run_by_others.toml").read_text("utf-8")
    return [
        (kind["why"], re.compile("|".join(map(translate, kind["files"]))))
        for kind in tomllib.loads(text)["programs"]
    ]


def _steered_by(parts: Sequence[str]) -> str:
    """Says which programs run the file of this path without asking, or are steered by it."""
    plain = [plain_name(part) for part in parts]
    ends = ["/".join(plain[start:]) for start in range(len(plain))]
    kinds = (why for why, pattern in _run_by_others() if any(map(pattern.match, ends)))
    return next(kinds, "")


class WorkFile(NamedTuple):
    """A file that a tool of the workspace `root` changes.

    Below a folder of programs, such as `.local`, each change is asked about until the user allows
    the file's own folder. In one that lies in the workspace, or is it, that is never enough.
    """

    path: Path
    root: Path

    @classmethod
    def of(
        cls, tool: Tool, arguments: Mapping[str, Any], live: Callable[[], Session]
    ) -> WorkFile | None:
        """Returns the file that a call changes, None for a call of another kind."""
        if tool.origin != "ours" or tool.preview is None or not (root := live().workspace):
            return None
        path = Path(root, str(arguments.get("path")).replace("\\", "/"))
        return cls(Path(os.path.normpath(path)), Path(root))

    @property
    def _inside(self) -> str:
        outside = len(self.root.parts) - 1 if self.path.is_relative_to(self.root) else 1
        return _steered_by(self.path.parts[outside:])

    @property
    def why(self) -> str:
        """Says which programs run it, or what lies in this workspace; "" for none."""
        inside = self._inside
        why = inside or _steered_by(self.path.parts[1:])
        return why.format(path=self.path.name if inside else self.root)

    @property
    def folder(self) -> str:
        """The folder whose changes can be allowed together with this one, "" for none."""
        return "" if self._inside else str(self.path.parent)

    def is_allowed(self, keys: Container[str]) -> bool:
        """Returns whether one of these keys is that of its folder, or of one above it."""
        above = (each for each in self.path.parents if each.is_relative_to(self.root))
        return bool(self.folder) and any(folder_key(str(each)) in keys for each in above)


_NOBODY = "This call needs the user's own approval, and nobody can be asked."


def declined(why: str = "", by: str = "") -> ToolError:
    """Returns the error of a call that the user, or the setting `by`, did not approve."""
    said = why or (_NOBODY if by in ("auto", "never") else "The user declined this call.")
    return ToolError("declined", f"{said} Do not repeat it; go on without it.")


def pending(events: Iterable[Event]) -> dict[str, Mapping[str, Any]]:
    """Returns the data of the requests without an answer, by call id."""
    waiting: dict[str, Mapping[str, Any]] = {}
    for event in events:
        if event.type == "approval_requested":
            waiting[event.data["call_id"]] = event.data
        elif event.type in ("approval_decided", "tool_result"):
            waiting.pop(event.data["call_id"], None)
            if event.type == "tool_result":  # its questions are over too
                asked = [k for k in waiting if k.startswith(f"{event.data['call_id']}-")]
                waiting = {
                    k: v for k, v in waiting.items() if k not in asked or "question" not in v
                }
        elif event.type in ("run_finished", "user_message"):
            waiting.clear()
    return waiting


def asked_before(events: Sequence[Event], request: Mapping[str, Any]) -> int | None:
    """Returns the `seq` of this very request if this turn has made it, else None."""
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
        """Returns the keys of the decisions `always` and `folder` of this session."""
        return {
            event.data["key"]
            for event in self._log.read(session_id)
            if event.type == "approval_decided" and event.data["decision"] in ("always", "folder")
        }

    async def ask(
        self, session_id: str, decide: Decide | None, request: Mapping[str, Any], emit: Emit
    ) -> ApprovalAnswer:
        """Asks the user, once even if the run is resumed; `decide` answers in a program.

        Raises Conflict for a deleted session.
        """
        after = asked_before(await self._log.aside(self._log.read, session_id), request)
        if after is None:
            after = await self._log.aside(self._log.last_seq, session_id) or 0
            await emit.event("approval_requested", request)
            if decide:
                decided_so = await decide(request)
                await self._log.aside(self.answer, session_id, request["call_id"], *decided_so)
        async with aclosing(self._log.follow(session_id, after)) as batches:
            async for batch in batches:
                for event in batch:
                    if event.type == "approval_decided" and _is_about(event.data, request):
                        said = event.data
                        return ApprovalAnswer(said["decision"], said["arguments"], said["by"])
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
        """Stores the user's decision and returns its data. Raises Conflict, ConfigError."""
        if decision not in DECISIONS:
            what = f"There is no decision {decision[:40]!r}."
            raise ConfigError("bad_decision", what, one_of(decision, DECISIONS))
        while True:
            last = self._log.last_seq(session_id)
            events = self._log.read(session_id)
            request = pending(events).get(call_id)
            if request is None:
                raise _late(events, call_id)
            if decision == "folder" and not request.get("folder"):
                what = "This call changes no file of the work folder."
                raise ConfigError("bad_decision", what, "Choose once, always or deny.")
            data = decided(request, decision, arguments, by)
            try:
                self._log.append(session_id, [("approval_decided", data)], durable=True, after=last)
            except Conflict as conflict:
                if conflict.code != "moved":  # else it may be another's decision: look again
                    raise
            else:
                return data


_ROUNDS = 3  # how often an answer may be wrong before that counts as a no
_EMPTY = {"boolean": False, "array": []}


@dataclass(frozen=True, slots=True)
class UserQuestions:
    """Asks the user of a session what a tool wants to know: a request whose arguments are the
    answer. `decide` answers in a program.
    """

    approvals: Approvals
    session_id: str
    decide: Decide | None

    async def __call__(
        self, call_id: str, tool: Tool, words: str, schema: Mapping[str, Any], emit: Emit
    ) -> Mapping[str, Any] | None:
        """Returns an answer that fits the schema, None for a no."""
        fields = schema["properties"].items()
        given = {name: its.get("default", _EMPTY.get(its.get("type"), "")) for name, its in fields}
        wrong = ""
        for _ in range(_ROUNDS):
            request = {
                "call_id": call_id,
                "name": tool.spec.name,
                "arguments": given,
                "effect": tool.spec.effect,
                "server": tool.server,
                "preview": None,
                "why": f"{wrong} {words}".strip(),
                "folder": "",
                "question": True,
                "definition": approval_key(words, schema, ""),
            }
            answer = await self.approvals.ask(self.session_id, self.decide, request, emit)
            if answer.decision == "deny":
                return None
            needed = schema.get("required", ())
            given = {**given, **answer.arguments}
            told = {name: value for name, value in given.items() if value != "" or name in needed}
            fitting = coerced(told, schema)
            problem = await asyncio.to_thread(misfit, json.dumps(fitting), schema)
            if problem is None:
                return fitting
            wrong = f"The answer does not fit: {problem}."
        return None


def _late(events: Sequence[Event], call_id: str) -> Conflict:
    """Returns the error for a decision that comes too late or answers no request."""
    for event in reversed(events):
        if event.type == "approval_decided" and event.data["call_id"] == call_id:
            by, what = event.data["by"], event.data["decision"]
            said = f"Call {call_id[:80]!r} was decided already: {what}, by {by}."
            return Conflict("already_decided", said, "The first decision counts.")
    what = f"No call {call_id[:80]!r} waits for a decision."
    return Conflict("nothing_to_approve", what, "It is over, or the answer was stopped.")


def _is_about(data: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Returns True for a decision about this very request; an id may name two of a hostile model,
    or a call and a question of a server."""
    same = decided(request, data["decision"], data["arguments"], data["by"])
    return (same["call_id"], same["key"]) == (data["call_id"], data["key"])


def decided(
    request: Mapping[str, Any], decision: str, arguments: Mapping[str, Any] | None, by: str
) -> dict[str, Any]:
    """Returns the data of `approval_decided`; `arguments` None keeps those of the request."""
    final = request["arguments"] if arguments is None else arguments
    kept = folder_key(request["folder"]) if decision == "folder" else None
    return {
        "call_id": request["call_id"],
        "decision": decision,
        "arguments": dict(final),
        "by": by,
        "key": kept or approval_key(request["name"], final, request["definition"]),
    }
