"""A web server on 127.0.0.1 that sends exactly the bytes it is told to, and may then misbehave.

Tests reach it under public addresses: `Internet` is the resolver and the maker of sockets that
`fetch` takes, and remembers what was looked up and where a connection was made to.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import Fetched, FetchLimits

DATA = Path(__file__).parent / "data"
PUBLIC = "93.184.216.34"
# Tests that expect a failure do not wait for its appointed time.
LIMITS = FetchLimits(seconds=5, failure_step=0)
# What a script may yield besides bytes.
RESET = object()
HANG = object()
PAUSE = object()

Script = Callable[[], Iterable[object]]


def answer(
    body: bytes = b"", *headers: str, status: str = "200 OK", kind: str = "text/html"
) -> bytes:
    """A well-formed answer that ends with the connection, unless `headers` say otherwise."""
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    """A redirect to `location`, written as it is."""
    return answer(b"", f"Location: {location}", status=status)


class HostileServer:
    """Answers each path with its script: bytes are sent; RESET, HANG and PAUSE do what they say."""

    def __init__(self, tls: bool = False) -> None:
        self.routes: dict[str, bytes | Script] = {}
        self.requests: list[bytes] = []
        self.server_names: list[str | None] = []
        self.sent = 0
        self._stop = threading.Event()
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._context = self._tls() if tls else None
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def stop(self) -> None:
        """End the scripts that hang or never end, and hang up on those who say nothing."""
        self._stop.set()
        for connection in tuple(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *exc: object) -> None:
        self.stop()
        with contextlib.suppress(OSError):
            # Closing alone does not wake a thread that waits in accept.
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        for thread in self._threads:
            thread.join(60)
        self._listener.close()

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / "server.pem")

        def note(_socket: object, name: str | None, _context: object) -> None:
            self.server_names.append(name)

        context.sni_callback = note
        return context

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stop.is_set():
                connection.close()
                self._listener.close()  # hangs up on those who come back
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            connection.settimeout(60)
            if self._context:
                connection = stack.enter_context(
                    self._context.wrap_socket(connection, server_side=True)
                )
            request = b""
            while b"\r\n\r\n" not in request:
                piece = connection.recv(65536)
                if not piece:
                    return
                request += piece
            self.requests.append(request)
            self._play(connection, request.split(b" ", 2)[1].decode("ascii"))

    def _play(self, connection: socket.socket, path: str) -> None:
        script = self.routes.get(path, answer(b"nothing here", status="404 Not Found"))
        for step in (script,) if isinstance(script, bytes) else script():
            if step is RESET:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return
            if step is HANG:
                self._stop.wait()
                return
            if step is PAUSE:
                self._stop.wait(0.02)
            elif isinstance(step, bytes):
                connection.sendall(step)
                self.sent += len(step)
            if self._stop.is_set():
                return


class Internet:
    """Names with public addresses, all of which lead to one server on this machine."""

    def __init__(
        self,
        port: int,
        names: Mapping[str, Sequence[str]] | None = None,
        closed: Sequence[str] = (),
    ) -> None:
        self._port = port
        self._names = names
        self._closed = closed
        self.looked_up: list[str] = []
        self.connected: list[tuple[str, int]] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`; without a table every name has the same public one."""
        self.looked_up.append(host)
        if self._names is None:
            return [PUBLIC]
        if host not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._names[host]

    def sockets(self, family: int, kind: int, protocol: int) -> socket.socket:
        """A socket that connects to the server on this machine, whatever the address."""
        return _Rerouted(family, self.reach)

    def fetch(self, url: str, limits: FetchLimits = LIMITS, **options: Any) -> Fetched:
        """The page at `url`, by the guard."""
        return fetch(url, limits=limits, resolve=self.resolve, sockets=self.sockets, **options)

    def reach(self, address: str, port: int) -> tuple[str, int]:
        """Where a connection to this address leads. Raises OSError."""
        self.connected.append((address, port))
        if address in self._closed:
            raise ConnectionRefusedError(111, "Connection refused")
        return "127.0.0.1", self._port


class _Rerouted(socket.socket):
    """A TCP socket that connects to another address than it is asked to, maybe of IPv6."""

    def __init__(self, family: int, reach: Callable[[str, int], tuple[str, int]]) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._asked_for = family
        self._reach = reach

    @property
    def family(self) -> int:  # type: ignore[override]
        """The one that was asked for."""
        return self._asked_for

    def connect(self, address: Any, /) -> None:
        """To the place that `reach` names."""
        super().connect(self._reach(*address[:2]))


@contextlib.contextmanager
def serving(routes: Mapping[str, bytes | Script], tls: bool = False) -> Iterator[HostileServer]:
    """A running server with these routes."""
    with HostileServer(tls) as server:
        server.routes.update(routes)
        yield server


def forever(piece: bytes, pause: bool = False) -> Iterator[object]:
    """`piece` again and again, until the client has gone or the test is over."""
    while True:
        yield piece
        if pause:
            yield PAUSE


class _Connected(socket.socket):
    """A socket that has its other end already, and tells `reached` which one was asked for."""

    def __init__(self, descriptor: int, reached: Callable[[str], object]) -> None:
        super().__init__(fileno=descriptor)
        self._reached = reached

    def connect(self, address: Any, /) -> None:
        """There is nothing to do."""
        self._reached(address[0])


@contextlib.contextmanager
def canned(response: bytes, reached: Callable[[str], object] = str) -> Iterator[socket.socket]:
    """A connected socket whose other end has said `response` and closes when this is left."""
    here, there = socket.socketpair()
    with _Connected(here.detach(), reached) as connection, there:
        there.sendall(response)
        there.shutdown(socket.SHUT_WR)
        yield connection
