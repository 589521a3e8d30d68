"""The dispatcher: what runs of all that a model asks for.

A mode picks what is offered; each call's effect is checked again, because a model may name
anything, and the guard decides which calls the user is asked about. Calls of one step run together
and are answered in call order. Nothing a tool does breaks the loop: unknown name, bad arguments,
time-out and exception all become results that the model can read.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from agent.arguments import coerced
from agent.errors import AgentError
from agent.events import result_data
from agent.fence import Fence
from agent.overflow import READ_MORE, Overflow
from agent.repeats import Repeats
from agent.schema import problems_with, takes
from agent.seams import Emit
from agent.sources import SourceTable
from agent.text import well_formed
from agent.tools import ALLOWED, Tool, ToolContext
from agent.types import Mode, ToolCall, ToolResult, ToolSpec

_log = logging.getLogger(__name__)

MOST_CALLS = 100  # in one step; what is beyond is answered, not run
_AT_ONCE = 16
_REPEATED = "The model made the same call three times; it was asked to answer with what it has."


class Gate(Protocol):
    """What stands between a call that could run and its running."""

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        """The call as it may run, perhaps with arguments that the user changed.

        Raises ToolError, in words for the model, when it may not.
        """

    def seen(self, result: ToolResult) -> None:
        """Told of each result that goes into the context."""


class _Open:
    """Lets everything pass that the mode allows: for a toolset without a user behind it."""

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        return call

    def seen(self, result: ToolResult) -> None:
        pass


class Toolset:
    """The tools of one run, under one mode. Of two tools of one name the first is taken."""

    def __init__(
        self,
        tools: Iterable[Tool],
        mode: Mode,
        sources: SourceTable,
        *,
        gate: Gate | None = None,
        fence: Fence | None = None,
        overflow: Overflow | None = None,
    ) -> None:
        self._mode = mode
        self._sources = sources
        self._gate = gate or _Open()
        self._fence = fence or Fence()
        self._overflow = overflow or Overflow()
        named: dict[str, Tool] = {READ_MORE: self._overflow.tool}
        for each in tools:
            named.setdefault(each.spec.name, each)
        self._all = dict(sorted(named.items()))
        self._revealed: set[str] = set()
        self._repeats = Repeats()
        self._specs: tuple[ToolSpec, ...] | None = None

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered, by name so that the prompt's prefix stays the same."""
        if not self._overflow.empty and READ_MORE not in self._revealed:
            self._reveal((READ_MORE,))
        if self._specs is None:
            self._specs = tuple(t.spec for t in self._all.values() if self._offered(t))
        return self._specs

    def _offered(self, tool: Tool) -> bool:
        listed = tool.listed or tool.spec.name in self._revealed
        return listed and tool.suspended is None and tool.spec.effect in ALLOWED[self._mode]

    def _reveal(self, names: Iterable[str]) -> None:
        self._revealed.update(names)
        self._specs = None

    @property
    def exhausted(self) -> str | None:
        """Why no further calls help, in words; None while they may."""
        return self._repeats.exhausted

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """Runs the calls together, a few at a time, and answers them in call order.

        Each result is in the log as soon as it is there, so that a crash loses no finished work.
        """
        calls = tuple(map(self._fitted, calls))
        ended = self.exhausted
        for call in calls:
            known = self._all.get(call.name)
            data = {
                "call_id": call.id,
                "name": call.name,
                "arguments": dict(call.arguments),
                "effect": known.spec.effect if known else None,
            }
            server = {"server": known.server} if known and known.server else {}
            await emit.event("tool_call", {**data, **server})
        room = asyncio.Semaphore(_AT_ONCE)

        async def answer(place: int, call: ToolCall) -> ToolResult:
            result = await self._call(place, call, emit, room)
            await emit.event("tool_result", result_data(result))
            return result

        if len(calls) == 1:
            results = [await answer(0, calls[0])]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(i, call)) for i, call in enumerate(calls)]
            results = [task.result() for task in tasks]
        for result in results:
            self._gate.seen(result)
        if self.exhausted and not ended:
            await emit.event("notice", {"code": "repeated_call", "message": _REPEATED})
        return results

    def _fitted(self, call: ToolCall) -> ToolCall:
        """The call with its arguments in the types of the schema, where that loses nothing."""
        known = self._all.get(call.name)
        if known is None or call.problem:
            return call
        arguments = coerced(call.arguments, known.spec.parameters)
        return call if arguments == call.arguments else replace(call, arguments=arguments)

    async def _call(
        self, place: int, call: ToolCall, emit: Emit, room: asyncio.Semaphore
    ) -> ToolResult:
        if place >= MOST_CALLS:
            return _error(call, f"Not run: one step may hold {MOST_CALLS} calls at the most.")
        known = self._all.get(call.name)
        effect = known.spec.effect if known and self._offered(known) else None
        return await self._repeats.once(call, effect, lambda: self._permitted(call, emit, room))

    async def _permitted(self, call: ToolCall, emit: Emit, room: asyncio.Semaphore) -> ToolResult:
        refusal = self._refusal(call)
        if refusal:
            return _error(call, refusal)
        found = self._all[call.name]
        try:
            permitted = await self._gate.permit(call, found, emit)
        except AgentError as error:
            return _failed(call, error)
        async with room:  # who waits for the user keeps nobody else from running
            if found.spec.effect in ("write", "exec"):  # after a crash it is not done again
                await emit.event("tool_started", {"call_id": call.id})
            result = await self._run(permitted, found, emit)
        return self._told(found, call, permitted, result)

    async def _run(self, call: ToolCall, found: Tool, emit: Emit) -> ToolResult:
        context = ToolContext(call.id, self._sources, emit, self._reveal)
        try:
            async with asyncio.timeout(found.seconds):
                value = await found.run(call.arguments, context)
            if isinstance(value, str):
                value = ToolResult(call.id, call.name, value)
            result = replace(value, content=well_formed(value.content))
        except TimeoutError:
            result = _error(call, f"{call.name} gave no result within {found.seconds:g} seconds.")
        except AgentError as error:
            result = _failed(call, error)
        except asyncio.CancelledError:
            result = _error(call, f"{call.name} failed: something in it was cancelled.")
        except Exception as error:
            _log.exception("tool %s failed", call.name)
            result = _error(call, f"{call.name} failed: {type(error).__name__}: {error}")
        if _stopping():  # whatever the tool made of it
            raise asyncio.CancelledError
        return result

    def _told(self, found: Tool, asked: ToolCall, made: ToolCall, result: ToolResult) -> ToolResult:
        """The result as the model gets it: bounded, fenced, with what the user changed."""
        own = {"private": found.private, "untrusted": found.untrusted}
        marks = {m: True for m, on in own.items() if on or result.details.get(m)}
        if marks:
            result = replace(result, details={**result.details, **marks})
        result = self._overflow.bounded(result)
        content = result.content
        if "untrusted" in marks and not found.fenced:
            content = self._fence.around(content, f"result of {found.spec.name}")
        if made.arguments != asked.arguments:
            content = f"The user changed the arguments to {dict(made.arguments)!r}.\n{content}"
        return result if content is result.content else replace(result, content=content)

    def _refusal(self, call: ToolCall) -> str | None:
        """Why a call may not run, in words for the model; None when it may."""
        offered = ", ".join(spec.name for spec in self.specs) or "none"
        known = self._all.get(call.name)
        if known is None or not (known.listed or call.name in self._revealed):
            near = difflib.get_close_matches(call.name, [s.name for s in self.specs], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            return f"There is no tool called {call.name!r}. Tools you can call: {offered}.{hint}"
        if known.suspended:
            return f"{call.name} may not run: {known.suspended}"
        if known.spec.effect not in ALLOWED[self._mode]:
            return (
                f"{call.name} is not allowed in {self._mode} mode. Tools you can call: {offered}."
            )
        if call.problem:
            problem = f"The arguments of {call.name} could not be read: {call.problem}"
            return f"{problem} {takes(known.spec.parameters)}"
        wrong = problems_with(call.arguments, known.spec.parameters)
        if wrong is None:
            return None
        return f"{call.name} was not run: {wrong} {takes(known.spec.parameters)}"


def _failed(call: ToolCall, error: AgentError) -> ToolResult:
    text = f"{error.message} {error.remedy}".strip()
    return _error(call, text, {"error": error.as_dict()})


def _error(call: ToolCall, text: str, details: Mapping[str, Any] | None = None) -> ToolResult:
    return ToolResult(call.id, call.name, well_formed(text), is_error=True, details=details or {})


def _stopping() -> bool:
    """Whether this run is being cancelled, which is not the same as a tool's own cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
