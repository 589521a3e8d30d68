"""The one door through which requests for search engines leave: connections, kept and reused.

Addresses of engines come from the user's settings and never from a model or a page, so they may be
local (a SearXNG on localhost), and none of the rules for pages apply. For the same reason nothing
but the chain may use this door: pages go through `fetch`. Redirects are not followed; proxy
settings, `.netrc` and cookies of the environment are not used.

A new connection (name, TCP, TLS) is made in a thread of its own, because name look-ups can be
neither bounded nor stopped; a kept one needs no thread at all.

Spec: RFC 9112 9.3, RFC 6125
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from search_backend.errors import ConfigError, EngineError
from search_backend.exchange import Link
from search_backend.framing import BadAnswer
from search_backend.trust import system_trust

CONNECT_SECONDS = 4.0
KEEP_SECONDS = 30.0
MOST_KEPT = 128
MOST_OPENING = 128

Origin = tuple[str, str, int]


class Connections:
    """Kept connections by origin. Safe to use from several threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        trust: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`clock` gives monotonic seconds; `trust` says whose certificates count."""
        self._clock = clock
        self._trust = trust or _trust
        self._lock = threading.Lock()
        self._closed = False
        self._kept: dict[Origin, deque[tuple[Link, float]]] = {}
        self._opening = threading.BoundedSemaphore(MOST_OPENING)

    def take(self, origin: Origin) -> Link | None:
        """A connection that still stands, the one used last first."""
        while True:
            with self._lock:
                kept = self._kept.get(origin)
                if not kept:
                    return None
                link, since = kept.pop()
            if self._clock() - since < KEEP_SECONDS and _quiet(link.socket):
                return link
            link.close()

    def keep(self, origin: Origin, link: Link) -> None:
        """Take back a connection after a complete answer, or one that nobody waits for any more."""
        if not link.idle:
            link.close()
            return
        with self._lock:
            kept = self._kept.setdefault(origin, deque())
            kept.append((link, self._clock()))
            # One that was still being opened when all were hung up has nobody to use it.
            surplus = kept.popleft()[0] if self._closed or len(kept) > MOST_KEPT else None
        if surplus is not None:
            surplus.close()

    def open(self, origin: Origin, done: Callable[[Link | Exception], bool]) -> None:
        """Make a new connection in a thread and hand it, or the failure, to `done`.

        `done` says False when nobody wants it any more; then it is kept for the next request.
        """
        if not self._opening.acquire(blocking=False):
            done(ConnectionError("too many connections are being opened"))
            return

        def work() -> None:
            outcome: Link | Exception
            try:
                outcome = Link(_connect(origin, self._trust))
            except Exception as error:  # judged by the thread that waits
                outcome = error
            finally:
                self._opening.release()
            if not done(outcome) and isinstance(outcome, Link):
                self.keep(origin, outcome)

        threading.Thread(target=work, name=f"connect {origin[1]}", daemon=True).start()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Hang up all kept connections, and keep none from now on."""
        with self._lock:
            self._closed = True
            links = [link for kept in self._kept.values() for link, _ in kept]
            self._kept.clear()
        for link in links:
            link.close()


def origin_of(url: str) -> Origin:
    """(scheme, host, port). Raises EngineError(config) for what is no address of a web server."""
    scheme, slashes, rest = url.partition("://")
    return _origin(scheme + slashes + rest.partition("/")[0])


@lru_cache(maxsize=256)
def _origin(url: str) -> Origin:
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")  # what a name look-up does with it
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise EngineError(
            "config",
            "The engine's address is not a web address.",
            "Write it with http:// or https://, a host and a path, e.g. http://localhost:8080/.",
        )
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def explain(error: Exception, title: str) -> EngineError:
    """What a failure to get an answer means for the user."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, BadAnswer):
        return EngineError("network", f"{title}: {error}.", "Try again, or use another engine.")
    if isinstance(error, ssl.SSLCertVerificationError):
        return EngineError(
            "network",
            f"The certificate of {title} is not trusted ({error.verify_message}).",
            "Correct the engine's address, or set SSL_CERT_FILE to your own authority.",
        )
    if isinstance(error, ConnectionRefusedError):
        words = f"Nothing listens at the address of {title}."
    elif isinstance(error, socket.gaierror):
        words = f"The name of {title}'s server could not be resolved."
    elif isinstance(error, TimeoutError):
        words = f"The server of {title} could not be reached in {CONNECT_SECONDS:g} s."
    else:
        words = f"The connection to {title} failed."
    remedy = "Check the network connection and the engine's address, or use another engine."
    return EngineError("network", words, remedy)


def _connect(origin: Origin, trust: Callable[[], ssl.SSLContext]) -> socket.socket:
    scheme, host, port = origin
    context = trust() if scheme == "https" else None
    connection = socket.create_connection((host, port), CONNECT_SECONDS)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise
    return connection


def _trust() -> ssl.SSLContext:
    try:
        return system_trust()
    except ConfigError as error:
        raise EngineError("config", error.message, error.remedy) from error


def _quiet(connection: socket.socket) -> bool:
    """Whether nothing came on an idle connection: an end or a stray answer would show here."""
    if isinstance(connection, ssl.SSLSocket):  # one cannot look into it without taking
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            return not selector.select(0)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
