"""A SOCKS proxy on loopback through which a browser reaches the web: each host is checked.

The browser has no other way out. It names a host and a port for each connection. The host is
checked and looked up once, and the connection goes to the very address that was checked, as in
`fetch`; TLS stays between the browser and the server.

Spec: RFC 1928
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.fetch import OutwardSocket, Sockets, system_resolver
from searchloop.search_backend.fetch.host_check import Resolver, public_addresses, refuse_outside
from searchloop.search_backend.fetch.ip_addresses import Network
from searchloop.search_backend.fetch.url_check import Target, check_url
from searchloop.search_backend.types import SearchBackendError

CONNECT_SECONDS = 5.0
MOST_BYTES = 30 * 2**20  # through one proxy, in both directions
_BY_NAME = b"\5\1\0\3"  # version 5, connect to a host that is written as text
# Granted, or not allowed; then the address of our own end, which nobody asks for.
_GRANTED, _REFUSED = (bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0)) for code in (0, 2))


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

    async def __aenter__(self) -> Self:
        """Listens on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
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
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(browser, back)
        finally:
            back.close()
            self._tasks.discard(task)

    async def _answer(self, browser: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        _, methods = await browser.readexactly(2)
        await browser.readexactly(methods)
        back.write(b"\5\0")  # nobody has to sign in
        if await browser.readexactly(4) != _BY_NAME:
            return
        host = (await browser.readexactly((await browser.readexactly(1))[0])).decode("latin-1")
        port = int.from_bytes(await browser.readexactly(2))
        try:
            server, send = await self._connect(_target(host, port))
        except (SearchBackendError, OSError):  # TimeoutError is one
            self.refused.append(host)
            back.write(_REFUSED)
            await back.drain()
            return
        with contextlib.closing(send):
            back.write(_GRANTED)
            # Where one side has ended, closing both ends the other.
            await asyncio.gather(self._relay(browser, send), self._relay(server, back))

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to a checked address of `target`. Raises SearchBackendError, OSError."""
        refuse_outside(target.host, self.host_allowed)
        look_up = in_thread(
            lambda: public_addresses(target, self.resolve, CONNECT_SECONDS, self.allow)
        )
        addresses = (await asyncio.wrap_future(look_up))[:2]
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            link = self.sockets(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            link.setblocking(False)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    loop = asyncio.get_running_loop()
                    await loop.sock_connect(link, (address, target.port))
                return await asyncio.open_connection(sock=link)
            except BaseException as failed:
                link.close()
                if address == addresses[-1] or not isinstance(failed, OSError):
                    raise
        raise OSError("no address")

    async def _relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.closing(sink):
            while (piece := await source.read(65_536)) and self._left > 0:
                self._left -= len(piece)
                sink.write(piece)
                await sink.drain()


def _target(host: str, port: int) -> Target:
    shown = f"[{host}]" if ":" in host else host
    return check_url(f"{'http' if port == 80 else 'https'}://{shown}:{port}/")
