"""Tools: what a model may ask for, and the dispatcher that decides what runs.

A mode picks what is offered; the dispatcher checks the effect of each call again, because a model
may name anything. Calls of one step run together and are answered in call order. Nothing a tool
does breaks the loop: unknown name, bad arguments, time-out and exception all become results that
the model can read.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from agent.arguments import coerced
from agent.errors import AgentError
from agent.events import result_data
from agent.repeats import Repeats
from agent.schema import problems_with, schema_of, takes
from agent.seams import Emit
from agent.sources import SourceTable
from agent.text import well_formed
from agent.types import Effect, Mode, ToolCall, ToolResult, ToolSpec

_log = logging.getLogger(__name__)
_BLOCKING = ThreadPoolExecutor(32, thread_name_prefix="tool")

MOST_CALLS = 100  # in one step; what is beyond is answered, not run
_AT_ONCE = 16
_REPEATED = "The model made the same call three times; it was asked to answer with what it has."

ALLOWED: Mapping[Mode, frozenset[Effect]] = {
    "ask": frozenset({"read", "network"}),
    "plan": frozenset({"read", "network"}),
    "agent": frozenset({"read", "network", "write", "exec"}),
}


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use beside its arguments."""

    call_id: str
    sources: SourceTable
    emit: Emit


Run = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult | str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A spec for the model and the function behind it. `seconds` caps one call."""

    spec: ToolSpec
    run: Run
    seconds: float = 60.0


def tool(function: Callable[..., Any] | None = None, *, effect: Effect = "read") -> Any:
    """Makes a Tool of a function: name, schema and description come from its signature.

    An `async def` runs on the loop, a plain `def` on a thread. It returns text, or anything that
    JSON can hold.
    """
    if function is None:
        return lambda f: tool(f, effect=effect)
    spec = ToolSpec(
        function.__name__, inspect.cleandoc(function.__doc__ or ""), schema_of(function), effect
    )

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult | str:
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            loop = asyncio.get_running_loop()
            value = await loop.run_in_executor(_BLOCKING, lambda: function(**arguments))
        return value if isinstance(value, str | ToolResult) else json.dumps(value, default=str)

    return Tool(spec, run)


class Toolset:
    """The tools of one run, under one mode."""

    def __init__(self, tools: Iterable[Tool], mode: Mode, sources: SourceTable) -> None:
        allowed = ALLOWED[mode]
        self._mode = mode
        self._sources = sources
        self._all = {t.spec.name: t for t in sorted(tools, key=lambda t: t.spec.name)}
        self._specs = tuple(t.spec for t in self._all.values() if t.spec.effect in allowed)
        self._repeats = Repeats()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered, by name so that the prompt's prefix stays the same."""
        return self._specs

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
            await emit.event(
                "tool_call",
                {
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": dict(call.arguments),
                    "effect": known.spec.effect if known else None,
                },
            )
        room = asyncio.Semaphore(_AT_ONCE)

        async def answer(place: int, call: ToolCall) -> ToolResult:
            async with room:
                result = await self._call(place, call, emit)
            await emit.event("tool_result", result_data(result))
            return result

        if len(calls) == 1:
            results = [await answer(0, calls[0])]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(i, call)) for i, call in enumerate(calls)]
            results = [task.result() for task in tasks]
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

    async def _call(self, place: int, call: ToolCall, emit: Emit) -> ToolResult:
        if place >= MOST_CALLS:
            return _error(call, f"Not run: one step may hold {MOST_CALLS} calls at the most.")
        known = self._all.get(call.name)
        effect = known.spec.effect if known and known.spec in self._specs else None
        return await self._repeats.once(call, effect, lambda: self._run(call, emit))

    async def _run(self, call: ToolCall, emit: Emit) -> ToolResult:
        refusal = self._refusal(call)
        if refusal:
            return _error(call, refusal)
        found = self._all[call.name]
        try:
            async with asyncio.timeout(found.seconds):
                value = await found.run(call.arguments, ToolContext(call.id, self._sources, emit))
            if isinstance(value, str):
                value = ToolResult(call.id, call.name, value)
            result = replace(value, content=well_formed(value.content))
        except TimeoutError:
            result = _error(call, f"{call.name} gave no result within {found.seconds:g} seconds.")
        except AgentError as error:
            text = f"{error.message} {error.remedy}".strip()
            result = _error(call, text, {"error": error.as_dict()})
        except asyncio.CancelledError:
            result = _error(call, f"{call.name} failed: something in it was cancelled.")
        except Exception as error:
            _log.exception("tool %s failed", call.name)
            result = _error(call, f"{call.name} failed: {type(error).__name__}: {error}")
        if _stopping():  # whatever the tool made of it
            raise asyncio.CancelledError
        return result

    def _refusal(self, call: ToolCall) -> str | None:
        """Why a call may not run, in words for the model; None when it may."""
        offered = ", ".join(spec.name for spec in self._specs) or "none"
        known = self._all.get(call.name)
        if known is None:
            near = difflib.get_close_matches(call.name, [s.name for s in self._specs], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            return f"There is no tool called {call.name!r}. Tools you can call: {offered}.{hint}"
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


def _error(call: ToolCall, text: str, details: Mapping[str, Any] | None = None) -> ToolResult:
    return ToolResult(call.id, call.name, well_formed(text), is_error=True, details=details or {})


def _stopping() -> bool:
    """Whether this run is being cancelled, which is not the same as a tool's own cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
