"""Models being got, one task each on the server's loop; a page asks how far they are.

Nothing here outlives the process: a server that was told to get a model keeps what it has, and the
next attempt goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from agent.errors import AgentError, Conflict
from agent.hosting import Progress

AT_ONCE = 3
_KEPT = 20  # finished ones that are still shown


@dataclass(slots=True)
class Pull:
    """One model on its way. `done` of `total` bytes; `error` says why it failed."""

    model: str
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    status: str = ""
    done: int = 0
    total: int = 0
    error: dict[str, str] | None = None


class Pulls:
    """The pulls of this process, by model. Belongs to one loop."""

    def __init__(self) -> None:
        self._pulls: dict[str, Pull] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def list(self) -> list[Pull]:
        """All that are known, newest last."""
        return list(self._pulls.values())

    def running(self, model: str) -> Pull | None:
        """The model's pull, if it is still on its way."""
        return self._pulls[model] if model in self._tasks else None

    def start(self, model: str, steps: AsyncGenerator[Progress, None]) -> Pull:
        """Gets a model that is not on its way yet. Raises Conflict when too many are."""
        if len(self._tasks) >= AT_ONCE:
            raise Conflict(
                "too_many_pulls",
                f"{AT_ONCE} models are on their way already.",
                "Wait for one of them, or cancel it.",
            )
        self._pulls.pop(model, None)
        pull = self._pulls[model] = Pull(model)
        task = asyncio.create_task(_follow(pull, steps), name=f"pull {model}")
        self._tasks[model] = task
        task.add_done_callback(lambda _: self._ended(pull))
        finished = [name for name in self._pulls if name not in self._tasks]
        for name in finished[: max(0, len(finished) - _KEPT)]:
            del self._pulls[name]
        return pull

    async def cancel(self, model: str) -> bool:
        """Stops a pull and waits until it has stopped; False when there is none."""
        task = self._tasks.get(model)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def aclose(self) -> None:
        """Stops them all."""
        for model in list(self._tasks):
            await self.cancel(model)

    def _ended(self, pull: Pull) -> None:
        del self._tasks[pull.model]
        if pull.state == "running":
            pull.state = "cancelled"


async def _follow(pull: Pull, steps: AsyncGenerator[Progress, None]) -> None:
    try:
        async with aclosing(steps):
            async for told in steps:
                pull.status, pull.done, pull.total = told.status, told.done, told.total
        pull.state = "done"
    except AgentError as error:
        pull.state, pull.error = "failed", error.as_dict()
