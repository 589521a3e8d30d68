"""What goes over the wire, seen without the library that carries it.

Origins, time limits, headers, an answer being read, and what each way of failing is called.
Messages name an origin at most (scheme, host, port): never a path, a header or a key.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from agent.errors import ConfigError, IncompleteError, ProviderError

DRAIN_SECONDS = 0.2
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_STANDARD = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "searchloop",
}
Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, between two bytes of an answer, for one write, and until the head of the
    answer is there, whatever comes before it. No overall deadline."""

    connect: float = 10.0
    read: float = 300.0
    write: float = 60.0
    head: float = 600.0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where requests go; all that an error may say of it."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def here(self) -> bool:
        """Whether this is the machine we run on."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost" or self.host.endswith(".localhost")


class RawResponse(Protocol):
    """What is asked of the library's response."""

    status: int
    stream: Any

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """As they came."""


class Response:
    """An answer whose body is still to be read. `headers` has lower-case names."""

    def __init__(self, raw: RawResponse, translate: Callable[[Exception], Exception]) -> None:
        self.status = raw.status
        self.headers: Mapping[str, str] = _headers(raw.headers)
        self._raw = raw
        self._translate = translate
        self._body: Any = raw.stream.__aiter__()
        self._ended = False
        self.sink: Callable[[bytes], None] | None = None  # gets what is read as well

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises IncompleteError when it is cut."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            data: bytes = await self._body.__anext__()
        except StopAsyncIteration:
            self._ended = True
            raise
        except Exception as error:
            raise self._translate(error) from error
        if self.sink is not None:
            self.sink(data)
        return data

    async def read(self, limit: int = 1024 * 1024) -> bytes:
        """The body, or its first `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        async for part in self:
            parts.append(part)
            size += len(part)
            if size >= limit:
                break
        return b"".join(parts)[:limit]

    async def finish(self) -> None:
        """Reads what little is left, so that the connection can be used again."""
        with suppress(TimeoutError, ProviderError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for _ in range(8):
                    if self._ended:
                        return
                    await anext(self, b"")

    async def aclose(self) -> None:
        """Closes the connection unless the body was read to its end."""
        await self._raw.stream.aclose()
        await self._body.aclose()


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; what is said twice is one value with a comma."""
    found: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("ascii").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def request_headers(headers: Headers) -> dict[str, str]:
    """Our standard headers and these. Raises ConfigError for a value that HTTP forbids."""
    fields = {**_STANDARD, **dict(headers)}
    for name, value in fields.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(
                "bad_header",
                f"The value for the header {name} has characters that HTTP does not allow.",
                "Check the key for blanks, line breaks and typographic characters.",
            )
    return fields


def bad_url() -> ConfigError:
    """Not an address of the web."""
    return ConfigError(
        "bad_url",
        "The base URL of the provider is not an http:// or https:// address.",
        "Correct it, for example http://127.0.0.1:8000/v1.",
    )


def forbidden(origin: Origin) -> ConfigError:
    """Elsewhere, and nothing may leave this machine."""
    return ConfigError(
        "offline",
        f"{origin} is not on this machine, and nothing may leave it.",
        "Choose a local model, or unset SEARCHLOOP_OFFLINE.",
    )


def refused(origin: Origin, status: int) -> ProviderError:
    """An answer whose status says no, from a server that was asked for plain JSON."""
    return ProviderError(
        "http_error",
        f"{origin} answered with status {status}.",
        "Check the key and the base URL.",
        status=status,
        retryable=status == 429 or status >= 500,
    )


def unreachable(origin: Origin, proxy: bool = False) -> ProviderError:
    """Nothing answered. Not retried on this machine: nothing will appear there in a second."""
    text = f"The proxy did not connect to {origin}." if proxy else f"Nothing answers at {origin}."
    remedy = "Check the address and the network."
    return ProviderError("unreachable", text, remedy, retryable=not origin.here)


def not_trusted(origin: Origin, reason: str) -> ProviderError:
    """The TLS handshake failed."""
    return ProviderError(
        "tls",
        f"{origin} could not be trusted: {reason or 'the TLS handshake failed'}.",
        "Check the address and the clock; SSL_CERT_FILE can name your own certificates.",
    )


def connect_timeout(origin: Origin) -> ProviderError:
    """No connection in time; nothing was sent, so it may be tried again."""
    text = f"{origin} could not be reached in time."
    return ProviderError("timeout", text, "Check the network.", retryable=True)


def silent(origin: Origin) -> ProviderError:
    """A connection on which nothing came any more. Not retried: the answer may be paid already."""
    return ProviderError("timeout", f"{origin} fell silent.", "Try again.")


def connection_lost(origin: Origin) -> ProviderError:
    """Closed before the first byte of an answer."""
    text = f"{origin} closed the connection without an answer."
    return ProviderError("connection_lost", text, "Try again.", retryable=True)


def cut_off(origin: Origin) -> IncompleteError:
    """Closed in the middle of an answer."""
    text = f"{origin} broke off its answer."
    return IncompleteError("incomplete", text, "Try again.", retryable=True)


class Redirected(ProviderError):
    """An answer that names another place; `location` as it was given, or None."""

    location: str | None = None


def redirected(origin: Origin, status: int, location: str | None = None) -> Redirected:
    """A redirect; following it would carry the key to an origin the user did not name."""
    error = Redirected(
        "bad_response",
        f"{origin} answered with a redirect ({status}), which is not followed.",
        "Set the base URL to the address that the server redirects to, if you trust it.",
        status=status,
    )
    error.location = location
    return error


def ambiguous(headers: Iterable[tuple[bytes, bytes]], version: bytes) -> bool:
    """Whether an answer ends in two places: in chunks, with a length beside it or by a version of
    HTTP that knows no chunks. RFC 9112 6.1 and 6.3 call it an attack, the library takes it."""
    names = {name.lower() for name, _ in headers}
    old = version < b"HTTP/1.1"
    return b"transfer-encoding" in names and (old or b"content-length" in names)


def garbage(origin: Origin) -> ProviderError:
    """Not HTTP, or not the expected body."""
    return ProviderError(
        "bad_response",
        f"{origin} sent something that is not the expected answer.",
        "Check that the base URL points to the provider's API.",
    )
