"""A small HTTP server on 127.0.0.1 that plays a script and keeps what it was asked.

    with FakeServer([Reply([b"data: {}\\n\\n"])]) as server:
        ... use server.url ...
        server.requests[0].json

Replies are given in the order in which requests arrive; instead of a list, a function from the
request to its reply may be given. Each piece of a reply is written on its own, as one HTTP chunk,
so that a test decides how the bytes are cut.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal

End = Literal["done", "cut", "reset", "stall"]


@dataclass(frozen=True)
class Reply:
    """What to answer. `raw` pieces are bytes of the wire itself: no status line, no chunking.

    `end`: done = as HTTP wants it; cut = the connection is closed without the end of the body;
    reset = the same with a TCP reset; stall = nothing more comes until the client hangs up.
    `before`: "cut" or "reset" before any byte of the answer, "stall" = never answer.
    """

    pieces: Sequence[bytes] | bytes = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "done"
    before: End | None = None
    raw: bool = False


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A plain JSON answer."""
    return Reply(
        [json.dumps(value).encode()],
        status,
        {"content-type": "application/json", **(headers or {})},
    )


def sse_reply(events: Iterable[Any], end: End = "done") -> Reply:
    """An event stream, one HTTP chunk an event; values that are not bytes become JSON."""
    return Reply([e if isinstance(e, bytes) else sse(e) for e in events], end=end)


def sse(event: Any) -> bytes:
    """One server-sent event with its name, as the vendors write them."""
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


@dataclass
class Received:
    """A request that came in. `gone` is set when the client hung up before the end."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512
    timeout = 0  # one who was there and has gone is not waited for
    owner: FakeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of many tests: nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        received = Received(
            self.command,
            self.path,
            {k.lower(): v for k, v in self.headers.items()},
            self.rfile.read(length),
            self.client_address[1],
        )
        reply = self.server.owner.next_reply(received)
        if reply.before is not None:
            self.finish_as(reply.before, received)
            return
        pieces = [reply.pieces] if isinstance(reply.pieces, bytes) else reply.pieces
        try:
            self.write(reply, pieces)
        except OSError:
            received.gone.set()
            self.close_connection = True
            return
        if reply.end != "done":
            self.finish_as(reply.end, received)
        elif reply.raw:
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer

    def write(self, reply: Reply, pieces: Sequence[bytes]) -> None:
        if not reply.raw:
            self.send_response_only(reply.status)
            for name, value in {"content-type": "text/event-stream", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
        for piece in pieces:
            if piece:
                framed = piece if reply.raw else b"%x\r\n%b\r\n" % (len(piece), piece)
                self.wfile.write(framed)
                self.wfile.flush()
        if not reply.raw and reply.end == "done":
            self.wfile.write(b"0\r\n\r\n")

    def finish_as(self, end: End, received: Received) -> None:
        self.close_connection = True
        if end == "stall":
            with suppress(OSError):
                if not self.connection.recv(1):
                    received.gone.set()
            received.gone.set()
        elif end == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the test output belongs to pytest."""


class FakeServer:
    """Serves a script on an ephemeral port; a context manager. `requests` is what came in."""

    def __init__(self, replies: Iterable[Reply] | Callable[[Received], Reply]) -> None:
        self._next = replies if callable(replies) else self._script(list(replies))
        self._lock = threading.Lock()
        self.requests: list[Received] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._over, self._told = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    # `serve_forever` looks every so often whether it is over; here nobody waits for that.
    def _serve(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._server, selectors.EVENT_READ)
            waiting.register(self._told, selectors.EVENT_READ)
            while all(key.fileobj is self._server for key, _ in waiting.select()):
                self._server.handle_request()

    @staticmethod
    def _script(replies: list[Reply]) -> Callable[[Received], Reply]:
        rest = iter(replies)
        return lambda received: next(rest, json_reply({"error": "the script is over"}, 500))

    def next_reply(self, received: Received) -> Reply:
        """The reply to `received`, which is kept."""
        with self._lock:
            self.requests.append(received)
            return self._next(received)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.close()
        self._thread.join()
        self._told.close()
        self._server.server_close()
