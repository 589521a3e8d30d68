"""The one seam through which a process is watched: its log, and its way to providers.

An observer is told what was appended to the log and how long that took, and what came of each
request to a provider. Metrics, the structured log and telemetry are observers; loop, codecs and
tools know nothing of them. With `recording`, what a provider answered is also kept for `replay`,
as `exchange` events in the same append as the answer made of it.
"""

from __future__ import annotations

import base64
import copy
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import urlsplit

from agent.errors import AgentError, Conflict
from agent.events import Event
from agent.log import EventLog
from agent.parcel import Passing, Pending
from agent.running import Running, current
from agent.store.contract import Batch
from agent.transport import Transport
from agent.wire import Headers, Redirected, Response

_log = logging.getLogger(__name__)
MOST = 4 * 1024 * 1024  # bytes of one answer that are recorded; a longer one is marked as cut
_ANSWERS = frozenset({"message", "run_finished"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a provider that is over. `problem` is an error's code, an HTTP status, or None;
    `first` and `seconds` are the time to the answer's head and to its end."""

    provider: str
    problem: str | None
    first: float | None
    seconds: float


class Observer(Protocol):
    """Is told; may be called from any thread, and must be quick."""

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """These events were appended by this process, in so many seconds."""

    def lost(self, session_id: str) -> None:
        """Another process has taken over the session's run."""

    def asked(self, asked: Asked) -> None:
        """A provider was asked."""


class Observers:
    """Several as one. One that fails is complained about, and keeps nobody from working."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """See `Observer.stored`."""
        self._tell(lambda each: each.stored(session_id, events, seconds))

    def lost(self, session_id: str) -> None:
        """See `Observer.lost`."""
        self._tell(lambda each: each.lost(session_id))

    def asked(self, asked: Asked) -> None:
        """See `Observer.asked`."""
        self._tell(lambda each: each.asked(asked))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for each in self._observers:
            try:
                tell(each)
            except Exception:
                _log.exception("%s failed", type(each).__name__)


class ObservedLog(EventLog):
    """An event log that tells of what it appends, and appends what was recorded with the answer."""

    def __init__(self, where: Path | str, observer: Observer) -> None:
        super().__init__(where)
        self._observer = observer

    def append(
        self,
        session_id: str,
        events: Sequence[Pending],
        *,
        durable: bool = False,
        fence: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        """See `EventLog.append`."""
        running = current.get()
        recorded: list[dict[str, Any]] = []
        ours = running if running and running.session_id == session_id else None
        if ours and ours.exchanges and any(kind in _ANSWERS for kind, _ in events):
            recorded = ours.exchanges.copy()
            events = [*(("exchange", data) for data in recorded), *events]
        try:
            how = {"fence": fence, "after": after}
            stored = super().append(session_id, events, durable=durable, **how)
        except Conflict as conflict:
            if conflict.code == "fenced":
                self._observer.lost(session_id)
            raise
        if ours:
            del ours.exchanges[: len(recorded)]
        return stored

    def append_deltas(self, deltas: Sequence[Passing]) -> list[list[Event] | Conflict]:
        """See `EventLog.append_deltas`."""
        done = super().append_deltas(deltas)
        for each, became in zip(deltas, done, strict=True):
            if isinstance(became, Conflict):
                self._observer.lost(each.session)
        return done

    def _publish(self, batch: Batch, stored: list[Event]) -> None:
        # First of all: whoever sees the end of a run may end the program.
        self._observer.stored(batch.session, stored, max(0.0, time.time() - batch.at))
        super()._publish(batch, stored)


class ObservedTransport(Transport):
    """A transport that tells of what providers are asked. Others' requests pass unobserved."""

    def __init__(
        self,
        observer: Observer,
        *,
        offline: bool = False,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        """With `redact` answers are recorded, without what it takes out."""
        super().__init__(offline=offline)
        self._observer = observer
        self._redact = redact
        self._provider = ""

    def named(self, provider: str) -> Transport:
        """See `Transport.named`: the same connections, under this name."""
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
        tape = _Tape(running, redact, method, url) if running and redact else None
        return _Watched(exchange, self._provider, self._observer.asked, tape)


class _Watched:
    """An exchange, timed."""

    def __init__(
        self,
        exchange: AbstractAsyncContextManager[Response],
        provider: str,
        tell: Callable[[Asked], None],
        tape: _Tape | None,
    ) -> None:
        self._exchange = exchange
        self._provider = provider
        self._tell = tell
        self._tape = tape
        self._began = time.perf_counter()
        self._first: float | None = None
        self._status = 0

    async def __aenter__(self) -> Response:
        try:
            response = await self._exchange.__aenter__()
        except BaseException as error:
            if self._tape and isinstance(error, Redirected) and error.status:
                self._tape.keep(error.status, True, error.location)
            self._over(error)
            raise
        self._first = time.perf_counter() - self._began
        self._status = response.status
        if self._tape:
            response.sink = self._tape.heard
            self._tape.kind = response.headers.get("content-type", "")
        return response

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._tape and self._status:
                self._tape.keep(self._status, error is None)
            await self._exchange.__aexit__(kind, error, trace)
        finally:
            self._over(error)

    def _over(self, error: BaseException | None) -> None:
        problem = str(self._status) if self._status >= 400 else None
        if problem is None and error is not None:
            # A reader that leaves early is a stop of ours, not a fault of the provider's.
            problem = error.code if isinstance(error, AgentError) else "stopped"
        seconds = time.perf_counter() - self._began
        self._tell(Asked(self._provider, problem, self._first, seconds))


class _Tape:
    """What came back in one exchange: status and body. What was sent, keys too, is not kept."""

    def __init__(
        self, running: Running, redact: Callable[[str], str], method: str, url: str
    ) -> None:
        self._running = running
        self._redact = redact
        self.kind = ""
        self._method = method
        self._path = urlsplit(url).path
        self._parts: list[bytes] = []
        self._size = 0

    def heard(self, data: bytes) -> None:
        if self._size <= MOST:
            self._parts.append(data)
        self._size += len(data)

    def keep(self, status: int, whole: bool, location: str | None = None) -> None:
        running, body = self._running, b"".join(self._parts)
        data: dict[str, Any] = {
            "method": self._method,
            "path": self._path,
            "status": status,
            "kind": self.kind,
            "whole": whole and self._size <= MOST,
        }
        if location is not None:
            data["location"] = self._redact(location)
        try:
            data["body"] = self._redact(body.decode())
        except UnicodeDecodeError:
            data["base64"] = base64.b64encode(body).decode()
        if running.told != running.tools:
            running.told = running.tools
            data["tools"] = [asdict(tool) for tool in running.tools]
        running.exchanges.append(data)
