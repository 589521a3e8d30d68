"""A wire between a program and a server, which can be cut where it hurts."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Wire:
    """Passes on to a port of 127.0.0.1, at a port of its own. Use with `with`.

    `lose(n)`: of the nth message from now on that holds `mark`, the answer is lost with its
    connection: the server has done what it was asked, and nobody knows. `cut(n, asks)`: after n
    more bytes to the server, or from it, the connection breaks, in whatever message that is.
    `mend`: not any more.
    """

    def __init__(self, port: int, mark: bytes) -> None:
        self.server = port
        self._mark = mark
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._count = self._fatal = 0
        self._left: dict[bool, int] = {}
        self.lost = threading.Event()

    def lose(self, number: int) -> None:
        """See above."""
        with self._lock:
            self._count, self._fatal = 0, number
            self.lost.clear()

    def cut(self, count: int, *, asks: bool) -> None:
        """See above."""
        with self._lock:
            self._left = {asks: count}
            self.lost.clear()

    def mend(self) -> None:
        """See above."""
        with self._lock:
            self._left.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server))
                doomed = threading.Event()
                for way in ((client, server, doomed, True), (server, client, doomed, False)):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, doomed: threading.Event, asks: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asks and self._meets(data):
                    doomed.set()
                elif doomed.is_set():
                    break  # this is the answer
                whole = self._rest(data, asks)
                target.sendall(whole)
                if len(whole) < len(data):
                    self.lost.set()
                    break
        if not asks and doomed.is_set():
            self.lost.set()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _rest(self, data: bytes, asks: bool) -> bytes:
        """What of it goes through: all, or what comes before the cut."""
        with self._lock:
            if asks not in self._left:
                return data
            passed = data[: self._left[asks]]
            self._left[asks] -= len(passed)
            if len(passed) < len(data):
                del self._left[asks]
            return passed

    def _meets(self, data: bytes) -> bool:
        with self._lock:
            self._count += self._mark in data
            return self._mark in data and self._count == self._fatal

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *rest: object) -> None:
        self._listener.close()
