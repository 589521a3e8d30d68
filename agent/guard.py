"""The guard: what stands between a call that fits its schema and its running.

In this order: the session as it is now (the switch or the mode may have been changed meanwhile),
what leaves (`agent.egress`), the user's rules (`agent.policy`), and where one of these says so, the
user. None of it reads what the model has read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from agent.approvals import Answer, Approve, approval_key, decided
from agent.arguments import coerced
from agent.egress import Egress, Finding
from agent.errors import ToolError
from agent.policy import Policy
from agent.schema import problems_with
from agent.seams import Emit, Streams
from agent.session import Session
from agent.tools import ALLOWED, Tool, definition
from agent.types import Request, StreamEvent, ToolCall, ToolResult

Ask = Callable[[Mapping[str, Any], Emit], Awaitable[Answer]]
_ROUNDS = 5  # how often changed arguments may be wrong before that counts as a no


@dataclass(slots=True)
class Guard:
    """The gate of one run. `live` reads the session anew, `always` the approvals given for good."""

    policy: Policy
    egress: Egress
    live: Callable[[], Session]
    ask: Ask
    always: Callable[[], set[str]]
    approve: Approve = "ask"
    _denied: set[str] = field(default_factory=set)

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        """The call as it may run. Raises ToolError, in words for the model, when it may not."""
        if tool.spec.effect == "read" and tool.origin != "mcp" and not self.policy.rules:
            return call  # nothing below could say otherwise
        self._check_live(call, tool)
        finding, why = self._why(call, tool)
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

    def seen(self, result: ToolResult) -> None:
        """See `Gate.seen`."""
        self.egress.exposure.add(result)

    def native_hindrance(self) -> str | None:
        """Why the provider may not search by itself now, in words for the user; None if it may."""
        if self.live().search == "off":
            return "Web search was switched off; the rest of this answer is without it."
        exposure = self.egress.exposure
        if exposure.private and self.policy.private_and_untrusted != "allow":
            return (
                "Your own data is in this conversation now, and what the model searches for by "
                "itself cannot be shown first: the rest of this answer is without web search."
            )
        return None

    def _check_live(self, call: ToolCall, tool: Tool) -> None:
        session = self.live()
        if tool.spec.effect not in ALLOWED[session.mode]:
            raise ToolError("not_allowed", f"{call.name} is not allowed in {session.mode} mode.")
        if tool.web and session.search == "off":
            raise ToolError("search_off", "The user has switched web search off. Nothing was sent.")

    def _why(self, call: ToolCall, tool: Tool) -> tuple[Finding | None, str]:
        """What was found, and the words for the user if they are to be asked, else empty."""
        finding = self.egress.look(tool, call.arguments)
        if finding and finding.refuse:
            raise ToolError(finding.code, f"{call.name} was not run. {finding.why}")
        action, said = self.policy.verdict(tool, call.arguments)
        if action == "deny":
            raise ToolError("denied_by_rule", f"{call.name} was not run: a rule forbids it.")
        words = [finding.why] if finding else []
        words += [said] if action == "confirm" else []
        return finding, " ".join(words)

    async def _asked(
        self, call: ToolCall, tool: Tool, emit: Emit, finding: Finding | None, why: str
    ) -> ToolCall:
        request = await self._request(call, tool, why)
        for _ in range(_ROUNDS):
            answer = await self._decision(request, finding, emit)
            if answer.decision == "deny":
                self._denied.add(approval_key(call.name, call.arguments, definition(tool)))
                raise _declined(_WHO_SAID_NO[answer.by if answer.by in _WHO_SAID_NO else "user"])
            changed = coerced(answer.arguments, tool.spec.parameters)
            wrong = problems_with(changed, tool.spec.parameters) or self._forbidden(tool, changed)
            if wrong is None:
                return replace(call, arguments=changed)
            request = {**request, "arguments": dict(changed), "why": f"This cannot run: {wrong}"}
        raise _declined("The arguments were changed to ones that cannot run.")

    def _forbidden(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Why not even the user's yes lets this run; they can only change it again."""
        finding = self.egress.look(tool, arguments)
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
    ) -> Answer:
        """The user's, or where nobody is there to be asked, what was settled before.

        What the egress guard has stopped is never approved unseen.
        """
        if self.approve == "ask":
            return await self.ask(request, emit)
        yes = self.approve == "auto" and finding is None
        data = decided(request, "once" if yes else "deny", None, self.approve)
        await emit.event("approval_requested", request)
        await emit.event("approval_decided", data)
        return Answer(data["decision"], data["arguments"], self.approve)


@dataclass(slots=True)
class Watched:
    """A provider whose own search is taken out of a request as soon as it may not be used.

    The switch can be turned off in the middle of a turn, and a file can be read in it.
    """

    provider: Streams
    guard: Guard
    emit: Emit
    _told: bool = False

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Streams.stream`; where nothing is taken out, a delta costs nothing more."""
        why = self.guard.native_hindrance() if request.native_search is not None else None
        return self._without(request, why) if why else self.provider.stream(request)

    async def _without(self, request: Request, why: str) -> AsyncGenerator[StreamEvent, None]:
        if not self._told:
            self._told = True
            notice = {"code": "native_search_held_back", "message": why}
            await self.emit.event("notice", notice)
        async with aclosing(self.provider.stream(replace(request, native_search=None))) as stream:
            async for event in stream:
                yield event


_WHO_SAID_NO = {
    "user": "The user declined this call.",
    "never": "This call needs the user's approval, and nobody can be asked.",
    "auto": "This call needs the user's own approval, and nobody can be asked.",
}


def _declined(why: str) -> ToolError:
    return ToolError("declined", f"{why} Do not repeat it; go on without it.")
