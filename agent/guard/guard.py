"""The guard: decides whether a call that fits its schema may run.

It checks the session as it is now, what would leave (`egress`) and the user's rules (`policy`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.calls.schema import problems_with
from searchloop.agent.errors import ToolError
from searchloop.agent.guard.approvals import (
    ApprovalAnswer,
    Approvals,
    Approve,
    approval_key,
    decided,
)
from searchloop.agent.guard.egress import Egress, Exposure, Finding
from searchloop.agent.guard.leaks import Secrets
from searchloop.agent.guard.policy import Policy, holds_private, load_policy
from searchloop.agent.log import EventLog
from searchloop.agent.log.session import Session
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.switch import refused, withdrawn
from searchloop.agent.settings import Settings
from searchloop.agent.settings.secrets import secrets_of
from searchloop.agent.tools import ALLOWED, Tool, ToolSource, definition
from searchloop.agent.types import Emit, Message, Request, StreamEvent, Streams, ToolCall

Ask = Callable[[Mapping[str, Any], Emit], Awaitable[ApprovalAnswer]]
_ROUNDS = 5  # how often changed arguments may be wrong before that counts as a no


@dataclass(slots=True)
class Guard:
    """Guards the calls of one run; `live` reads the session anew, `always` lasting approvals."""

    policy: Policy
    egress: Callable[[], Egress]
    live: Callable[[], Session]
    ask: Ask
    always: Callable[[], set[str]]
    approve: Approve = "ask"
    messages: Sequence[Message] = ()
    _denied: set[str] = field(default_factory=set)

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        """Returns the call as it may run; raises ToolError, in words for the model, if not."""
        if tool.spec.effect == "read" and tool.origin != "mcp" and not self.policy.rules:
            return call  # no check below applies
        self._check_live(call, tool)
        finding, why = await self._why(call, tool)
        if not why:
            return call
        key = approval_key(call.name, call.arguments, definition(tool))
        if key in self._denied:
            raise _declined("The user has already said no to this very call.")
        if key in self.always():
            return call
        permitted = await self._asked(call, tool, emit, finding, why)
        self._check_live(permitted, tool)  # the user may have taken their time
        return permitted

    def search_withdrawn(self) -> str | None:
        """Returns, for the user, why the provider may no longer search by itself, else None."""
        review = self.policy.review(private=holds_private(self.messages))
        return withdrawn(self.live().search, review)

    def _check_live(self, call: ToolCall, tool: Tool) -> None:
        session = self.live()
        if tool.spec.effect not in ALLOWED[session.mode]:
            raise ToolError("not_allowed", f"{call.name} is not allowed in {session.mode} mode.")
        if tool.web and (why := refused(session.search)):
            raise ToolError("search_off", why)

    async def _found(self, tool: Tool, arguments: Mapping[str, Any]) -> Finding | None:
        """Returns the egress finding; what stays on this machine may hold whatever it likes.

        An address that the session has not met is asked about wherever it leads.
        """
        finding = self.egress().look(tool, arguments)
        if finding is None or finding.code == "unseen_url" or tool.stays is None:
            return finding
        return None if await tool.stays(arguments) else finding

    async def _why(self, call: ToolCall, tool: Tool) -> tuple[Finding | None, str]:
        """Returns the egress finding and the question for the user, "" if there is none."""
        finding = await self._found(tool, call.arguments)
        if finding and finding.refuse:
            raise ToolError(finding.code, f"{call.name} was not run. {finding.why}")
        action, said = self.policy.verdict(tool, call.arguments)
        if action == "deny":
            raise ToolError("denied_by_rule", f"{call.name} was not run: a rule forbids it.")
        words = (finding.why if finding else "", said if action == "confirm" else "")
        return finding, " ".join(filter(None, words))

    async def _asked(
        self, call: ToolCall, tool: Tool, emit: Emit, finding: Finding | None, why: str
    ) -> ToolCall:
        request = await self._request(call, tool, why)
        for _ in range(_ROUNDS):
            answer = await self._decision(request, finding, emit)
            if answer.decision == "deny":
                self._denied.add(approval_key(call.name, call.arguments, definition(tool)))
                raise _declined(_DENIED_BY.get(answer.by, "The user declined this call."))
            changed = coerced(answer.arguments, tool.spec.parameters)
            wrong = problems_with(changed, tool.spec.parameters)
            wrong = wrong or await self._forbidden(tool, changed)
            if wrong is None:
                return replace(call, arguments=changed)
            request = {**request, "arguments": dict(changed), "why": f"This cannot run: {wrong}"}
        raise _declined("The arguments were changed to ones that cannot run.")

    async def _forbidden(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Returns why this may not run even with the user's consent, or None."""
        finding = await self._found(tool, arguments)
        if finding and finding.refuse:
            return finding.why
        action, said = self.policy.verdict(tool, arguments)
        return said if action == "deny" else None

    async def _request(self, call: ToolCall, tool: Tool, why: str) -> dict[str, Any]:
        return {
            "call_id": call.id,
            "name": call.name,
            "arguments": dict(call.arguments),
            "effect": tool.spec.effect,
            "server": tool.server,
            "why": why,
            "preview": await tool.preview(call.arguments) if tool.preview else None,
            "definition": definition(tool),
        }

    async def _decision(
        self, request: Mapping[str, Any], finding: Finding | None, emit: Emit
    ) -> ApprovalAnswer:
        """Asks the user, or decides; `auto` approves no call that the egress checks stopped."""
        if self.approve == "ask":
            return await self.ask(request, emit)
        yes = self.approve == "auto" and finding is None
        data = decided(request, "once" if yes else "deny", None, self.approve)
        await emit.event("approval_requested", request)
        await emit.event("approval_decided", data)
        return ApprovalAnswer(data["decision"], data["arguments"], self.approve)


