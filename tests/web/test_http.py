"""HTTP/1.1 as the server reads it: doubtful requests are refused, slow and huge ones are cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.web.gate import Receive, Scope, Send
from searchloop.web.listen import BoundedHead, config


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells what was asked; /fault raises, /hold waits until the client is gone."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["path"] == "/fault":
        raise ZeroDivisionError
    if scope["path"] == "/hold":
        await receive()
    told = {
        "method": scope["method"],
        "path": scope["path"],
        "raw": scope["raw_path"].decode("latin-1"),
        "query": scope["query_string"].decode("latin-1"),
        "headers": [[n.decode("latin-1"), v.decode("latin-1")] for n, v in scope["headers"]],
        "body": body.decode("latin-1"),
    }
    answer = json.dumps(told).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": answer})


class Serving:
    """A server in a thread, speaking through `protocol`."""

    def __init__(self, protocol: type[BoundedHead]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        made = config(echo, lifespan="off")
        made.http = protocol
        self.server = uvicorn.Server(made)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        asyncio.run(self.server.serve([self.listener]))

    def ask(self, *pieces: bytes, answers: int = 1) -> list[tuple[int, Any]]:
        """Status and body of so many answers to these bytes; fewer when it hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=90) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                connection.sendall(piece)
            reader = connection.makefile("rb")
            return [one for _ in range(answers) if (one := read(reader)) is not None]


def read(reader: Any) -> tuple[int, Any] | None:
    """One answer; None when the connection ends before one."""
    try:
        status = reader.readline()
        if not status:
            return None
        headers = {}
        while (line := reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        number = int(status.split()[1])
        if number != 200:  # the library's own refusal, after which it hangs up
            reader.read()
            return number, None
        return number, json.loads(reader.read(int(headers[b"content-length"])))
    except ConnectionResetError:
        return None


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


CHUNKED = b"Transfer-Encoding: chunked\r\n"
HOST = b"Host: 127.0.0.1:1\r\n"
GOOD = b"POST /a%20b?x=%31 HTTP/1.1\r\nhost:h\r\nX-A: \t b c\t\r\nContent-Length: 2\r\n\r\n{}"
GOOD_ONES = (
    GOOD,
    b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /?a=b&c=%C3%A9 HTTP/1.1\r\n" + HOST + b"Empty:\r\nTwice: a\r\nTwice: b\r\n\r\n",
    b"GET /%2e%2e/%00 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: caf\xe9\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Connection: keep-alive\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"DELETE / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 70000\r\n\r\n" + b"x" * 70_000,
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 00000002\r\n\r\n{}",
)
BAD_ONES = (
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2, 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length : 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b" folded: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X\xff: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n",
    b"get / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
)


@pytest.mark.parametrize("request_bytes", GOOD_ONES, ids=range(len(GOOD_ONES)))
def test_a_good_request_arrives(server: Serving, request_bytes: bytes) -> None:
    """The application sees it once, with its body."""
    [(status, seen)] = server.ask(request_bytes)
    assert status == 200
    assert request_bytes.startswith(seen["method"].encode())
    assert seen["body"] in ("", "{}", "x" * 70_000)


@pytest.mark.parametrize("request_bytes", BAD_ONES, ids=range(len(BAD_ONES)))
def test_a_doubtful_request_never_arrives(server: Serving, request_bytes: bytes) -> None:
    """It gets a 400 or nothing, and what follows on its connection is not read.

    A missing or doubled Host is the gate's to refuse.
    """
    follower = b"GET /next HTTP/1.1\r\n" + HOST + b"\r\n"
    assert [status for status, _ in server.ask(request_bytes + follower)] in ([], [400])


@settings(max_examples=15)
@given(st.lists(st.integers(1, len(GOOD) - 1), max_size=4, unique=True))
def test_a_request_may_come_in_pieces(server: Serving, cuts: list[int]) -> None:
    """However the bytes are cut, the request is the same, and so is the next one."""
    edges = [0, *sorted(cuts), len(GOOD)]
    pieces = [GOOD[a:b] for a, b in pairwise(edges)]
    found = server.ask(*pieces, GOOD, answers=2)
    assert [status for status, _ in found] == [200, 200]
    assert found[0] == found[1]
    assert (found[0][1]["path"], found[0][1]["body"]) == ("/a b", "{}")


def test_requests_sent_ahead_are_answered_in_order(server: Serving) -> None:
    """Pipelining is the library's business, also when it begins after an ordinary request."""
    ahead = b"".join(b"GET /%d HTTP/1.1\r\n%b\r\n" % (n, HOST) for n in range(4))
    found = server.ask(GOOD, ahead, answers=5)
    assert [answer["path"] for _, answer in found] == ["/a b", "/0", "/1", "/2", "/3"]


def test_a_fault_ends_the_connection_and_not_the_server(server: Serving) -> None:
    """An application that raises is a 500; the gate has its own words for that."""
    assert server.ask(b"GET /fault HTTP/1.1\r\n" + HOST + b"\r\n") == [(500, None)]
    assert server.ask(GOOD)[0][0] == 200


def test_whoever_leaves_is_noticed(server: Serving) -> None:
    """A request whose client is gone ends, and the server can be stopped."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n")
    assert server.ask(GOOD)[0][0] == 200


class Hasty(BoundedHead):
    """Waits for nobody."""

    head_seconds = 0.2


@pytest.mark.parametrize("start", [b"", GOOD[:20], GOOD[:-6], b"PUT /", GOOD + GOOD[:20]])
def test_slow_clients_are_cut(start: bytes) -> None:
    """A request whose head does not arrive ends by itself, the first as well as a later one."""
    with serving(Hasty) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(90)
        client.sendall(start)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(65_536):
                pass


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nX"])
def test_a_head_without_end_is_cut(server: Serving, start: bytes) -> None:
    """However slowly the time passes, an address, a name or a value takes no more than its room."""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(90)
        client.sendall(start)
        with pytest.raises(OSError, match=r"reset|Broken pipe|aborted"):
            client.sendall(b"y" * 2**30)
