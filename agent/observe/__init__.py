"""Observes a process at its log and at its transport to providers.

With recording on, the bytes that providers answered become `exchange` events beside the answer.

Others may import: logs, metrics, replay.
"""

from __future__ import annotations

import base64
import copy
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from searchloop.agent.errors import AgentError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Batch, Pending
from searchloop.agent.log.events import Event
from searchloop.agent.transport.exchange import Headers, Redirected, Response
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    NOTHING,
    Finished,
    Message,
    Request,
    StreamEvent,
    Streams,
    ToolSpec,
)

_log = logging.getLogger(__name__)
_MOST = 4 * 1024 * 1024  # recorded bytes of one answer; a longer one is marked as cut
_ANSWERS = frozenset({"message", "run_finished"})


class ProviderRequest(NamedTuple):
    """A request to a provider that is over; `problem` is an error's code or an HTTP status."""

    provider: str
    problem: str | None
    seconds: float


class Observer:
    """Receives what happens. Any thread may call it, and it must be quick."""

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """Hears that this process appended these events in so many seconds."""

    def lost(self, session_id: str) -> None:
        """Hears that another process has taken over the session's run."""

    def requested(self, request: ProviderRequest) -> None:
        """Hears that a request to a provider is over."""


class Observers(Observer):
    """Several observers as one. The failure of one is logged and stops no other."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        self._each(lambda observer: observer.stored(session_id, events, seconds))

    def lost(self, session_id: str) -> None:
        self._each(lambda observer: observer.lost(session_id))

    def requested(self, request: ProviderRequest) -> None:
        self._each(lambda observer: observer.requested(request))

    def _each(self, notify: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                notify(observer)
            except Exception:
                _log.exception("%s failed", type(observer).__name__)


class ObservedLog(EventLog):
    """An event log that reports what it appends, and appends recorded exchanges with the answer."""

    def __init__(
        self,
        where: Path | str,
        observer: Observer,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`redact` removes secrets from what servers and tools say when something failed."""
        super().__init__(where)
        self._observer = observer
        self._redact = redact

    def append(
        self,
        session_id: str,
        events: Sequence[Pending],
        *,
        durable: bool = False,
        fence: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        running = current.get()
        answers = any(kind in _ANSWERS for kind, _ in events)
        recorded: list[dict[str, Any]] = []
        if running and running.session_id == session_id and answers:
            recorded = running.exchanges
        count = len(recorded)
        events = [(kind, _told(kind, data, self._redact)) for kind, data in events]
        events = [*(("exchange", data) for data in recorded), *events]
        stored = super().append(session_id, events, durable=durable, fence=fence, after=after)
        del recorded[:count]
        return stored

    def _fenced(self, session_id: str) -> Conflict:
        self._observer.lost(session_id)
        return super()._fenced(session_id)

    def _publish(self, batch: Batch, stored: list[Event]) -> None:
        # Before the followers: one that sees the end of a run may end the program.
        self._observer.stored(batch.session, stored, max(0.0, time.time() - batch.at))
        super()._publish(batch, stored)


# Where the words of a failure stand in an event; in a result only if it is an error.
_FAILURES: Mapping[str, tuple[str, ...]] = {
    "run_finished": ("error",),
    "notice": ("message", "remedy"),
    "search_finished": ("error", "attempts", "notes"),
    "page_opened": ("error", "notes"),
    "tool_result": ("content", "details"),
}


def _told(kind: str, data: Mapping[str, Any], redact: Callable[[str], str]) -> Mapping[str, Any]:
    """Returns an event's data without secrets in the words of a failure."""
    if kind not in _FAILURES or (kind == "tool_result" and not data.get("is_error")):
        return data

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, Mapping):
            return {name: clean(each) for name, each in value.items()}
        return list(map(clean, value)) if isinstance(value, list | tuple) else value

    return {
        name: clean(value) if name in _FAILURES[kind] else value for name, value in data.items()
    }


