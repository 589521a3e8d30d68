"""The one place that opens connections to model providers.

It follows no redirect and reads no netrc: a key goes to the origin that the user named. It asks for
uncompressed bodies, so that no event waits in a decompressor.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.transport.exchange import (
    Headers,
    Origin,
    Response,
    Timeouts,
    origin_of,
    request_headers,
    transport_error,
)

if TYPE_CHECKING:
    from searchloop.agent.transport.pool import Pool

__all__ = ["Response", "Timeouts", "Transport"]

JSON_LIMIT = 8 * 1024 * 1024


class Transport:
    """Sends requests to model providers; the first request loads the HTTP library."""

    def __init__(self, timeouts: Timeouts | None = None, *, offline: bool = False) -> None:
        self._offline = offline
        # Copies of this transport share one pool, whichever of them opens it.
        self._pool = cache(partial(_open_pool, timeouts or Timeouts()))

    def named(self, provider: str) -> Transport:
        """Returns this transport under a provider's name, for observers."""
        return self

    def post(
        self, url: str, headers: Headers, body: bytes, method: str = "POST"
    ) -> AbstractAsyncContextManager[Response]:
        """Opens a streaming POST; leaving its block early closes it. Raises AgentError."""
        return self._exchange(method, url, headers, body)

    async def get_json(
        self,
        url: str,
        headers: Headers = (),
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Any:
        """Returns the JSON at `url`; `timeout` covers everything. Raises ProviderError."""
        status, value = await self._json("GET", url, headers, None, timeout)
        if status >= 400:
            what = f"{self._locate(url)} answered with status {status}."
            remedy = "Check the key and the base URL."
            again = status == 429 or status >= 500
            raise ProviderError("http_error", what, remedy, status=status, retryable=again)
        return value

    async def post_json(
        self,
        url: str,
        payload: Any,
        headers: Headers = (),
        timeout: float = 10.0,  # noqa: ASYNC109 - of it all
    ) -> tuple[int, Any]:
        """Returns status and JSON of the answer (None when an error answer holds none)."""
        body = json.dumps(payload, ensure_ascii=False).encode()
        return await self._json("POST", url, headers, body, timeout)

    async def aclose(self) -> None:
        """Closes all connections. A later request opens new ones."""
        if self._pool.cache_info().currsize:
            pool = self._pool()
            self._pool.cache_clear()
            await pool.aclose()

    async def _json(
        self, method: str, url: str, headers: Headers, body: bytes | None, seconds: float
    ) -> tuple[int, Any]:
        origin = self._locate(url)
        try:
            async with (
                asyncio.timeout(seconds),
                self._exchange(method, url, headers, body) as response,
            ):
                data = await response.read(JSON_LIMIT)
        except TimeoutError as error:
            what = f"{origin} did not answer within {seconds:g} s."
            raise ProviderError("timeout", what, "Try again.") from error
        try:
            return response.status, json.loads(data)
        except ValueError as error:
            if response.status >= 400:
                return response.status, None
            raise transport_error("garbage", origin) from error

    def _exchange(
        self, method: str, url: str, headers: Headers, body: bytes | None
    ) -> AbstractAsyncContextManager[Response]:
        origin, fields = self._locate(url), request_headers(headers)
        return self._pool().exchange(origin, method, url, fields, body)

    def _locate(self, url: str) -> Origin:
        origin = origin_of(url)
        if origin is None:
            what = "The base URL of the provider is not an http:// or https:// address."
            raise ConfigError("bad_url", what, "Correct it, for example http://127.0.0.1:8000/v1.")
        if self._offline and not origin.here:
            what = f"{origin} is not on this machine, and nothing may leave it."
            raise ConfigError("offline", what, "Choose a local model, or unset SEARCHLOOP_OFFLINE.")
        return origin


def _open_pool(timeouts: Timeouts) -> Pool:
    from searchloop.agent.transport.pool import Pool

    return Pool(timeouts)
