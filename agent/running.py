"""Which run this code belongs to, whatever thread or task it is on.

A run sets it once; tasks and threads that it starts inherit it. Logs name the run, and what is
recorded of its exchanges with a provider waits here until the answer is appended to the log.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agent.seams import Streams
from agent.types import Request, StreamEvent, ToolSpec


@dataclass(slots=True, eq=False)
class Running:
    """A run under way. `exchanges` are the data of `exchange` events that are not stored yet."""

    run_id: str
    session_id: str
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[ToolSpec, ...] = ()  # what the model is offered in this step
    told: tuple[ToolSpec, ...] | None = None  # what the last exchange said of them


current: ContextVar[Running | None] = ContextVar("current", default=None)


@dataclass(slots=True)
class Noted:
    """A provider of which it is noted what tools each step offers."""

    provider: Streams
    running: Running

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Streams.stream`."""
        self.running.tools = request.tools
        return self.provider.stream(request)


def begin(run_id: str, session_id: str) -> Running:
    """From now on this task and what it starts belong to this run."""
    running = Running(run_id, session_id)
    current.set(running)
    return running
