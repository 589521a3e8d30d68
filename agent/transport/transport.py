"""The one place that opens connections to model providers.

It follows no redirect and reads no netrc: a key goes to the origin that the user named. It asks for
uncompressed bodies, so that no event waits in a decompressor.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.transport.exchange import (
    Headers,
    Origin,
    Response,
    Timeouts,
    origin_of,
    request_headers,
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

    def post(
        self, url: str, headers: Headers, body: bytes | None, method: str = "POST"
    ) -> AbstractAsyncContextManager[Response]:
        """Opens a request whose answer streams; leaving its block closes it. Raises AgentError."""
        origin, fields = self._locate(url), request_headers(headers)
        return self._pool().exchange(origin, method, url, fields, body)

    async def fetch(
        self,
        url: str,
        headers: Headers = (),
        body: bytes | None = None,
        method: str = "GET",
        timeout: float = 10.0,  # noqa: ASYNC109 - of it all
    ) -> tuple[int, bytes]:
        """Returns status and body of a short answer, whatever the status. Raises AgentError."""
        try:
            async with (
                asyncio.timeout(timeout),
                self.post(url, headers, body, method) as response,
            ):
                return response.status, await response.read(JSON_LIMIT)
        except TimeoutError as error:
            what = f"{self._locate(url)} did not answer within {timeout:g} s."
            raise ProviderError("timeout", what, "Try again.") from error

    async def aclose(self) -> None:
        """Closes all connections. A later request opens new ones."""
        if self._pool.cache_info().currsize:
            pool = self._pool()
            self._pool.cache_clear()
            await pool.aclose()

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
