"""One HTTP/1.1 exchange on a socket that does not block: it moves on whenever the socket is ready.

Whoever waits for several engines gives each exchange a turn when its socket has something, so a
hundred slow engines cost no thread and none keeps another waiting. How an answer is framed, and how
large it may be, is the business of `framing`; the size of a decompressed body is bounded here.

Spec: RFC 9112 2, 3; RFC 9110 5
"""

from __future__ import annotations

import re
import socket
import ssl
import zlib
from base64 import b64encode
from typing import Literal
from urllib.parse import unquote_to_bytes

from search_backend.decode import Cut, Decoder
from search_backend.errors import EngineError, FetchFailed
from search_backend.framing import AnswerReader, BadAnswer
from search_backend.http_values import HttpRequest, HttpResponse

MOST_DECODED = 8 * 2**20
# A TLS record is no larger, so nothing that was received stays hidden from the selector.
_PIECE, _PIECES = 16 * 1024, 4
_AGENT = "searchloop"
_TARGET = re.compile(r"/[!-~]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")

Wants = Literal["read", "write"]


class Stale(Exception):
    """A connection that was kept had been closed meanwhile; nothing of an answer had come."""


class Link:
    """A connected socket. `idle`: between two exchanges, of which `used` tells there was one."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.idle = True
        self.used = False

    def close(self) -> None:
        """Hang up. May be called again."""
        self.socket.close()


class Exchange:
    """`request` on `link`. Call `step` at once and then when the socket is ready for what it said;
    after None there is `response`. Raises Stale, BadAnswer, OSError, and
    at once EngineError(config)."""

    def __init__(self, link: Link, request: HttpRequest) -> None:
        self.link = link
        self._out = memoryview(_encode(request))
        self._answer = AnswerReader()
        self._began = False
        self.response: HttpResponse | None = None
        link.idle = False

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
            if self._answer.feed(data):
                self._finish()
                return None
        return "read"

    def _finish(self) -> None:
        answer, link = self._answer, self.link
        body, encoding = answer.body, answer.headers.get("content-encoding", "")
        if encoding and body:
            body = _decoded(body, encoding)
        self.response = HttpResponse(answer.status, answer.headers, body)
        link.idle, link.used = answer.reusable, True


def _encode(request: HttpRequest) -> bytes:
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
    if not _TARGET.fullmatch(target) or not all(map(_is_header, headers.items())):
        raise EngineError(
            "config",
            "An engine's address or key holds characters that HTTP cannot carry.",
            "Set it anew, without spaces and line ends and in ASCII letters.",
        )
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    head = f"{request.method} {target} HTTP/1.1\r\n{lines}\r\n"
    return head.encode("ascii") + request.body


def _is_header(field: tuple[str, str]) -> bool:
    return _NAME.fullmatch(field[0]) is not None and _VALUE.fullmatch(field[1]) is not None


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
