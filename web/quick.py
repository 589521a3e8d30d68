"""HTTP/1.1 for a server whose requests are small and whose answers are whole: the short way.

The framing library costs more than a kept answer does. Here a request that is plainly well-formed
is taken apart line by line; anything else (chunks, upgrades, pipelining, HTTP/1.0,
a head in doubt) is handed over to uvicorn's own protocol with the bytes that came, for the rest of
the connection. So this knows no rule about a doubtful request, and refuses none. Never for streams.

Spec: RFC 9112 2.2, 3, 5; https://asgi.readthedocs.io
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from web.asgi import App, Header, Message, Scope

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

MOST_HEAD = 16 * 1024
MOST_BODY = 64 * 1024

_REQUEST = re.compile(rb"(GET|POST) (/[!\"$-~]*) HTTP/1\.1\r\n")
_BARE = re.compile(rb"\n\r?\n")  # the library takes this for the end of a head
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
# Whoever sends one of these wants more than the short way gives.
_SPECIAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection", b"trailer"})
_PLAIN = (b"connection", b"keep-alive")

_log = logging.getLogger(__name__)


class Quick(asyncio.Protocol):
    """One connection. Made by uvicorn, which is told `http=Quick`.

    A request has `head_seconds` to arrive and its answer `idle_seconds` to be taken; so long a
    connection is kept for the next one.
    """

    head_seconds = 10.0
    idle_seconds = 30.0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._made_of = (config, server_state, app_state, _loop)
        self._app: App = config.loaded_app
        self._state = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = b""
        self._busy = False
        self._ending = False
        self._gone: asyncio.Event | None = None
        self._ends: float = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there; its first request has `head_seconds` to arrive."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._server = _address(transport.get_extra_info("sockname"))
        self._client = _address(transport.get_extra_info("peername"))
        self._wait(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._state.connections.discard(self)
        self._ending = True
        if self._gone is not None:
            self._gone.set()
        if self._alarm is not None:
            self._alarm.cancel()

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if self._busy:
            self._transport.pause_reading()
            return
        end = buffer.find(b"\r\n\r\n")
        if end < 0 and len(buffer) <= MOST_HEAD and not _BARE.search(buffer):
            self._wait(self.head_seconds)
            return
        found = _request(buffer, end) if 0 <= end <= MOST_HEAD else None
        if found is None:
            self._hand_over()
            return
        method, target, headers, length = found
        start = end + 4
        if len(buffer) < start + length:
            self._wait(self.head_seconds)
            return
        if len(buffer) > start + length:  # pipelined
            self._hand_over()
            return
        self._buffer, self._busy = b"", True
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self._server,
            "client": self._client,
            "scheme": "http",
            "method": method,
            "root_path": "",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": headers,
            "state": {},
        }
        task = self._loop.create_task(self._answer(scope, buffer[start:]))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def shutdown(self) -> None:
        """Called by the server: no further request."""
        self._ending = True
        if not self._busy:
            self._transport.close()

    async def _answer(self, scope: Scope, body: bytes) -> None:
        waiting = [body]
        started: list[tuple[int, list[Header]]] = []
        pieces: list[bytes] = []

        async def receive() -> Message:
            if waiting:
                return {"type": "http.request", "body": waiting.pop(), "more_body": False}
            self._gone = self._gone or asyncio.Event()
            if not self._transport.is_closing():
                await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.append((message["status"], message["headers"]))
                return
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                self._write(*started[0], b"".join(pieces))
                started.append((0, []))

        try:
            await self._app(scope, receive, send)
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"])
        if len(started) < 2:  # what was asked gave no whole answer
            self._transport.abort()
            return
        self._state.total_requests += 1
        self._busy = False
        if self._ending:
            self._transport.close()
            return
        self._wait(self.idle_seconds)
        if self._buffer:
            self._transport.resume_reading()
            self.data_received(b"")

    def _write(self, status: int, headers: list[Header], body: bytes) -> None:
        lines = [b"HTTP/1.1 %d \r\n" % status]
        for name, value in (*self._state.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
        if not any(name == b"content-length" for name, _ in headers):
            lines.append(b"content-length: %d\r\n" % len(body))
        if self._ending:
            lines.append(b"connection: close\r\n")
        lines += (b"\r\n", body)
        self._transport.write(b"".join(lines))

    def _hand_over(self) -> None:
        """From here on this is a connection of the library's."""
        from uvicorn.protocols.http.h11_impl import H11Protocol

        heir = H11Protocol(*self._made_of)
        self._state.connections.discard(self)
        if self._alarm is not None:
            self._alarm.cancel()
        transport, buffer = self._transport, self._buffer
        transport.set_protocol(heir)
        heir.connection_made(transport)

        def check() -> None:
            if getattr(heir, "cycle", None) is None:  # no request came of it yet
                transport.abort()

        self._loop.call_later(self.head_seconds, check)
        heir.data_received(buffer)

    def _wait(self, seconds: float) -> None:
        """Something has to happen in so many seconds. A timer is made once and looks again."""
        self._ends = self._loop.time() + seconds
        if self._alarm is None:
            self._alarm = self._loop.call_at(self._ends, self._look)

    def _look(self) -> None:
        self._alarm = None
        late = self._loop.time() >= self._ends - 0.01
        if self._transport.is_closing():
            return
        if self._busy or not late:
            self._alarm = self._loop.call_at(max(self._ends, self._loop.time() + 1.0), self._look)
        elif self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()


def _request(buffer: bytes, end: int) -> tuple[str, bytes, list[Header], int] | None:
    """Method, target, headers and the length of the body; None for what is not plain."""
    line = _REQUEST.match(buffer)
    if line is None:
        return None
    headers: list[Header] = []
    length, hosts = -1, 0
    for field in buffer[line.end() : end].split(b"\r\n"):
        raw, colon, rest = field.partition(b":")
        if not colon or not _NAME.fullmatch(raw) or not _VALUE.fullmatch(rest):
            return None
        name, value = raw.lower(), rest.strip(b" \t")
        if name in _SPECIAL and (name, value.lower()) != _PLAIN:
            return None
        if name == b"content-length":
            if length >= 0 or not value.isdigit() or len(value) > 6:
                return None
            length = int(value)
        hosts += name == b"host"
        headers.append((name, value))
    if hosts != 1 or length > MOST_BODY:
        return None
    return line[1].decode("ascii"), line[2], headers, max(length, 0)


def _address(found: Any) -> tuple[str, int] | None:
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None
