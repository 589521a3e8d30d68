"""The HTTP client for servers elsewhere.

It sends headers and tokens to the server's own origin only; a login may ask other origins as well.
It limits the size and the rate of answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.mcp.server import Pace
from searchloop.agent.transport.exchange import origin_of
from searchloop.agent.transport.trust import certificates, check_proxies

if TYPE_CHECKING:
    import httpx2

BODY = 8 * 1024 * 1024  # bytes of one answer, and of one event of a stream
_HERE = ("all://127.0.0.1", "all://[::1]", "all://localhost")  # without a proxy
_WAIT = 30.0  # seconds for a connection, and for one write


def check_address(name: str, url: str, *, offline: bool) -> None:
    """Raises ConfigError if nothing may leave this machine and the server is elsewhere."""
    if offline and not is_here(url):
        what = f"The MCP server {name!r} is not on this machine, and nothing may leave it."
        raise ConfigError("offline", what, "Unset SEARCHLOOP_OFFLINE to use it.")


def first_of(error: BaseException) -> BaseException:
    """Returns the first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_here(url: str) -> bool:
    """Returns True for an address of this machine."""
    origin = origin_of(url)
    return origin is not None and origin.here


class OriginGuard:
    """Event hooks of one server's client: refuse other origins, bound answers.

    `allow` decides about another origin. `status` is the status of the last answer.
    """

    def __init__(self, name: str, url: str, allow: Callable[[str], bool] | None = None) -> None:
        self._name = name
        self._origin = origin_of(url)
        self._allow = allow or (lambda other: False)
        self.status: int | None = None

    async def request(self, request: httpx2.Request) -> None:
        """Raises ToolError for another origin."""
        url = str(request.url)
        if origin_of(url) != self._origin and not self._allow(url):
            what = f"The MCP server {self._name!r} points to another address, which was not opened."
            remedy = f"If it needs a login: searchloop mcp login {self._name}"
            raise ToolError("mcp_elsewhere", what, remedy)

    async def response(self, response: httpx2.Response) -> None:
        """Bounds the body."""
        self.status = response.status_code
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _bounded(response.stream, None if streamed else BODY)


def client_for(
    watch: OriginGuard, headers: Mapping[str, str], auth: Any = None
) -> httpx2.AsyncClient:
    """Makes the client of one server. Raises ConfigError for headers, certificates or a proxy of
    the environment that cannot be used.
    """
    import httpx2

    check_proxies()
    try:
        return httpx2.AsyncClient(
            headers=dict(headers),
            auth=auth,
            verify=certificates(),
            mounts=dict.fromkeys(_HERE),
            timeout=httpx2.Timeout(_WAIT, read=None),  # calls have limits of their own
            event_hooks={"request": [watch.request], "response": [watch.response]},
        )
    except (ValueError, TypeError) as error:
        what = "The headers of an MCP server cannot be used."
        remedy = "Check them for line breaks and typographic characters."
        raise ConfigError("bad_headers", what, remedy) from error


def _bounded(stream: Any, most: int | None) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """The same bytes, limited in rate and size."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pace, size = Pace(), 0
            async for data in stream:
                size += len(data)
                if most is not None and size > most:
                    words = f"The MCP server sent an answer of more than {most >> 20} MB."
                    raise ToolError("mcp_flood", words, "Ask it for less.")
                yield data
                await pace.spend(len(data), data.count(b"\n\n") + data.count(b"\r\n\r\n"))

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
