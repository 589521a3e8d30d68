"""The connection pool: an aiohttp session, and the translation of its errors.

None of aiohttp's errors is chained to ours: they hold URLs and headers, and so keys.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from typing import Any

from searchloop.agent.transport.exchange import (
    Origin,
    Response,
    Timeouts,
    redirected,
    target_of,
    transport_error,
)
from searchloop.agent.transport.trust import certificates, proxy_for


@contextmanager
def no_certificates() -> Iterator[None]:
    """Keeps aiohttp from reading all certificates (40 ms) for contexts that we never use."""
    thread, load = threading.get_ident(), ssl.SSLContext.set_default_verify_paths

    def skip(self: ssl.SSLContext) -> None:
        if threading.get_ident() != thread:
            load(self)

    ssl.SSLContext.set_default_verify_paths = skip  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths


with no_certificates():
    import aiohttp
    from yarl import URL

_socket: ContextVar[asyncio.Transport | None] = ContextVar("socket", default=None)


_LARGE = 64 * 1024  # bytes that aiohttp would copy once more than a file


class _Connector(aiohttp.TCPConnector):
    """Connects, and tells the caller which socket its request uses."""

    async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
        """Drops idle connections with unasked bytes: the library would take them for the answer."""
        while True:
            connection = await super().connect(*args, **kwargs)
            if connection.protocol is None or not connection.protocol.should_close:
                _socket.set(connection.transport)
                return connection
            connection.close()


class Pool:
    """Connections to all servers, for one event loop."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._head_seconds = timeouts.head
        self._tls: ssl.SSLContext | None = None
        self._proxy_for = cache(proxy_for)  # some systems ask slowly
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=0),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=timeouts.connect, sock_read=timeouts.read
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def aclose(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def exchange(
        self, origin: Origin, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[Response]:
        """Sends a request; leaving early closes its connection. Raises AgentError."""
        answer = await self._answer(origin, method, url, headers, body)
        socket = _socket.get()
        try:
            yield (response := _response(origin, answer))
            if answer.connection is not None:  # not all of the answer has come yet
                await response.finish()
        finally:
            if answer.connection is not None and socket is not None:
                socket.abort()  # a polite end would wait for the server
            answer.close()

    async def _answer(
        self, origin: Origin, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        proxy = self._proxy_for(origin)
        _socket.set(None)
        try:
            async with asyncio.timeout(self._head_seconds):
                return await self._session.request(
                    method,
                    URL(f"{origin}{target_of(url)}", encoded=True),
                    headers=headers,
                    data=BytesIO(body) if body and len(body) > _LARGE else body,
                    allow_redirects=False,
                    proxy=proxy,
                    ssl=self._context(origin, proxy),
                )
        except BaseException as error:
            if socket := _socket.get():
                socket.abort()
            fault = _fault(error, origin, started=False)
            if fault is error:
                raise
        raise fault

    def _context(self, origin: Origin, proxy: str | None) -> ssl.SSLContext | bool:
        """Certificates are loaded once, and not at all while every server speaks plain http."""
        if origin.scheme == "https" or (proxy or "").startswith("https"):
            self._tls = self._tls or certificates()
            return self._tls
        return True


def _response(origin: Origin, answer: aiohttp.ClientResponse) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    coding, version = headers.get("transfer-encoding"), answer.version
    known = coding is None or (coding.lower(), version) == ("chunked", aiohttp.HttpVersion11)
    if answer.status < 200 or not known:
        raise transport_error("garbage", origin)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise transport_error("compressed", origin)
    if 300 <= answer.status < 400:
        raise redirected(origin, answer.status, headers.get("location"))

    async def read() -> bytes:
        try:
            return await answer.content.readany()
        except Exception as error:
            fault = _fault(error, origin, started=True)
            if fault is error:
                raise
        raise fault

    return Response(answer.status, headers, read)


def _fault(error: BaseException, origin: Origin, *, started: bool) -> BaseException:
    """Translates an error for the user; `started`: the head of the answer had arrived."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "")
            return transport_error("not_trusted", origin, *filter(None, [reason]))
        case aiohttp.ClientSSLError():
            kind = "not_trusted"
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            kind = "no_proxy"
        case aiohttp.ClientConnectorError():
            kind = "unreachable"
        case aiohttp.ConnectionTimeoutError():
            kind = "connect_timeout"
        case TimeoutError():
            kind = "read_timeout"
        case aiohttp.ClientPayloadError() if "not completed" in str(error):
            kind = "cut_off"
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            kind = "garbage"
        case aiohttp.ClientConnectionError() | ConnectionError():
            kind = "cut_off" if started else "connection_lost"
        case _:
            return error
    return transport_error(kind, origin)