class ObservedTransport(Transport):
    """A transport that reports requests to providers; other requests pass unobserved."""

    def __init__(
        self,
        observer: Observer,
        *,
        offline: bool = False,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        """Records answers where there is a `redact`, which removes secrets from them."""
        super().__init__(offline=offline)
        self._observer = observer
        self._redact = redact
        self._provider = ""

    def named(self, provider: str) -> Transport:
        other = copy.copy(self)
        other._provider = provider
        return other

    def _exchange(
        self, method: str, url: str, headers: Headers, body: bytes | None
    ) -> AbstractAsyncContextManager[Response]:
        exchange = super()._exchange(method, url, headers, body)
        if not self._provider:
            return exchange
        running, redact = current.get(), self._redact
        recording = _Recording(running, redact, method, url) if running and redact else None
        return self._observed(exchange, recording)

    @asynccontextmanager
    async def _observed(
        self, exchange: AbstractAsyncContextManager[Response], recording: _Recording | None
    ) -> AsyncIterator[Response]:
        began, status = time.perf_counter(), 0
        problem: str | None = None
        try:
            async with exchange as response:
                status = response.status
                if recording:
                    recording.listen(response)
                yield response
        except BaseException as error:
            # A reader that leaves early is a stop of ours, not a fault of the provider's.
            problem = error.code if isinstance(error, AgentError) else "stopped"
            if recording and not status and isinstance(error, Redirected) and error.status:
                recording.finish(error.status, whole=True, location=error.location)
            raise
        finally:
            if recording and status:
                recording.finish(status, whole=problem is None)
            problem = str(status) if status >= 400 else problem
            seconds = time.perf_counter() - began
            self._observer.requested(ProviderRequest(self._provider, problem, seconds))


class _Recording:
    """Records status and body of one exchange, and nothing of what was sent (it holds keys)."""

    def __init__(
        self, running: Running, redact: Callable[[str], str], method: str, url: str
    ) -> None:
        self._running = running
        self._redact = redact
        self._request = {"method": method, "path": urlsplit(url).path}
        self._kind = ""
        self._parts: list[bytes] = []
        self._size = 0

    def listen(self, response: Response) -> None:
        """Records every piece of the body from now on."""
        response.sink, self._kind = self._add, response.headers.get("content-type", "")

    def _add(self, data: bytes) -> None:
        if self._size <= _MOST:
            self._parts.append(data)
        self._size += len(data)

    def finish(self, status: int, *, whole: bool, location: str | None = None) -> None:
        """Leaves the record with the run, to be stored with the next answer."""
        running, body = self._running, b"".join(self._parts)
        data: dict[str, Any] = {
            **self._request,
            "status": status,
            "kind": self._kind,
            "whole": whole and self._size <= _MOST,
        }
        if location is not None:
            data["location"] = self._redact(location)
        try:
            data["body"] = self._redact(body.decode())
        except UnicodeDecodeError:
            data["base64"] = base64.b64encode(body).decode()
        if running.recorded_tools != running.tools:
            running.recorded_tools = running.tools
            data["tools"] = [tool._asdict() for tool in running.tools]
        running.exchanges.append(data)


@dataclass(slots=True, eq=False)
class Running:
    """A run under way. `exchanges` are the data of `exchange` events that are not stored yet."""

    run_id: str
    session_id: str
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[ToolSpec, ...] = ()  # the tools that this step offers to the model
    recorded_tools: tuple[ToolSpec, ...] | None = None  # those in the last recorded exchange


current: ContextVar[Running | None] = ContextVar("current", default=None)


@dataclass(slots=True)
class ObservedProvider:
    """A provider that notes in `running` which tools each step offers."""

    provider: Streams
    running: Running

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.running.tools = request.tools
        return self.provider.stream(request)


def begin(run_id: str, session_id: str) -> Running:
    """Makes this task, and every task that it starts, part of this run."""
    running = Running(run_id, session_id)
    current.set(running)
    return running


async def asked_apart(provider: Streams, request: Request) -> Finished:
    """Asks a model beside a run, of which only its own steps are recorded."""
    recording = current.set(None)
    try:
        async with aclosing(provider.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, Finished):
                    return event
    finally:
        current.reset(recording)
    return Finished(Message("assistant", ""), "stop", NOTHING)
