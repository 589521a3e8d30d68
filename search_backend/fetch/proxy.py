"""A proxy on loopback through which a browser reaches the web: each host is checked.

The browser has no other way out. For http the proxy reads the address, for https and web sockets
the host that a tunnel is wanted to. Each host is checked and looked up once, and the connection
goes to the very address that was checked, as in `fetch`; TLS stays between the browser and the
server. One request a connection, so that nobody's request reaches a server meant for another one.

Spec: RFC 9112 3.2.2 (absolute-form), RFC 9110 9.3.6 (CONNECT)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.fetch import OutwardSocket, Sockets, system_resolver
from searchloop.search_backend.fetch.host_check import Resolver, public_addresses, refuse_outside
from searchloop.search_backend.fetch.ip_addresses import Network
from searchloop.search_backend.fetch.url_check import Target, check_url
from searchloop.search_backend.types import SearchBackendError

CONNECT_SECONDS = 5.0
MOST_BYTES = 30 * 2**20  # through one proxy, in both directions
_MOST_HEAD, _MOST_SENT = 64 * 1024, 2**20
_HOP = (b"connection", b"keep-alive", b"proxy-", b"host:")
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(slots=True)
class CheckedProxy:
    """A proxy for one page. `host_allowed` is asked for each host; see `fetch` for the others.

    `refused` are the hosts, as the browser wrote them, to which nothing was sent.
    """

    host_allowed: Callable[[str], bool] | None = None
    allow: Sequence[Network] = ()
    resolve: Resolver = system_resolver
    sockets: Sockets = OutwardSocket
    refused: list[str] = field(default_factory=list)
    port: int = 0
    _left: int = MOST_BYTES
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Listens on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MOST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stops listening and closes all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, browser: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # a server's callback runs in one
        self._tasks.add(task)
        try:
            # LimitOverrunError and IncompleteReadError are among these.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError, EOFError):
                await self._answer(browser, back)
        except asyncio.LimitOverrunError:
            pass
        finally:
            back.close()
            self._tasks.discard(task)

    async def _answer(self, browser: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        head = await browser.readuntil(b"\r\n\r\n")
        method, where, _ = head.split(b"\r\n", 1)[0].split(b" ", 2)
        tunnel = method == b"CONNECT"
        try:
            target = _target(where.decode("ascii"), tunnel=tunnel)
            server, send = await self._connect(target)
        except (SearchBackendError, OSError, UnicodeError, TimeoutError):
            self.refused.append(where.decode("ascii", "replace"))
            back.write(_REFUSED)
            await back.drain()
            return
        try:
            if tunnel:
                back.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await self._relay_both(browser, back, server, send)
            else:
                send.write(_request(method, target, head) + await _body(browser, head))
                await send.drain()
                back.write(_closing(await server.readuntil(b"\r\n\r\n")))
                await self._relay(server, back)
        finally:
            send.close()

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to a checked address of `target`. Raises SearchBackendError, OSError."""
        refuse_outside(target.host, self.host_allowed)
        look_up = in_thread(
            lambda: public_addresses(target, self.resolve, CONNECT_SECONDS, self.allow)
        )
        error: OSError = OSError("no address")
        for address in (await asyncio.wrap_future(look_up))[:2]:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            link = self.sockets(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            link.setblocking(False)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    loop = asyncio.get_running_loop()
                    await loop.sock_connect(link, (address, target.port))
                return await asyncio.open_connection(sock=link, limit=_MOST_HEAD)
            except OSError as failed:  # TimeoutError is one
                link.close()
                error = failed
            except BaseException:
                link.close()
                raise
        raise error

    async def _relay_both(
        self,
        browser: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        send: asyncio.StreamWriter,
    ) -> None:
        ways = [
            asyncio.ensure_future(way)
            for way in (self._relay(browser, send), self._relay(server, back))
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while (piece := await source.read(65_536)) and self._left > 0:
            self._left -= len(piece)
            sink.write(piece)
            await sink.drain()


def _target(where: str, *, tunnel: bool) -> Target:
    if not tunnel:
        return check_url(where)
    scheme = "http" if where.endswith(":80") else "https"  # a web socket without TLS
    return check_url(f"{scheme}://{where}/")


def _request(method: bytes, target: Target, head: bytes) -> bytes:
    """The request as its server reads it, and the last one of its connection."""
    lines = head.split(b"\r\n")[1:-2]
    kept = [line for line in lines if not line.lower().startswith(_HOP)]
    first = b"%s %s HTTP/1.1" % (method, target.path.encode("ascii"))
    host = b"Host: " + target.authority.encode("ascii")
    return b"\r\n".join([first, host, *kept, b"Connection: close", b"", b""])


async def _body(browser: asyncio.StreamReader, head: bytes) -> bytes:
    """What a request sends: only a body of a known length, and a bounded one. Raises ValueError."""
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:-2] if b":" in line)
    length = int(fields.get(b"content-length", b"0"))
    if not 0 <= length <= _MOST_SENT or b"transfer-encoding" in fields:
        raise ValueError("a body without a length, or too long")
    return await browser.readexactly(length)


def _closing(head: bytes) -> bytes:
    """An answer's head that makes the browser open a new connection for its next request."""
    first, *lines = head.split(b"\r\n")[:-2]
    kept = [line for line in lines if not line.lower().startswith(_HOP[:3])]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])
