"""The HTTP client for servers elsewhere: one origin, a bounded answer, no way round the switches.

The SDK speaks Streamable HTTP over it. What is configured for a server (headers, token) goes to its
origin and nowhere else; other origins are met only while the user logs in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.errors import ConfigError, ToolError
from agent.mcp.pace import Pace
from agent.proxies import check as check_proxies
from agent.trust import certificates

if TYPE_CHECKING:
    import httpx2

BODY = 8 * 1024 * 1024  # bytes of one answer, and of one event of a stream
_HERE = ("all://127.0.0.1", "all://[::1]", "all://localhost")  # past every proxy
_WAIT = 30.0  # seconds for a connection, and for one write


def check_address(name: str, url: str, *, offline: bool) -> None:
    """Raises ConfigError when nothing may leave this machine and the server is elsewhere."""
    if offline and not is_here(url):
        raise ConfigError(
            "offline",
            f"The MCP server {name!r} is not on this machine, and nothing may leave it.",
            "Unset SEARCHLOOP_OFFLINE to use it.",
        )


def is_here(url: str) -> bool:
    """Whether the address is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, (parts.hostname or "").lower(), port


class Watch:
    """Sees each request and each answer of one server's connection; `status` is the last one's."""

    def __init__(self, name: str, url: str, allow: Callable[[str], bool] | None = None) -> None:
        self._name = name
        self._origin = origin_of(url)
        self._allow = allow or (lambda other: False)
        self.status: int | None = None

    async def request(self, request: httpx2.Request) -> None:
        """Raises ToolError for an address that is not the server's."""
        url = str(request.url)
        if origin_of(url) != self._origin and not self._allow(url):
            raise ToolError(
                "mcp_elsewhere",
                f"The MCP server {self._name!r} points to another address, which was not opened.",
                f"If it needs a login: searchloop mcp login {self._name}",
            )

    async def response(self, response: httpx2.Response) -> None:
        """Bounds what will be read."""
        self.status = response.status_code
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _bounded(response.stream, None if streamed else BODY)


def client_for(watch: Watch, headers: Mapping[str, str], auth: Any = None) -> httpx2.AsyncClient:
    """A client of its own for one server. Raises ConfigError for what cannot be used: a header that
    HTTP does not allow, certificates, or the proxy of the environment."""
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
        raise ConfigError(
            "bad_headers",
            "The headers of an MCP server cannot be used.",
            "Check them for line breaks and typographic characters.",
        ) from error


def _bounded(stream: Any, most: int | None) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """The same bytes, no faster than we like and no more."""

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
