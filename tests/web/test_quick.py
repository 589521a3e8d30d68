"""The short way through HTTP, held against the framing library on the same bytes."""

from __future__ import annotations

import asyncio
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

from web.asgi import Receive, Scope, Send
from web.quick import MOST_BODY, MOST_HEAD, Quick


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

    def __init__(self, protocol: Any) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        config = uvicorn.Config(
            echo, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False
        )
        self.server = uvicorn.Server(config)
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
def serving(protocol: Any) -> Iterator[Serving]:
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
def both() -> Iterator[tuple[Serving, Serving]]:
    """The short way and the library."""
    with serving(Quick) as quick, serving("h11") as h11:
        yield quick, h11


CHUNKED = b"Transfer-Encoding: chunked\r\n"
HOST = b"Host: 127.0.0.1:1\r\n"
GOOD = b"POST /a%20b?x=%31 HTTP/1.1\r\nhost:h\r\nX-A: \t b c\t\r\nContent-Length: 2\r\n\r\n{}"
REQUESTS = (
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
    # What must not be believed.
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
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
    b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/2.0\r\n" + HOST + b"\r\n",
    b"get / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET http://other/ HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
)


@pytest.mark.parametrize("request_bytes", REQUESTS, ids=range(len(REQUESTS)))
def test_it_says_what_the_library_says(both: tuple[Serving, Serving], request_bytes: bytes) -> None:
    """The application sees the same requests, and none that the library refuses."""
    quick, h11 = (server.ask(request_bytes) for server in both)
    assert quick == h11
    if not quick or quick[0][0] == 400:  # it has hung up; more may reset its answer away
        return
    # A request follows on the same connection.
    follower = b"GET /next HTTP/1.1\r\n" + HOST + b"\r\n"
    quick, h11 = (server.ask(request_bytes, follower, answers=2) for server in both)
    assert quick == h11


PIECES = st.lists(
    st.sampled_from(
        [
            *(b"GET / HTTP/1.1\r\n", b"POST /x?y HTTP/1.1\r\n", b"Host: h\r\n", b"\r\n", b"{}"),
            *(b"Content-Length: 2\r\n", b"Content-Length: 0\r\n", b"Content-Length: x\r\n"),
            *(b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"2\r\n{}\r\n", b"A: b\r\n", b"\n"),
            *(b" ", b"\t", b"\r", b":", b"A", b"\x80", b"\x00", b"Expect: 100-continue\r\n"),
        ]
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=60)
@given(PIECES)
def test_no_mixture_of_bytes_is_read_otherwise(
    both: tuple[Serving, Serving], pieces: list[bytes]
) -> None:
    """Whatever is sent, the application hears of the same requests in the same order."""
    sent = b"".join(pieces) + b"\r\n\r\n"
    ended = sent + b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    seen = [server.ask(ended, answers=4) for server in both]
    assert seen[0] == seen[1]


@settings(max_examples=15)
@given(st.lists(st.integers(1, len(GOOD) - 1), max_size=4, unique=True))
def test_a_request_may_come_in_pieces(both: tuple[Serving, Serving], cuts: list[int]) -> None:
    """However the bytes are cut, the request is the same, and so is the next one."""
    edges = [0, *sorted(cuts), len(GOOD)]
    pieces = [GOOD[a:b] for a, b in pairwise(edges)]
    found = both[0].ask(*pieces, GOOD, answers=2)
    assert [status for status, _ in found] == [200, 200]
    assert found[0] == found[1]
    assert (found[0][1]["path"], found[0][1]["body"]) == ("/a b", "{}")


def test_requests_sent_ahead_are_answered_in_order(both: tuple[Serving, Serving]) -> None:
    """Pipelining is the library's business, also when it begins after an ordinary request."""
    ahead = b"".join(b"GET /%d HTTP/1.1\r\n%b\r\n" % (n, HOST) for n in range(4))
    found = both[0].ask(GOOD, ahead, answers=5)
    assert [answer["path"] for _, answer in found] == ["/a b", "/0", "/1", "/2", "/3"]


def test_a_fault_ends_the_connection_and_not_the_server(both: tuple[Serving, Serving]) -> None:
    """An application that raises answers nothing here; the gate has its own words for that."""
    assert both[0].ask(b"GET /fault HTTP/1.1\r\n" + HOST + b"\r\n") == []
    assert both[0].ask(GOOD)[0][0] == 200


def test_whoever_leaves_is_noticed(both: tuple[Serving, Serving]) -> None:
    """A request whose client is gone ends, and the server can be stopped."""
    with socket.create_connection(("127.0.0.1", both[0].port)) as connection:
        connection.sendall(b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n")
    assert both[0].ask(GOOD)[0][0] == 200


class Hasty(Quick):
    """Waits for nobody."""

    head_seconds = 0.2
    idle_seconds = 0.2


@pytest.mark.parametrize(
    "start",
    [b"", GOOD[:20], GOOD[:-1], b"POST / HTTP/1.1\r\n" + HOST + CHUNKED + b"X: ", GOOD, b"PUT /"],
)
def test_slow_clients_are_cut(start: bytes) -> None:
    """A request that does not arrive, and a connection that stays idle, end by themselves."""
    with serving(Hasty) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(90)
        client.sendall(start)
        while client.recv(65_536):
            pass


def test_bounds_are_small() -> None:
    """What is kept for a connection before anybody has judged the request."""
    assert MOST_HEAD + MOST_BODY <= 80 * 1024
