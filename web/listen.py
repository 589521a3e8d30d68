"""Takes the port, and configures uvicorn, which speaks HTTP on it through httptools.

An address that other machines can reach needs a token that the user chose.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from searchloop.agent.errors import ConfigError
from searchloop.web.asgi import App
from searchloop.web.gate.access import SHORTEST, Access

PORT = 8321
STOP_SECONDS = 5  # time that an ordinary request may go on after the signal to stop
END_SECONDS = 13.0  # after the signal; what still runs then ends with the process
HEAD_SECONDS = 10.0  # time in which the head of a request has to arrive
_ORIGIN = re.compile(r"https?://([a-z0-9_.-]*[a-z0-9]|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?")
HEAD_BYTES = 64 * 1024  # the largest unfinished head of a request
_HTTP_2 = re.compile(rb"(?is)(\A(?:[^\r\n]+\r\n)*?)upgrade: *h2c *\r\n")


def listen(
    host: str, port: int, token: str | None, public: str = ""
) -> tuple[socket.socket, str | None]:
    """Returns a listening socket, and a warning if other machines reach it. Raises ConfigError."""
    family, address = _resolve(host, port)
    warning = _exposure(host, address[0], token)
    if (warning or public) and token and len(token) < SHORTEST:
        what = f"SEARCHLOOP_TOKEN is shorter than {SHORTEST} characters."
        remedy = "Other machines could guess it. Set a longer one: openssl rand -hex 32"
        raise ConfigError("short_token", what, remedy)
    return _bind(family, address, host, port), warning


def access_to(
    listener: socket.socket, host: str, token: str, names: Sequence[str] = (), **more: Any
) -> Access:
    """Returns the Access for this socket, with `more` of what it has."""
    bound = listener.getsockname()
    everywhere = ipaddress.ip_address(bound[0].partition("%")[0]).is_unspecified
    own = socket.gethostname() if everywhere else host
    known = () if ":" in own else (own,)
    return Access(bound[1], token, bound[0], (*known, *names), **more)


def public_url(given: str | None) -> str:
    """Returns an address as browsers write an Origin. Raises ConfigError unless it is one."""
    text = (given or "").strip().rstrip("/").lower()
    if text and not _ORIGIN.fullmatch(text):
        what = "SEARCHLOOP_PUBLIC_URL is not an address without a path."
        remedy = "Write it as browsers show it, for example https://chat.example.org."
        raise ConfigError("bad_public_url", what, remedy)
    return text.removesuffix(":443" if text.startswith("https") else ":80")


Address = tuple[Any, ...]


def _resolve(host: str, port: int) -> tuple[int, Address]:
    if not 0 <= port <= 65535:
        raise ConfigError("bad_port", f"{port} is not a port.", "Choose one from 1 to 65535.")
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError):
        raise _bad_host(host) from None
    # Names such as localhost have two addresses; the older kind is what people type.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _exposure(host: str, address: str, token: str | None) -> str | None:
    """Returns a warning for an address that others can reach. Raises ConfigError if unguarded."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return None
    if not token:
        what = f"Other machines could reach {host}, and no token is set."
        remedy = "Set SEARCHLOOP_TOKEN to a long secret first, or use --host 127.0.0.1."
        raise ConfigError("exposed", what, remedy)
    return (
        f"Warning: other machines can reach {host}. Whoever has the token reads your sessions and "
        "spends with your keys, and the connection is not encrypted: use it in a network that you "
        "trust, or behind a proxy with TLS."
    )


def _bind(family: int, address: Address, host: str, port: int) -> socket.socket:
    # With the protocol left open, asyncio would not switch Nagle's algorithm off on what it
    # accepts, and an answer in two pieces would wait 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two programs share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _cannot_bind(error.errno, host, port) from None
    listener.setblocking(False)
    return listener


def _cannot_bind(number: int | None, host: str, port: int) -> ConfigError:
    if number == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else PORT
        how = f"searchloop serve --port {other} (make run PORT={other})"
        remedy = f"Stop the program that uses it, or choose another port: {how}"
        return ConfigError("port_in_use", f"Port {port} is in use.", remedy)
    if number in (errno.EACCES, errno.EPERM):
        what = f"Port {port} needs more rights."
        return ConfigError("port_denied", what, f"Choose another: --port {PORT}")
    return _bad_host(host)


def _bad_host(host: str) -> ConfigError:
    what = f"{host!r} is not an address of this machine."
    return ConfigError("bad_host", what, "Use --host 127.0.0.1, which only this machine can reach.")


class BoundedHead(HttpToolsProtocol):
    """uvicorn's connection with the limits that it lacks: time and size of unsent heads.

    A connection waits for a head from its start, or from its last answer, to the end of the head.
    """

    head_seconds = HEAD_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def data_received(self, data: bytes) -> None:
        """Parses the bytes, then hangs up if an unfinished head has grown too large.

        A wish for HTTP/2 goes, as Java's own client has it: the body would be taken for that.
        """
        if self._timer is not None:
            data = _HTTP_2.sub(rb"\1", data, count=1)
        super().data_received(data)
        if self._timer is not None:
            self._size += len(data)
            if self._size > HEAD_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Strips the blanks around a value, which are no part of it (RFC 9110 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Stops the clock: from here the gate's limits for bodies hold. A whole address as the
        target names the host that is asked, whatever the header says (RFC 9112 3.2.2)."""
        self._stop_timer()
        if self.url[:1] != b"/" and (host := urlsplit(self.url).netloc):
            others = [header for header in self.headers if header[0] != b"host"]
            self.headers[:] = [*others, (b"host", host)]
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Starts the clock again: an empty line would end uvicorn's own."""
        over = not self.pipeline
        super().on_response_complete()
        if over and self._timer is None and not self.transport.is_closing():
            self._expect_head()

    def _expect_head(self) -> None:
        self._stop_timer()
        self._size = 0
        self._timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """uvicorn's server, whose process ends soon after a signal, whatever its threads wait for."""

    end_seconds = END_SECONDS

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops in order, or at once when that takes too long: a page may hang for minutes."""
        if not self.should_exit:
            timer = threading.Timer(self.end_seconds, os._exit, (0,))
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)


def run_server(app: App, listener: socket.socket) -> None:
    """Serves an application that needs no start-up or shutdown of its own, until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(listener):
        Server(config(app)).run([listener])


def config(app: App) -> uvicorn.Config:
    """uvicorn's settings: our gate decides, our program prints, and nothing is logged twice."""
    return uvicorn.Config(
        app,
        http=BoundedHead,
        ws="none",
        loop="auto",  # uvloop where it is installed: not on Windows
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
