"""Describes an HTTP exchange without the HTTP library: origins, endpoints, time limits, headers,
responses, and the error of each fault.

Messages name at most an origin (scheme, host, port), never a path, a header or a key.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from searchloop.agent.errors import ConfigError, IncompleteError, ProviderError

DRAIN_SECONDS = 0.2
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_STANDARD = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "searchloop",
}
Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, between two reads, and until the head of the answer has arrived.

    `head` also bounds the sending of the request. There is no overall deadline.
    """

    connect: float = 10.0
    read: float = 300.0
    head: float = 600.0


@dataclass(frozen=True, slots=True)
class Origin:
    """The server that a request goes to, as far as an error may name it."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def here(self) -> bool:
        """True for the machine we run on."""
        with suppress(ValueError):
            ip = ipaddress.ip_address(self.host)
            return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
        return self.host == "localhost" or self.host.endswith(".localhost")


def origin_of(url: str) -> Origin | None:
    """Returns the origin of an http or https URL, None for anything else."""
    with suppress(ValueError):
        parts = urlsplit(url)
        host, usual = parts.hostname, {"https": 443, "http": 80}.get(parts.scheme)
        if host and usual:
            host = host if host.isascii() else host.encode("idna").decode("ascii")
            return Origin(parts.scheme, host, parts.port or usual)
    return None


def target_of(url: str) -> str:
    """Returns path and query as given, but quotes characters that HTTP does not allow there."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(target, safe=_AS_IT_IS)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks a provider's API: the vendor's own, or one of the user's choice.

    `home` is the vendor's base URL; `setting` names the setting in which a user gives another.
    """

    base: str
    key: str = field(default="", repr=False)
    vendor: str = field(default="", kw_only=True)
    home: str = field(default="", kw_only=True)
    setting: str = field(default="", kw_only=True)

    def address(self, path: str) -> str:
        """Returns the URL of `path` under the base URL."""
        return f"{self.base.rstrip('/')}/{path}"

    @property
    def host(self) -> str:
        """Its host name, empty when the URL has none."""
        origin = origin_of(self.base)
        return origin.host if origin else ""

    @property
    def official(self) -> bool:
        """True for the vendor's own server."""
        origin = origin_of(self.base)
        return origin is not None and origin == origin_of(self.home)

    @property
    def needs_key(self) -> bool:
        """True when the key is missing: the vendor wants one, another server may not."""
        return self.official and not self.key

    @property
    def name(self) -> str:
        """The server's name in messages."""
        there = f"The server at {self.host or 'an unknown address'}"
        return self.vendor if self.official else there

    def explain(self, error: ProviderError) -> ProviderError:
        """Points to the base URL of a server that is not the vendor's. See `Codec.explain`."""
        if error.code in ("unreachable", "tls", "bad_response") and not self.official:
            error.remedy = f"Check {self.setting}, and that the server there is running."
        return error


class Response:
    """An answer whose body is still to be read. `headers` has lower-case names."""

    def __init__(
        self, status: int, headers: Mapping[str, str], read: Callable[[], Awaitable[bytes]]
    ) -> None:
        """`read` returns the next piece of the body, empty bytes at its end."""
        self.status = status
        self.headers = headers
        self._read = read
        self._ended = False
        self.sink: Callable[[bytes], None] | None = None  # receives a copy of each piece

    def chunks(self) -> AsyncIterator[bytes]:
        """Returns the body as it arrives. Raises IncompleteError if the connection breaks."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self._read()
        if not data:
            self._ended = True
            raise StopAsyncIteration
        if self.sink is not None:
            self.sink(data)
        return data

    async def read(self, limit: int = 1024 * 1024) -> bytes:
        """Returns the body, or its first `limit` bytes."""
        parts, size = list[bytes](), 0
        async for part in self:
            parts.append(part)
            size += len(part)
            if size >= limit:
                break
        return b"".join(parts)[:limit]

    async def finish(self) -> None:
        """Reads a short rest of the body, so that the connection can be used again."""
        if self._ended:
            return
        with suppress(TimeoutError, ProviderError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for _ in range(8):
                    if not await anext(self, b""):
                        return


def response_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """Returns headers with lower-case names; joins repeated ones by a comma.

    None for a head that two readers may understand differently: the HTTP library accepts control
    characters, two lengths, and chunks beside a length. RFC 9112 6.3 calls these attacks.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        if _CONTROL.search(value):
            return None
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    length, encoding = found.get("content-length"), found.get("transfer-encoding")
    if length is not None and (encoding is not None or not length.isdecimal()):
        return None
    return found if encoding is None or encoding.lower() == "chunked" else None


def request_headers(headers: Headers) -> dict[str, str]:
    """Adds our standard headers. Raises ConfigError for a value that HTTP forbids."""
    fields = {**_STANDARD, **dict(headers)}
    for name, value in fields.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(
                "bad_header",
                f"The value for the header {name} has characters that HTTP does not allow.",
                "Check the key for blanks, line breaks and typographic characters.",
            )
    return fields


_AGAIN, _NETWORK = "Try again.", "Check the address and the network."
# kind: (code, message, remedy)
_ERRORS: Mapping[str, tuple[str, str, str]] = {
    "unreachable": ("unreachable", "Nothing answers at {origin}.", _NETWORK),
    "no_proxy": ("unreachable", "The proxy did not connect to {origin}.", _NETWORK),
    "not_trusted": (
        "tls",
        "{origin} could not be trusted: {reason}.",
        "Check the address and the clock; SSL_CERT_FILE can name your own certificates.",
    ),
    "connect_timeout": ("timeout", "{origin} could not be reached in time.", "Check the network."),
    "read_timeout": ("timeout", "{origin} fell silent.", _AGAIN),
    "connection_lost": (
        "connection_lost",
        "{origin} closed the connection without an answer.",
        _AGAIN,
    ),
    "cut_off": ("incomplete", "{origin} broke off its answer.", _AGAIN),
    "garbage": (
        "bad_response",
        "{origin} sent something that is not the expected answer.",
        "Check that the base URL points to the provider's API.",
    ),
}
# After a read timeout the answer may be paid already.
_RETRYABLE = frozenset({"unreachable", "no_proxy", "connect_timeout", "connection_lost", "cut_off"})


def transport_error(
    kind: str, origin: Origin, reason: str = "the TLS handshake failed"
) -> ProviderError:
    """Makes the error of one kind of fault; an IncompleteError for a body cut off."""
    code, message, remedy = _ERRORS[kind]
    retryable = kind in _RETRYABLE
    if code == "unreachable" and origin.here:
        retryable = False  # nothing will appear on this machine in a second
    make = IncompleteError if kind == "cut_off" else ProviderError
    return make(code, message.format(origin=origin, reason=reason), remedy, retryable=retryable)


class Redirected(ProviderError):
    """An answer that names another place; `location` as the server gave it, or None."""

    location: str | None = None


def redirected(origin: Origin, status: int, location: str | None = None) -> Redirected:
    """Makes the error of a redirect: to follow it would carry the key to another origin."""
    error = Redirected(
        "bad_response",
        f"{origin} answered with a redirect ({status}), which is not followed.",
        "Set the base URL to the address that the server redirects to, if you trust it.",
        status=status,
    )
    error.location = location
    return error
