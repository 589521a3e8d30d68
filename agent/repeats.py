"""Calls of one turn that were made before: small models ask the same thing again and again.

The same tool with the same arguments, in whatever order they are written, gets the result that is
there already. Whoever asks a third time is not helped by a third copy: the turn goes on without
calls. A call that failed may be tried again, and after a change everything may be asked anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.types import Effect, ToolCall, ToolResult, Usage

MOST = 3
_AGAIN = (
    "This call was made before in this turn; nothing was done again, the result is the same. "
    "Use it, or call with other arguments."
)
_ENOUGH = (
    f"Not run: this call was made {MOST} times in this turn and its result stands above. "
    "Answer now with what you have; no more calls can be made."
)


class Repeats:
    """What was called in a turn. `exhausted` says, in words, that it is enough; None until then."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._results: dict[str, asyncio.Future[ToolResult]] = {}
        self.exhausted: str | None = None

    async def once(
        self, call: ToolCall, effect: Effect | None, run: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        """The result of `run`, or the one that the same call had before.

        `effect` is None for a tool that does not exist. A call that changes something always runs,
        and so does one that looks at this machine: what it finds may be new (the time, a job).
        """
        if effect in ("write", "exec"):
            self._times.clear()
            self._results.clear()
        if effect in ("read", "write", "exec"):
            return await run()
        key = canonical(call)
        times = self._times[key] = self._times.get(key, 0) + 1
        if times >= MOST:
            self.exhausted = f"the same call {MOST} times"
            return ToolResult(call.id, call.name, _ENOUGH, is_error=True)
        earlier = self._results.get(key)
        if earlier is not None:
            result = await asyncio.shield(earlier)
            if not result.is_error:
                content = f"{result.content}\n\n{_AGAIN}"
                return replace(result, call_id=call.id, content=content, usage=Usage())
        return await self._run(key, run)

    async def _run(self, key: str, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        future = self._results[key] = asyncio.get_running_loop().create_future()
        try:
            result = await run()
        except BaseException:
            future.cancel()
            raise
        future.set_result(result)
        return result


def canonical(call: ToolCall) -> str:
    """The call in one spelling: arguments sorted, blanks in texts evened out."""
    return json.dumps([call.name, _even(dict(call.arguments)), call.problem], sort_keys=True)


def _even(value: object) -> object:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {str(k): _even(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_even(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float) else repr(value)
