"""HTTP/1.1 as the server reads it: what uvicorn lacks, as limits for slow and huge heads."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest
import uvicorn

from searchloop.web.gate import Receive, Scope, Send
from searchloop.web.listen import BoundedHead, config
from tests.tables import each_row


async def told(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the path that was asked for, at /host with the host, at /body with the body."""
    given = (await receive())["body"]
    host = b" ".join(value for name, value in scope["headers"] if name == b"host")
    body = {"/host": host, "/body": given}.get(scope["path"], scope["path"].encode())
    head = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


class Serving:
    """A server in a thread, speaking through `protocol`."""

    def __init__(self, protocol: type[BoundedHead]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        made = config(told)
        made.http = protocol
        self.server = uvicorn.Server(made)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        asyncio.run(self.server.serve([self.listener]))

    def ask(self, request: bytes) -> bytes:
        """All that it says to these bytes until it hangs up."""
        said = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=90) as connection:
            connection.sendall(request)
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65_536):
                    said += piece
        return said


@contextmanager
def serving(protocol: type[BoundedHead]) -> Iterator[Serving]:
    """A server that runs and is stopped in order."""
    made = Serving(protocol)
    made.thread.start()
    try:
        yield made
    finally:
        made.server.should_exit = True
        made.thread.join(90)
        assert not made.thread.is_alive()


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    """The server as it is for users."""
    with serving(BoundedHead) as made:
        yield made


HOST = b"Host: 127.0.0.1:1\r\n"
GOOD = b"POST /a%20b?x=%31 HTTP/1.1\r\nhost:h\r\nX-A: \t b c\t\r\nContent-Length: 2\r\n\r\n{}"


class Hasty(BoundedHead):
    """Waits for nobody."""

    head_seconds = 0.2


def test_slow_and_idle_clients_are_cut() -> None:
    """A request whose head does not arrive ends by itself, the first as well as a later one; so
    does a connection after its answer, which an empty line does not keep open."""
    with serving(Hasty) as server, contextlib.ExitStack() as after:
        server.server.config.timeout_keep_alive = 10_000
        clients = []
        for start in (b"", GOOD[:20], GOOD[:-6], b"PUT /", GOOD + GOOD[:20], GOOD, GOOD + b"\r\n"):
            address = ("127.0.0.1", server.port)
            clients.append(after.enter_context(socket.create_connection(address, timeout=90)))
            clients[-1].sendall(start)
        for client in clients:
            with contextlib.suppress(ConnectionResetError):
                while client.recv(65_536):
                    pass


@each_row(
    ("target", "host"),
    [
        (b"/host", b"127.0.0.1:1"),
        (b"http://evil.example/host", b"evil.example"),
        (b"HTTP://EVIL.example:80/host?x", b"EVIL.example:80"),
        (b"http://127.0.0.1:2/host", b"127.0.0.1:2"),
    ],
)
def test_a_whole_address_as_target_names_the_host(
    server: Serving, target: bytes, host: bytes
) -> None:
    """The gate judges the host that is asked, which the header may not hide."""
    request = b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    assert server.ask(request).rpartition(b"\r\n\r\n")[2] == host


def test_blanks_around_a_value_are_no_part_of_it(server: Serving) -> None:
    """Neither of a host nor of a token."""
    request = b"GET /host HTTP/1.1\r\nConnection: close\r\nHost: \t a.example:1 \t\r\n\r\n"
    assert server.ask(request).rpartition(b"\r\n\r\n")[2] == b"a.example:1"


def test_a_wish_for_http_2_takes_no_body_away(server: Serving) -> None:
    """Java's own client has one in its first request, and reads an answer in HTTP/1.1."""
    wish = b"Connection: Upgrade, HTTP2-Settings, close\r\nHTTP2-Settings: AAM\r\nUpgrade: h2c\r\n"
    head = b"POST /body HTTP/1.1\r\nHost: a\r\n" + wish + b"Content-Length: 13\r\n\r\n"
    assert server.ask(head + b"Upgrade: h2c\n").endswith(b"\r\n\r\nUpgrade: h2c\n")


class Patient(BoundedHead):
    """Has no clock that would cut a head."""

    head_seconds = 10_000


@each_row("start", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nX"])
def test_a_head_without_end_is_cut(start: bytes) -> None:
    """However slowly the time passes, an address, a name or a value takes no more than its room."""
    with (
        serving(Patient) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=90) as client,
    ):
        client.sendall(start)
        pieces = repeat(b"y" * 2**20, 32)
        with pytest.raises(OSError, match=r"reset|Broken pipe|aborted"):
            deque(map(client.sendall, pieces), maxlen=0)
