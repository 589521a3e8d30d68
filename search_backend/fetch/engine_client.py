"""HTTP client for search engines and reading services, over pooled connections.

Their addresses come from the user's settings, never from a model or a page, so they may be local
(a SearXNG on localhost) and the check for pages does not apply. For the same reason only the chain
and the reading services use this module. It follows no redirect, so a key never reaches another
host, and it uses no proxy settings, `.netrc` or cookies.
"""

from __future__ import annotations

import os
import ssl
import weakref
from collections.abc import Callable, Sequence

import aiohttp

from searchloop.search_backend.fetch.client import (
    AddressResolver,
    close_session,
    new_session,
    system_trust,
)
from searchloop.search_backend.fetch.fetch import system_resolver
from searchloop.search_backend.plugin import HttpRequest, HttpResponse
from searchloop.search_backend.types import EngineError, SettingError

CONNECT_SECONDS = 4.0
MOST_BYTES = 4 * 2**20  # of a body, unpacked

_HEADERS = {
    "User-Agent": "searchloop",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",  # whatever other packages are installed
}
_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)


class EngineHttp:
    """Sends the requests of engines and services over pooled connections."""

    def __init__(
        self,
        trust: Callable[[], ssl.SSLContext] = system_trust,
        resolve: Callable[[str, int], Sequence[str]] = system_resolver,
    ) -> None:
        """`trust` builds the TLS context; it may raise SettingError. `resolve` looks names up."""
        self._trust, self._resolve = trust, resolve
        self._sessions: dict[int, aiohttp.ClientSession] = {}  # by process id: servers fork
        weakref.finalize(self, close_session, self._sessions)

    async def send(self, request: HttpRequest, title: str) -> HttpResponse:
        """Returns the answer to `request`; await it on the loop of `fetch.client`.

        `title` names the server in messages. Raises EngineError and nothing else.
        """
        try:
            async with self._session().request(
                request.method,
                request.url,
                headers={**_HEADERS, **request.headers},
                data=request.body or None,
                ssl=self._trust() if request.url.startswith("https:") else True,
                allow_redirects=False,
                timeout=_LIMITS,
            ) as response:
                body = await _body(response, title)
        except SettingError as error:
            raise EngineError("config", error.message, error.remedy) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is one
            raise explain(error, title) from error
        fields = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status, fields, body)

    def close(self) -> None:
        """Closes the connections that are kept."""
        close_session(self._sessions)

    def _session(self) -> aiohttp.ClientSession:
        if (process := os.getpid()) not in self._sessions:
            # A limit shared by all engines would let one that hangs keep the others waiting.
            pool = aiohttp.TCPConnector(limit=0, resolver=AddressResolver(self._resolve))
            self._sessions[process] = new_session(pool)
        return self._sessions[process]


def explain(error: Exception, title: str) -> EngineError:
    """Returns the EngineError for a request to `title` that got no answer."""
    could_be_sent = isinstance(error, aiohttp.ClientError | OSError)
    if not could_be_sent or isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        words = f"HTTP cannot carry the address or the key of {title}."
        remedy = "Write the address as http://localhost:8080/, and the key without line ends."
        return EngineError("config", words, remedy)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "")
        return EngineError(
            "network",
            f"The certificate of {title} is not trusted ({why}).",
            "Correct the engine's address, or set SSL_CERT_FILE to your own authority.",
        )
    if isinstance(error, aiohttp.ClientConnectorError | TimeoutError):
        words = f"The server of {title} could not be reached."
    else:
        words = f"{title} broke off, or its answer is not valid HTTP."
    remedy = "Check the network connection and the engine's address, or use another engine."
    return EngineError("network", words, remedy)


async def _body(response: aiohttp.ClientResponse, title: str) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MOST_BYTES:
            what = f"{title}: its answer is larger than {MOST_BYTES:,} bytes."
            raise EngineError("network", what, "Try again, or use another engine.")
    return bytes(body)
