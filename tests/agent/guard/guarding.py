"""A guard over a session that a test holds in its hand, and a user who answers as told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchloop.agent.guard.approvals import ApprovalAnswer, Approve
from searchloop.agent.guard.egress import Egress, Exposure, Secrets
from searchloop.agent.guard.guard import Guard, Policy
from searchloop.agent.log.session import Session
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, tool
from searchloop.agent.types import Effect, Message, Mode, Search

Asked = Callable[[Mapping[str, Any]], ApprovalAnswer]
Ran = list[dict[str, Any]]


def session(
    mode: Mode = "agent", search: Search = "local", workspace: str | None = None
) -> Session:
    """A session as it stands now."""
    given = ("s", "", "scripted:one", mode, search, "local", workspace)
    return Session(*given, *(0.0, 0.0, 1, True))


def says(decision: str, **arguments: Any) -> Asked:
    """A user who always decides the same, perhaps with other arguments."""

    def answer(request: Mapping[str, Any]) -> ApprovalAnswer:
        return ApprovalAnswer(decision, arguments or request["arguments"], "user")  # type: ignore[arg-type]

    return answer


def made(
    name: str = "act", effect: Effect = "write", ran: Ran | None = None, **marks: Any
) -> tuple[Tool, Ran]:
    """A tool that keeps what it was run with."""
    seen: Ran = [] if ran is None else ran

    def act(text: str = "", url: str = "") -> str:
        """Change something."""
        seen.append({"text": text, "url": url})
        return f"done {text}"

    plain: Tool = tool(act, effect=effect)
    return replace(plain, spec=plain.spec._replace(name=name), **marks), seen


def guard(
    table: SourceTable | None = None,
    *,
    messages: Sequence[Message] = (),
    policy: Policy | None = None,
    secrets: Mapping[str, str] | None = None,
    approve: Approve = "ask",
    user: Asked | None = None,
    live: Callable[[], Session] = session,
    always: Iterable[str] = (),
) -> Guard:
    """The guard of one run. Without `user`, being asked is a failure of the test."""
    policy = policy or Policy()

    async def ask(request: Mapping[str, Any], emit: Any) -> ApprovalAnswer:
        assert user is not None, f"nobody should have been asked: {request['why']}"
        await emit.event("approval_requested", request)
        return user(request)

    egress = Egress(
        lambda: Secrets(secrets or {}),
        SourceTable() if table is None else table,
        Exposure(messages),
        policy.private_and_untrusted,
    )
    return Guard(policy, lambda: egress, live, ask, lambda: set(always), approve, messages)
