"""One HTTP/1.1 exchange on a socket that does not block: it moves on whenever the socket is ready.

Whoever waits for several engines gives each exchange a turn when its socket has something, so a
hundred slow engines cost no thread and none keeps another waiting. Framing is h11's; size of head,
body and decompressed body are bounded here.

Spec: RFC 9112; https://h11.readthedocs.io
"""

from __future__ import annotations

import socket
import ssl
import zlib
from base64 import b64encode
from typing import Literal
from urllib.parse import unquote_to_bytes

import h11

from search_backend.decode import Cut, Decoder
from search_backend.errors import FetchFailed
from search_backend.http_values import HttpRequest, HttpResponse

MOST_HEAD = 64 * 1024
MOST_BYTES = 4 * 2**20
MOST_DECODED = 8 * 2**20
MOST_INTERIM = 16
# A TLS record is no larger, so nothing that was received stays hidden from the selector.
_PIECE, _PIECES = 64 * 1024, 4
_AGENT = "searchloop"

Wants = Literal["read", "write"]


class BadAnswer(Exception):
    """What came is not HTTP, ended too early, or is too large. The text says which."""


class Stale(Exception):
    """A connection that was kept had been closed meanwhile; nothing of an answer had come."""


class Link:
    """A connected socket and what h11 knows about the conversation on it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        self.used = False

    def close(self) -> None:
        """Hang up. May be called again."""
        self.socket.close()

    def renew(self) -> bool:
        """Get ready for another request; False when the connection must be closed."""
        if self.talk.our_state is h11.IDLE:
            return True
        if self.talk.our_state is not h11.DONE or self.talk.their_state is not h11.DONE:
            return False
        if self.talk.trailing_data[0]:
            return False  # nobody asked for it, so nothing on this connection can be trusted
        self.talk.start_next_cycle()
        self.used = True
        return True


class Exchange:
    """`request` on `link`. Call `step` at once and then when the socket is ready for what it said;
    after None there is `response`. Raises Stale, BadAnswer, OSError."""

    def __init__(self, link: Link, request: HttpRequest) -> None:
        self.link = link
        self._out = memoryview(_encode(link.talk, request))
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._began = False
        self._interim = 0
        self.response: HttpResponse | None = None

    def step(self) -> Wants | None:
        """Move on as far as the socket allows."""
        try:
            if self._out:
                # Nothing can have come yet; asking for it would only cost a call.
                return self._send() or "read"
            return self._receive()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            if self.link.used and not self._began:
                raise Stale from None
            raise

    def _send(self) -> Wants | None:
        while self._out:
            try:
                self._out = self._out[self.link.socket.send(self._out) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                return "write"
            except ssl.SSLWantReadError:
                return "read"
        return None

    def _receive(self) -> Wants | None:
        # After a few pieces it is others' turn, and time to look at the clock.
        for _ in range(_PIECES):
            try:
                data = self.link.socket.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError):
                return "read"
            except ssl.SSLWantWriteError:
                return "write"
            if not data and self.link.used and not self._began:
                raise Stale
            self._began = True
            if self._take(data):
                return None
        return "read"

    def _take(self, data: bytes) -> bool:
        """Whether the answer is complete."""
        talk = self.link.talk
        try:
            talk.receive_data(data)
            while True:
                event = talk.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return False
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.InformationalResponse):
                    self._interim += 1
                    if self._interim > MOST_INTERIM:
                        raise BadAnswer("it sends interim answers without end")
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > MOST_BYTES:
                        raise BadAnswer(f"its answer is larger than {MOST_BYTES:,} bytes")
                elif isinstance(event, h11.EndOfMessage):
                    self.response = self._finished()
                    return True
                elif isinstance(event, h11.ConnectionClosed):
                    raise BadAnswer("it hung up without an answer")
        except h11.RemoteProtocolError:
            raise BadAnswer(
                "its answer is not valid HTTP" if data else "it broke off in the middle"
            ) from None

    def _finished(self) -> HttpResponse:
        if self._head is None:
            raise BadAnswer("its answer is not valid HTTP")
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.headers
        }
        body = bytes(self._body)
        encoding = headers.get("content-encoding", "")
        if encoding and body:
            body = _decoded(body, encoding)
        return HttpResponse(self._head.status_code, headers, body)


def _encode(talk: h11.Connection, request: HttpRequest) -> bytes:
    # `origin_of` has looked at the address before; what it says here is only cut off.
    authority, slash, rest = request.url.partition("://")[2].partition("/")
    user, at, host = authority.rpartition("@")
    headers = {
        "Host": host,
        "User-Agent": _AGENT,
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
        **request.headers,
    }
    if at:  # a server behind a password, written into its address as browsers take it
        headers["Authorization"] = "Basic " + b64encode(unquote_to_bytes(user)).decode()
    if request.body:
        headers["Content-Length"] = str(len(request.body))
    target = slash + rest if slash else "/"
    try:
        head = h11.Request(method=request.method, target=target, headers=list(headers.items()))
        sent = [talk.send(head)]
    except (h11.LocalProtocolError, UnicodeEncodeError):
        raise BadAnswer("its address or key holds characters that HTTP cannot carry") from None
    if request.body:
        sent.append(talk.send(h11.Data(data=request.body)))
    sent.append(talk.send(h11.EndOfMessage()))
    return b"".join(part for part in sent if part)


def _decoded(body: bytes, encoding: str) -> bytes:
    decoded = bytearray()
    try:
        decoder = Decoder(encoding)
        for piece in decoder.feed(body):
            decoded += piece
            if len(decoded) > MOST_DECODED:
                raise BadAnswer(f"its answer unpacks to more than {MOST_DECODED:,} bytes")
        if not decoder.complete:
            raise BadAnswer("its compressed answer ends too early")
    except (FetchFailed, zlib.error, Cut):
        raise BadAnswer("its answer is not in the encoding that it promises") from None
    return bytes(decoded)
