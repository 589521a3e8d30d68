"""Connections to providers, each a pool of its own: a lane.

A pool that holds hundreds of connections is scanned at every request, which halves the speed of
300 concurrent runs. A request takes the lane used last for its origin, or opens one, and gives it
back when its answer is over. The HTTP library is imported with the first of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from agent.proxies import opened, proxy_for
from agent.sockets import Sockets
from agent.trust import certificates
from agent.wire import Origin

if TYPE_CHECKING:
    import ssl

    import httpcore2

IDLE_SECONDS = 30.0
IDLE_LANES = 128


class Lanes:
    """Connections by origin, the one used last first."""

    def __init__(self, trust_env: bool) -> None:
        """`trust_env`: the proxies and certificates of the environment count."""
        self._trust_env = trust_env
        self._idle: dict[Origin, list[tuple[float, httpcore2.AsyncConnectionPool]]] = {}
        self._tls: ssl.SSLContext | None = None
        self._plain: ssl.SSLContext | None = None
        self._closed = False

    def take(self, origin: Origin) -> httpcore2.AsyncConnectionPool:
        """A lane that nobody else uses. Raises ConfigError for a proxy or certificates that cannot
        be used."""
        idle = self._idle.get(origin)
        return idle.pop()[1] if idle else self._open(origin)

    async def give(self, origin: Origin, lane: httpcore2.AsyncConnectionPool) -> None:
        """It is free again, unless more came on it than an answer."""
        if _holds_more(lane):
            await lane.aclose()
            return
        idle = self._idle.setdefault(origin, [])
        now = time.monotonic()
        idle.append((now, lane))
        if self._closed or len(idle) > IDLE_LANES or idle[0][0] < now - IDLE_SECONDS:
            await idle.pop(0)[1].aclose()

    async def aclose(self) -> None:
        """Closes those that are free, and the others as they are given back."""
        self._closed = True
        lanes = [lane for idle in self._idle.values() for _, lane in idle]
        self._idle.clear()
        for lane in lanes:
            await lane.aclose()

    def _open(self, origin: Origin) -> httpcore2.AsyncConnectionPool:
        import httpcore2

        through = proxy_for(origin) if self._trust_env else None
        return httpcore2.AsyncConnectionPool(
            ssl_context=self._context(origin, through),
            proxy=opened(through) if through else None,
            max_connections=1,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=cast("httpcore2.AsyncNetworkBackend", Sockets()),
        )

    def _context(self, origin: Origin, proxy: str | None) -> ssl.SSLContext:
        """Certificates are loaded once, and not at all while every provider speaks plain http."""
        import ssl

        if origin.scheme == "https" or (proxy or "").startswith("https"):
            self._tls = self._tls or certificates(self._trust_env)
            return self._tls
        self._plain = self._plain or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._plain


def _holds_more(lane: httpcore2.AsyncConnectionPool) -> bool:
    """Whether bytes from behind an answer are left. The library reads them as the answer to the
    next request, and tells of them nowhere; so this looks where it keeps them."""
    for connection in lane.connections:
        inner: Any = connection
        while getattr(inner, "_connection", None) is not None:
            inner = inner._connection
        parser = getattr(inner, "_h11_state", None)
        if parser is None or parser.trailing_data[0]:
            return True
    return False
