"""Connections to model servers: encrypted ones, stuck ones, and ones on which too much comes."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import AgentError, ProviderError
from searchloop.agent.transport.transport import Timeouts, Transport
from tests.tables import each_row

DATA = Path(__file__).parents[2] / "search_backend" / "data"
MIB = 1 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
Main = Callable[[], Coroutine[Any, Any, Any]]


def on_asyncio(main: Main) -> Any:
    """On the loop of the standard library."""
    return asyncio.run(main())


def on_uvloop(main: Main) -> Any:
    """On the loop that servers like to run."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


LOOPS = [on_asyncio] if sys.platform == "win32" else [on_asyncio, on_uvloop]
every_loop = pytest.mark.parametrize("on", LOOPS)


@asynccontextmanager
async def served(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server on this loop, one task a connection."""

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def opened(timeouts: Timeouts | None = None) -> AsyncIterator[Transport]:
    """A transport, closed at the end."""
    transport = Transport(timeouts)
    try:
        yield transport
    finally:
        await transport.aclose()


async def fetch(transport: Transport, url: str, body: bytes = b"{}") -> bytes:
    """The whole answer to one POST."""
    async with transport.post(url, {}, body) as response:
        return b"".join([piece async for piece in response])


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """The head of a request."""
    return await reader.readuntil(b"\r\n\r\n")


@every_loop
def test_a_stop_while_the_request_is_still_being_sent(on: Callable[[Main], Any]) -> None:
    """A server that takes nothing is hung up on; what it has not taken is never sent."""
    body = b"x" * 16 * MIB

    async def main() -> None:
        asked, stopped, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        taken = 0

        async def slow(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            nonlocal taken
            await head_of(reader)
            asked.set()
            await stopped.wait()
            try:
                while piece := await reader.read(MIB):
                    taken += len(piece)
            finally:
                over.set()

        async with served(slow) as port, opened() as transport:
            task = asyncio.ensure_future(fetch(transport, f"http://127.0.0.1:{port}/", body))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            stopped.set()
            await asyncio.wait_for(over.wait(), 60)
        assert taken < len(body)

    on(main)


@each_row("first", [HEAD + b"one", CHUNKED])
@each_row("late", [False, True])
@each_row(
    "more",
    [
        *(HEAD + b"bad", (HEAD + b"bad") * 3, CHUNKED, b"HTTP/1.1", b"\r\n"),
        *(HEAD, HEAD + b"b", b"HTTP/1.1 200 OK\r\nContent-Length: 3", b"x"),
    ],
)
def test_what_stands_behind_an_answer_is_not_the_next_one(
    first: bytes, more: bytes, late: bool
) -> None:
    """A server, or somebody who could write into its answer, sends more than it was asked for. It
    may come with the answer, or on the idle connection after it."""

    async def main() -> None:
        read, sent, count = asyncio.Event(), asyncio.Event(), 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            while True:
                await head_of(reader)
                await reader.readexactly(2)
                count += 1
                if count > 1:
                    writer.write(HEAD + b"two")
                    continue
                writer.write(first if late else first + more)
                await read.wait()
                if late:
                    writer.write(more)
                sent.set()

        async with served(serve) as port, opened() as transport:
            url = f"http://127.0.0.1:{port}/"
            if more == b"x" and not late:  # in one piece with the answer, and not HTTP
                with pytest.raises(ProviderError, match="not the expected answer"):
                    await fetch(transport, url)
            else:
                assert await fetch(transport, url) == b"one"
            read.set()
            await sent.wait()
            for _ in range(3):
                await asyncio.sleep(0)  # what came on an idle connection is read
            assert await fetch(transport, url) == b"two"

    asyncio.run(main())


def _serving() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "server.pem")
    return context


@every_loop
def test_large_bodies_go_both_ways_in_private(
    on: Callable[[Main], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a proxy that sees the name of the server and nothing else."""
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "ca.pem"))
    body = bytes(range(256)) * (3 * MIB // 256)

    async def main() -> None:
        heads: list[bytes] = []

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await head_of(reader))
            data = await reader.readexactly(len(body))
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + data)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async with served(echo, _serving()) as port, served(_tunnel(port, heads)) as proxy:
            for name in ("https_proxy", "HTTPS_PROXY"):
                monkeypatch.setenv(name, f"http://user:word@127.0.0.1:{proxy}")
            monkeypatch.setenv("no_proxy", "")
            async with opened() as transport:
                assert await fetch(transport, "https://example.com/v1/x", body) == body
        asked, inside = heads
        assert asked.startswith(b"CONNECT example.com:443 HTTP/1.1\r\n")
        assert b"proxy-authorization: basic " in asked.lower()
        assert inside.startswith(b"POST /v1/x HTTP/1.1\r\n")
        assert b"content-length: %d\r\n" % len(body) in inside.lower()
        assert b"proxy-" not in inside.lower()

    on(main)


def _tunnel(port: int, heads: list[bytes]) -> Serve:
    """A proxy that leads to `port`, whatever name is asked for."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head_of(reader))
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
        finally:
            back.transport.abort()

    return serve


def test_a_certificate_for_another_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says why, and nothing was sent."""
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "ca.pem"))
    came = bytearray()

    async def main() -> None:
        async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            came.extend(await reader.read(MIB))

        async with served(listen, _serving()) as port, opened() as transport:
            await fetch(transport, f"https://127.0.0.1:{port}/")

    with pytest.raises(ProviderError) as caught:
        asyncio.run(main())
    assert caught.value.code == "tls"
    assert "not valid for '127.0.0.1'" in caught.value.message
    assert not came


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", b""])
def test_a_proxy_that_does_not_connect(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named as the one at fault, without its password."""

    async def main() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await head_of(reader)
            writer.write(answer)
            await writer.drain()

        async with served(refuse) as port, opened() as transport:
            for name in ("https_proxy", "HTTPS_PROXY"):
                monkeypatch.setenv(name, f"http://user:secret@127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "")
            await fetch(transport, "https://model.invalid/v1")

    with pytest.raises(AgentError) as caught:
        asyncio.run(main())
    error: BaseException | None = caught.value
    assert caught.value.code == ("unreachable" if answer else "connection_lost")
    while error is not None:
        assert "secret" not in repr(error)
        error = error.__cause__ or error.__context__