@dataclass(slots=True)
class GuardedProvider:
    """A provider that removes its own search from a request once the switch forbids it."""

    provider: Streams
    guard: Guard
    emit: Emit
    _told: bool = False

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Returns the provider's own stream where nothing is removed: deltas cost no more."""
        why = self.guard.search_withdrawn() if request.native_search is not None else None
        return self._without(request, why) if why else self.provider.stream(request)

    async def _without(self, request: Request, why: str) -> AsyncGenerator[StreamEvent, None]:
        if not self._told:
            self._told = True
            await self.emit.event("notice", {"code": "native_search_held_back", "message": why})
        async with aclosing(self.provider.stream(replace(request, native_search=None))) as stream:
            async for event in stream:
                yield event


_DENIED_BY = {
    "never": "This call needs the user's approval, and nobody can be asked.",
    "auto": "This call needs the user's own approval, and nobody can be asked.",
}


def _declined(why: str) -> ToolError:
    return ToolError("declined", f"{why} Do not repeat it; go on without it.")


_KEPT = 8  # transcripts whose exposure is cached


class GuardFactory:
    """Makes the guards of runs; `approvals` takes the user's answers."""

    def __init__(
        self, settings: Settings, log: EventLog, sources: Iterable[ToolSource] = ()
    ) -> None:
        self._settings = settings
        self._log = log
        self._sources = tuple(sources)
        self._secrets: tuple[Mapping[str, str], Secrets] = ({}, Secrets({}))
        self._exposures: OrderedDict[str, Exposure] = OrderedDict()
        self.approvals = Approvals(log)

    def use(self, settings: Settings) -> None:
        """Uses these settings for the guards made from now on."""
        self._settings = settings

    def policy(self) -> Policy:
        """Reads the user's rules. Raises ConfigError for a broken file."""
        return load_policy(self._settings.home)

    def guard(
        self,
        session: Session,
        policy: Policy,
        approve: Approve,
        sources: SourceTable,
        messages: Sequence[Message],
    ) -> Guard:
        """Makes the guard of one run; `messages` may grow with it."""
        secrets = partial(self._known, session.workspace)
        mixed = policy.private_and_untrusted
        return Guard(
            policy=policy,
            egress=cache(
                lambda: Egress(secrets, sources, self._exposure(session, messages), mixed)
            ),
            live=partial(self._log.session, session.id),
            ask=partial(self.approvals.ask, session.id),
            always=partial(self.approvals.always, session.id),
            approve=approve,
            messages=messages,
        )

    def _exposure(self, session: Session, messages: Sequence[Message]) -> Exposure:
        """Returns what the transcript exposes; that of a cached transcript is read on."""
        known = self._exposures.pop(session.id, None)
        if known is None or known.messages is not messages:
            known = Exposure(messages)
        self._exposures[session.id] = known
        if len(self._exposures) > _KEPT:
            self._exposures.popitem(last=False)
        return known

    def _known(self, workspace: str | None) -> Secrets:
        """Returns every secret of this process and of the servers' configuration."""
        named = secrets_of(self._settings.env)
        for source in self._sources:
            named |= source.secrets(workspace)
        if named != self._secrets[0]:
            self._secrets = (named, Secrets(named))
        return self._secrets[1]
