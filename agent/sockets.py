"""Sockets for the HTTP library, straight on asyncio.

The library's own serve any event loop and stop and start listening around each piece that is read;
with hundreds of answers under way that was the largest part of a server's work. These listen until
too much is waiting. The interface is the library's: https://www.encode.io/httpcore/network-backends
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_HIGH = 256 * 1024  # bytes that may wait to be read
_NEXT_ADDRESS = 0.25  # seconds until another address of a host is tried beside the first


class Sockets:
    """Opens connections on the loop that runs: an `httpcore2.AsyncNetworkBackend`."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _Socket:
        """See `httpcore2.AsyncNetworkBackend`."""
        with _connecting():
            async with asyncio.timeout(timeout):
                _, socket = await asyncio.get_running_loop().create_connection(
                    _Socket,
                    host,
                    port,
                    local_addr=(local_address, 0) if local_address else None,
                    happy_eyeballs_delay=_NEXT_ADDRESS,
                )
        return socket

    async def sleep(self, seconds: float) -> None:
        """See `httpcore2.AsyncNetworkBackend`."""
        await asyncio.sleep(seconds)


class _Socket(asyncio.Protocol):
    """One connection, an `AsyncNetworkStream`; one reader and one writer at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._over = False  # nothing more will come
        self._broken: Exception | None = None
        self._still = False  # the transport was told to stop reading
        self._full = False  # or told us to stop writing
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _HIGH and not self._still:
            self._still = True
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """See asyncio; the transport closes itself."""
        self._over = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._over = True
        self._broken = self._broken or exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """See asyncio."""
        self._full = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self._full = False
        _wake(self._writer)

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
    ) -> bytes:
        """What has come, at most so much; empty at the end."""
        if not (self._pieces or self._over):
            self._reader = self._loop.create_future()
            await self._woken(self._reader, timeout, "ReadTimeout")
        if not self._pieces:
            if self._broken:
                raise _fault("ReadError", self._broken) from self._broken
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = [data[max_bytes:]] if len(data) > max_bytes else []
        data = data[:max_bytes]
        self._size -= len(data)
        if self._still and self._size <= _HIGH:
            self._still = False
            self._transport.resume_reading()
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
    ) -> None:
        """All of it, on its way; waits while the other side does not take it."""
        if not buffer:
            return
        if self._transport.is_closing():
            raise _fault("WriteError", "the connection is closed")
        self._transport.write(buffer)
        while self._full and not self._transport.is_closing():
            self._writer = self._loop.create_future()
            await self._woken(self._writer, timeout, "WriteTimeout")
        if self._broken:
            raise _fault("WriteError", self._broken) from self._broken

    async def aclose(self) -> None:
        """At once: what was not sent is not."""
        self._transport.close()
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
    ) -> _Socket:
        """The same connection, encrypted."""
        try:
            with _connecting():
                async with asyncio.timeout(timeout):
                    self._transport = await self._loop.start_tls(
                        self._transport, self, ssl_context, server_hostname=server_hostname
                    )
                if self._transport is None:  # it went away in the middle
                    raise ConnectionResetError("the connection was lost")
        except BaseException:
            if self._transport is not None:
                await self.aclose()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """See `httpcore2.AsyncNetworkStream`."""
        if info == "is_readable":  # asked of an idle connection, on which nothing should come
            return bool(self._pieces) or self._over or self._transport.is_closing()
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))

    async def _woken(self, waiter: asyncio.Future[None], seconds: float | None, late: str) -> None:
        timer = None
        if seconds is not None:
            timer = self._loop.call_later(seconds, _give_up, waiter, late)
        try:
            await waiter
        finally:
            if timer:
                timer.cancel()


@contextmanager
def _connecting() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise _fault("ConnectTimeout", error) from error
    except OSError as error:  # TLS included
        raise _fault("ConnectError", error) from error


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter and not waiter.done():
        waiter.set_result(None)


def _give_up(waiter: asyncio.Future[None], late: str) -> None:
    if not waiter.done():
        waiter.set_exception(_fault(late, "time is over"))


def _fault(name: str, what: object) -> Exception:
    """An error as the library names it; it is loaded by whoever opens the first connection."""
    import httpcore2

    error: Exception = getattr(httpcore2, name)(str(what))
    return error
