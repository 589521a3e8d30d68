"""What a client's run is given: a guard without a user, tools to hand out, a queue of events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.guard.egress import Egress
from searchloop.agent.run.recorder import told_of, with_engine
from searchloop.agent.tools import Tool
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import (
    Emit,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

Happened = tuple[str, Mapping[str, Any]]  # an event: its type, as in the log, and its data


KEEPALIVE = 15.0  # seconds of silence after which a client is told that its run lives
_CROWDED = 16  # events at once, from which on deltas of one kind become one


def _joined(batch: Sequence[Happened]) -> Iterator[Happened]:
    for type, events in groupby(batch, key=itemgetter(0)):
        if type in ("text_delta", "thinking_delta"):
            yield type, {"text": "".join(data["text"] for _, data in events)}
        else:
            yield from events


class Unattended:
    """The guard of a run that has no user to ask: what it would ask about is refused."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        """See `CallGuard`."""
        if found := self._egress.look(tool, call.arguments):
            raise ToolError(found.code, found.why, "Nobody can be asked here, so it was not done.")
        return call


class HandedOut(Exception):
    """A step has calls for the client; `results` are those of ours in it."""

    def __init__(self, results: Sequence[ToolResult]) -> None:
        super().__init__()
        self.results = results


class HandingOut:
    """Our tools, and the client's, whose calls get no result here: they end the loop."""

    def __init__(
        self, ours: Toolset, theirs: Sequence[ToolSpec], over: Callable[[], str | None]
    ) -> None:
        """`over` says in words that no more steps with tools may follow."""
        self._ours, self._theirs, self._over = ours, tuple(theirs), over
        self._names = {spec.name for spec in theirs}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """See `Toolbox`. A tool of the client goes before ours of the same name."""
        ours = tuple(spec for spec in self._ours.specs if spec.name not in self._names)
        return (*self._theirs, *ours)

    @property
    def exhausted(self) -> str | None:
        """See `Toolbox`."""
        return self._ours.exhausted or self._over()

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """See `Toolbox`."""
        ours = tuple(call for call in calls if call.problem or call.name not in self._names)
        results = await self._ours.call_all(ours, emit) if ours else []
        if len(ours) < len(calls):
            raise HandedOut(results)
        return results


class Events:
    """The emitter of a run: what happened and nobody took yet, and which engine answered."""

    def __init__(self) -> None:
        self._waiting: list[Happened] = []
        self._some, self._over = asyncio.Event(), False
        self.path, self._engine, self.usage = "", "", Usage()

    def put(self, type: str, data: Mapping[str, Any]) -> None:
        """Adds an event."""
        self._waiting.append((type, data))
        self._some.set()

    def end(self) -> None:
        """Says that nothing more happens."""
        self._over = True
        self._some.set()

    async def take(self) -> list[Happened] | None:
        """Waits for something to happen, and returns all of it: nothing after a while, None at
        the end."""
        if not (self._waiting or self._over):
            self._some.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEPALIVE):
                    await self._some.wait()
        if self._over and not self._waiting:
            return None
        taken, self._waiting = self._waiting, []
        return taken if len(taken) < _CROWDED else list(_joined(taken))

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """See `Emit`."""
        name = "text_delta" if isinstance(event, TextDelta) else "thinking_delta"
        self.put(name, {"text": event.text})

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """See `Emit`."""
        if type == "search_finished" and data["status"] == "ok":
            self._engine = str(data["by"]).partition(":")[2] or self._engine
        elif type == "message":
            self.usage = Usage(**data["usage"])
        self.put(type, data)

    async def activity(self, event: StreamEvent) -> None:
        """See `Emit`."""
        if told := told_of(event, self.path):
            await self.event(*told)

    def path_taken(self, path: str) -> str:
        """Returns the search path with the engine that answered."""
        return with_engine(path, self._engine)
