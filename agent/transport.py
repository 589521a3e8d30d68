"""Moves bytes to model providers and back: the one place that opens such connections.

No redirect is followed and no netrc is read: a key goes to the origin that the user named and
nowhere else. Proxies of the environment are honoured, except for this machine itself. Bodies are
asked for uncompressed, so that no event waits in a decompressor. The HTTP library is imported with
the first request. Whatever goes wrong in it becomes one of ours in `_translate`, and only there.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.errors import ProviderError
from agent.lanes import Lanes
from agent.wire import (
    Headers,
    Origin,
    Response,
    Timeouts,
    ambiguous,
    bad_url,
    connect_timeout,
    connection_lost,
    cut_off,
    forbidden,
    garbage,
    not_trusted,
    redirected,
    refused,
    request_headers,
    silent,
    unreachable,
)

if TYPE_CHECKING:
    import httpcore2
    import httpx2

__all__ = ["Response", "Timeouts", "Transport"]

JSON_LIMIT = 8 * 1024 * 1024


class Transport:
    """The way to model providers; one for each process and event loop, cheap until first used."""

    def __init__(
        self, timeouts: Timeouts | None = None, *, trust_env: bool = True, offline: bool = False
    ) -> None:
        limits = timeouts or Timeouts()
        self._offline = offline
        self._timeout = {"connect": limits.connect, "read": limits.read, "write": limits.write}
        self._head_seconds = limits.head
        self._lanes = Lanes(trust_env)
        self._known: dict[str, tuple[Origin, httpx2.URL]] = {}

    def named(self, provider: str) -> Transport:
        """This transport as this provider's: one that is watched tells them apart."""
        return self

    def post(
        self, url: str, headers: Headers, body: bytes, method: str = "POST"
    ) -> AbstractAsyncContextManager[Response]:
        """`async with transport.post(...) as response`: a streaming POST, or another method.

        Raises ProviderError (unreachable, timeout, connection_lost, tls, bad_response) and
        ConfigError for an address or a header that HTTP does not allow. Leaving the block early
        closes the connection at once.
        """
        return self._exchange(method, url, headers, body)

    async def get_json(
        self,
        url: str,
        headers: Headers = (),
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Any:
        """The JSON at `url`. Raises ProviderError; `timeout` is for all of it, in seconds."""
        status, value = await self._json("GET", url, headers, None, timeout)
        if status >= 400:
            raise refused(self._locate(url)[0], status)
        return value

    async def post_json(
        self,
        url: str,
        payload: Any,
        headers: Headers = (),
        timeout: float = 10.0,  # noqa: ASYNC109 - of it all
    ) -> tuple[int, Any]:
        """Status and JSON of the answer (None when an error answer holds none)."""
        body = json.dumps(payload, ensure_ascii=False).encode()
        return await self._json("POST", url, headers, body, timeout)

    async def aclose(self) -> None:
        """Closes all connections that are not in use."""
        await self._lanes.aclose()

    async def _json(
        self, method: str, url: str, headers: Headers, body: bytes | None, seconds: float
    ) -> tuple[int, Any]:
        origin = self._locate(url)[0]
        try:
            async with (
                asyncio.timeout(seconds),
                self._exchange(method, url, headers, body) as response,
            ):
                data = await response.read(JSON_LIMIT)
        except TimeoutError as error:
            raise ProviderError(
                "timeout", f"{origin} did not answer within {seconds:g} s.", "Try again."
            ) from error
        try:
            return response.status, json.loads(data)
        except ValueError as error:
            if response.status >= 400:
                return response.status, None
            raise garbage(origin) from error

    def _exchange(
        self, method: str, url: str, headers: Headers, body: bytes | None
    ) -> AbstractAsyncContextManager[Response]:
        import httpcore2

        origin, address = self._locate(url)
        fields = [(k.encode(), v.encode()) for k, v in request_headers(headers).items()]
        if body is not None:
            fields.append((b"content-length", str(len(body)).encode()))
        request = httpcore2.Request(
            method,
            httpcore2.URL(
                scheme=address.raw_scheme,
                host=address.raw_host,
                port=address.port,
                target=address.raw_path,
            ),
            headers=[(b"host", address.netloc), *fields],
            content=body,
            extensions={"timeout": self._timeout},
        )
        return _Exchange(self._lanes, origin, request, self._head_seconds)

    def _locate(self, url: str) -> tuple[Origin, httpx2.URL]:
        known = self._known.get(url)
        if known is not None:
            return known
        import httpx2

        try:
            address = httpx2.URL(url)
        except httpx2.InvalidURL:
            address = httpx2.URL("")
        if address.scheme not in ("http", "https") or not address.host:
            raise bad_url()
        port = address.port or (443 if address.scheme == "https" else 80)
        origin = Origin(address.scheme, address.host, port)
        if self._offline and not origin.here:
            raise forbidden(origin)
        self._known[url] = (origin, address)
        return origin, address


class _Exchange:
    """One request and its answer, as an async context manager."""

    def __init__(
        self, lanes: Lanes, origin: Origin, request: httpcore2.Request, seconds: float
    ) -> None:
        """`seconds`: until the head of the answer has to be there."""
        self._lanes = lanes
        self._origin = origin
        self._request = request
        self._seconds = seconds
        self._lane: httpcore2.AsyncConnectionPool | None = None
        self._response: Response | None = None

    async def __aenter__(self) -> Response:
        lane = self._lane = self._lanes.take(self._origin)
        try:
            async with asyncio.timeout(self._seconds):
                raw = await lane.handle_async_request(self._request)
        except BaseException as error:
            await self._lanes.give(self._origin, lane)
            if not isinstance(error, Exception):
                raise
            raise _translate(error, self._origin, started=False) from error
        self._response = Response(raw, partial(_translate, origin=self._origin, started=True))
        if ambiguous(raw.headers, raw.extensions.get("http_version", b"")):
            await self.__aexit__(ProviderError)
            raise garbage(self._origin)
        if 300 <= self._response.status < 400:
            await self.__aexit__(ProviderError)
            location = self._response.headers.get("location")
            raise redirected(self._origin, self._response.status, location)
        return self._response

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        assert self._lane is not None
        assert self._response is not None
        try:
            if kind is None:
                await self._response.finish()
            await self._response.aclose()
        finally:
            await self._lanes.give(self._origin, self._lane)


def _translate(error: Exception, origin: Origin, *, started: bool) -> Exception:
    """What a failure below means. `started`: the answer's headers had arrived."""
    import ssl

    import httpcore2

    if isinstance(error, httpcore2.ConnectError | httpcore2.ProxyError):
        tls = _cause(error, ssl.SSLError)
        if tls is not None:
            return not_trusted(origin, getattr(tls, "verify_message", ""))
        return unreachable(origin, isinstance(error, httpcore2.ProxyError))
    if isinstance(error, httpcore2.ConnectTimeout):
        return connect_timeout(origin)
    if isinstance(error, httpcore2.TimeoutException | TimeoutError):
        return silent(origin)
    # An end of file is a protocol error to the library; only its words tell it from garbage.
    if isinstance(error, httpcore2.NetworkError) or "without sending" in str(error):
        return cut_off(origin) if started else connection_lost(origin)
    if isinstance(error, httpcore2.ProtocolError):
        return garbage(origin)
    return error


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, kind):
        seen = seen.__cause__ or seen.__context__
    return seen
