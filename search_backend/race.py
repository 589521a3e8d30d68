"""Several engines at work for one search, watched by the one thread that waits for them.

HTTP engines are exchanges on sockets that do not block; what can only block (a package that does
its own networking, a new connection) runs in a thread and wakes the waiting one.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from search_backend.engine_http import Connections, Origin, origin_of
from search_backend.exchange import Exchange, Link, Stale
from search_backend.http_values import HttpRequest, HttpResponse

_EVENTS = {"read": selectors.EVENT_READ, "write": selectors.EVENT_WRITE}


@dataclass(slots=True)
class Finish:
    """How the call `name` ended: an HttpResponse, what a function returned, or an exception."""

    name: str
    outcome: Any


@dataclass(slots=True)
class _Running:
    origin: Origin
    request: HttpRequest
    exchange: Exchange | None = None


class Race:
    """Calls by name; a context manager. Leaving it hangs up what is still running."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._selector = selectors.DefaultSelector()
        self._running: dict[str, _Running | None] = {}
        self._finished: deque[Finish] = deque()
        self._lock = threading.Lock()
        self._arrived: deque[tuple[str, Any]] = deque()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._open = True

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up what is still running."""
        for name in tuple(self._running):
            self.drop(name)
        with self._lock:
            self._open = False
            bell, self._bell = self._bell, None
            arrived = [outcome for _, outcome in self._arrived if isinstance(outcome, Link)]
            self._arrived.clear()
        for end in (*(bell or ()), *arrived):  # a connection may have come when nobody waited
            end.close()
        self._selector.close()

    def send(self, name: str, request: HttpRequest) -> None:
        """Start an HTTP call. Its end comes out of `wait`, whatever it is."""
        try:
            origin = origin_of(request.url)
        except Exception as error:
            self._running[name] = None
            self._end(name, error)
            return
        running = self._running[name] = _Running(origin, request)
        self._connect(name, running, self._connections.take(origin))

    def run(self, name: str, function: Callable[[], Any]) -> None:
        """Start a function that blocks, in a thread of its own."""
        self._running[name] = None

        def work() -> None:
            outcome: Any
            try:
                outcome = function()
            except Exception as error:  # judged by the thread that waits
                outcome = error
            self._hand_over(name, outcome)

        self._hang_bell()
        threading.Thread(target=work, name=f"engine {name}", daemon=True).start()

    def drop(self, name: str) -> None:
        """Forget a call; its connection is closed, a thread ends by itself."""
        running = self._running.pop(name, None)
        if running is not None and running.exchange is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(running.exchange.link.socket)
            running.exchange.link.close()

    def wait(self, seconds: float) -> list[Finish]:
        """The calls that ended, after at most `seconds`; empty when none did."""
        until = time.monotonic() + seconds
        while not self._finished:
            left = until - time.monotonic()
            for key, _ in self._selector.select(max(left, 0)):
                if key.data is None:
                    self._answer_bell()
                else:
                    self._step(key.data)
            if left <= 0:
                break
        finished = list(self._finished)
        self._finished.clear()
        return finished

    def _connect(self, name: str, running: _Running, link: Link | None) -> None:
        if link is None:
            self._hang_bell()
            self._connections.open(running.origin, lambda made: self._hand_over(name, made))
            return
        try:
            running.exchange = Exchange(link, running.request)
        except Exception as error:
            link.close()
            self._end(name, error)
            return
        self._selector.register(link.socket, selectors.EVENT_READ, name)
        self._step(name)

    def _step(self, name: str) -> None:
        running = self._running.get(name)
        exchange = running.exchange if running else None
        if running is None or exchange is None:
            return
        link = exchange.link
        try:
            wants = exchange.step()
        except Exception as error:
            self._selector.unregister(link.socket)
            link.close()
            running.exchange = None
            if isinstance(error, Stale):
                self._connect(name, running, None)
            else:
                self._end(name, error)
            return
        if wants is not None:
            if self._selector.get_key(link.socket).events != _EVENTS[wants]:
                self._selector.modify(link.socket, _EVENTS[wants], name)
            return
        self._selector.unregister(link.socket)
        running.exchange = None
        self._connections.keep(running.origin, link)
        self._end(name, exchange.response)

    def _end(self, name: str, outcome: HttpResponse | Exception | Any) -> None:
        if name in self._running:
            del self._running[name]
            self._finished.append(Finish(name, outcome))

    def _hang_bell(self) -> None:
        if self._bell is None:
            bell = socket.socketpair()
            for end in bell:
                end.setblocking(False)
            self._selector.register(bell[0], selectors.EVENT_READ, None)
            self._bell = bell

    def _hand_over(self, name: str, outcome: Any) -> bool:
        """Called by another thread. False when this race is over."""
        with self._lock:
            if not self._open or self._bell is None:
                return False
            self._arrived.append((name, outcome))
            with suppress(BlockingIOError):
                self._bell[1].send(b"!")
        return True

    def _answer_bell(self) -> None:
        if self._bell is not None:
            with suppress(BlockingIOError):
                self._bell[0].recv(4096)
        while self._arrived:
            name, outcome = self._arrived.popleft()
            running = self._running.get(name)
            if not isinstance(outcome, Link):
                self._end(name, outcome)
            elif running is None:  # dropped while it was connecting
                outcome.close()
            else:
                self._connect(name, running, outcome)
