"""The sockets under the transport: encrypted ones, full ones, and ones that go away."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpcore2
import pytest

from agent.errors import ProviderError
from agent.sockets import Sockets, _Socket
from agent.transport import Timeouts, Transport

DATA = Path(__file__).parents[1] / "search_backend" / "data"
MIB = 1 << 20


class Wire(asyncio.Transport):
    """A transport that only notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.closing = False

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def is_closing(self) -> bool:
        return self.closing


def test_large_bodies_go_both_ways_in_private() -> None:
    """Through TLS with a certificate that is trusted, what comes is what was sent."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(DATA / "server.pem")
    asking = ssl.create_default_context(cafile=str(DATA / "ca.pem"))
    body = bytes(range(256)) * (3 * MIB // 256)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(body)))
        await writer.drain()
        writer.close()

    async def work() -> bytes:
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=serving)
        socket = await Sockets().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1])
        socket = await socket.start_tls(asking, "example.com", 10)
        assert socket.get_extra_info("ssl_object").version() == "TLSv1.3"
        await socket.write(body, 10)
        found = bytearray()
        while len(found) < len(body):
            piece = await socket.read(100_000, 10)
            assert 0 < len(piece) <= 100_000
            found += piece
        await socket.aclose()
        server.close()
        return bytes(found)

    assert asyncio.run(work()) == body


def test_a_certificate_for_another_is_not_trusted() -> None:
    """The handshake ends there, and nothing was sent."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(DATA / "server.pem")
    asking = ssl.create_default_context(cafile=str(DATA / "ca.pem"))

    async def work() -> None:
        async with await asyncio.start_server(Holding(), "127.0.0.1", 0, ssl=serving) as server:
            port = server.sockets[0].getsockname()[1]
            socket = await Sockets().connect_tcp("127.0.0.1", port)
            await socket.start_tls(asking, "other.example", 10)

    with pytest.raises(httpcore2.ConnectError) as caught:
        asyncio.run(work())
    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)


class Holding:
    """A server's side that takes nothing. What waits is held by this: a task that nobody holds
    while its socket is not read may be collected, and its connection with it."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the loop ends."""
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        try:
            await self._over.wait()
        finally:
            writer.transport.abort()


def test_who_does_not_read_is_not_sent_more() -> None:
    """The other side is stopped while too much waits, and goes on when it was read."""

    async def work() -> list[str]:
        socket, wire = _Socket(), Wire()
        socket.connection_made(wire)
        for _ in range(10):
            socket.data_received(b"x" * 60_000)
        assert wire.told == ["pause"]
        got = [len(await socket.read(200_000)) for _ in range(3)]
        assert got == [200_000] * 3
        return wire.told

    assert asyncio.run(work()) == ["pause", "resume"]


def test_who_does_not_take_what_is_sent_is_given_up() -> None:
    """A server that reads nothing: the limit for a write holds."""

    async def work() -> None:
        async with await asyncio.start_server(Holding(), "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            async with Transport(Timeouts(write=0.1)).post(url, {}, b"x" * 64 * MIB):
                pass

    with pytest.raises(ProviderError) as caught:
        asyncio.run(work())
    assert caught.value.code == "timeout"


def test_a_read_that_was_given_up_takes_nothing_away() -> None:
    """What comes after a time-out, or a cancellation, is there for the next read."""

    async def work() -> bytes:
        socket = _Socket()
        socket.connection_made(Wire())
        with pytest.raises(httpcore2.ReadTimeout):
            await socket.read(10, 0.001)
        reading = asyncio.ensure_future(socket.read(10))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        socket.data_received(b"late")
        return await socket.read(10)

    assert asyncio.run(work()) == b"late"


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
def test_an_end_is_told_after_what_came_before_it(error: Exception | None) -> None:
    """In order, whether it is an orderly end or a broken one."""

    async def work() -> None:
        socket, wire = _Socket(), Wire()
        socket.connection_made(wire)
        assert not socket.get_extra_info("is_readable")
        socket.data_received(b"last")
        wire.closing = True
        socket.connection_lost(error)
        assert socket.get_extra_info("is_readable")
        assert await socket.read(10) == b"last"
        if error is None:
            assert await socket.read(10) == b""
            return
        with pytest.raises(httpcore2.ReadError):
            await socket.read(10)
        with pytest.raises(httpcore2.WriteError):
            await socket.write(b"more")

    asyncio.run(work())


def test_a_place_where_nobody_is() -> None:
    """As the library names it, for the transport to translate."""
    with pytest.raises(httpcore2.ConnectError):
        asyncio.run(Sockets().connect_tcp("127.0.0.1", 9, timeout=5))
