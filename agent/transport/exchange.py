"""Describes an HTTP exchange without the HTTP library, and splits its answer into payloads.

Errors name no more than an origin. However the network cuts the bytes, the payloads are the same.
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlsplit

from searchloop.agent.errors import ConfigError, IncompleteError, ProviderError
from searchloop.agent.types import StreamEvent

DRAIN_SECONDS = 0.2
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_STANDARD = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "searchloop",
}
Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class Timeouts(NamedTuple):
    """Limits in seconds: to connect, between two reads, to send and until the answer's head."""

    connect: float = 10.0
    read: float = 300.0
    head: float = 600.0


class Origin(NamedTuple):
    """The server that a request goes to, as far as an error may name it."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def here(self) -> bool:
        with suppress(ValueError):
            ip = ipaddress.ip_address(self.host)
            return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
        return self.host == "localhost" or self.host.endswith(".localhost")


@lru_cache(maxsize=256)
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
    """Returns path and query as given, apart from characters that HTTP does not allow there."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(target, safe=_AS_IT_IS)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of a provider's API; `home` is the vendor's own, `setting` names another."""

    base: str
    key: str = field(default="", repr=False)
    vendor: str = field(default="", kw_only=True)
    home: str = field(default="", kw_only=True)
    setting: str = field(default="", kw_only=True)

    def address(self, path: str) -> str:
        return f"{self.base.rstrip('/')}/{path}"

    @property
    def host(self) -> str:
        origin = origin_of(self.base)
        return origin.host if origin else ""

    @property
    def loopback(self) -> bool:
        """True for this machine."""
        origin = origin_of(self.base)
        return origin is not None and origin.here

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

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives. Raises IncompleteError when the connection breaks."""
        return self

    async def __anext__(self) -> bytes:
        data = await self._read()
        if not data:
            self._ended = True
            raise StopAsyncIteration
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


def request_headers(headers: Headers) -> dict[str, str]:
    """Adds our standard headers. Raises ConfigError for a value that HTTP forbids."""
    fields = {**_STANDARD, **dict(headers)}
    for name, value in fields.items():
        if not _HEADER_VALUE.fullmatch(value):
            what = f"The value for the header {name} has characters that HTTP does not allow."
            remedy = "Check the key for blanks, line breaks and typographic characters."
            raise ConfigError("bad_header", what, remedy)
    return fields


# Read at once, as a system without files to spare reads none later.
FAULTS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
# After a read timeout the answer may be paid already.
_RETRYABLE = frozenset({"unreachable", "no_proxy", "connect_timeout", "connection_lost", "cut_off"})


def transport_error(
    kind: str, origin: Origin, reason: str = "the TLS handshake failed"
) -> ProviderError:
    """Makes the error of one kind of fault, see faults.toml; IncompleteError for a body cut off."""
    code, message, remedy = FAULTS[kind]
    retryable = kind in _RETRYABLE
    if code == "unreachable" and origin.here:
        retryable = False  # nothing will appear on this machine in a second
    make = IncompleteError if kind == "cut_off" else ProviderError
    return make(code, message.format(origin=origin, reason=reason), remedy, retryable=retryable)


class Redirected(ProviderError):
    """An answer that names another place; `location` as the server gave it, or None."""

    location: str | None = None


def redirected(origin: Origin, status: int, location: str | None = None) -> Redirected:
    """Makes the error for a redirect: following it would carry the key to another origin."""
    error = Redirected(
        "bad_response",
        f"{origin} answered with a redirect ({status}), which is not followed.",
        "Set the base URL to the address that the server redirects to, if you trust it.",
        status=status,
    )
    error.location = location
    return error


MAX_EVENT = 16 * 1024 * 1024
_REMEDY = "Check that the base URL points to the provider itself."
# A document where events should be; llama.cpp has a field of its own for errors.
_BARE = re.compile(rb"(?m)^(?:error: ?)?[\[{]")
# Reading something of an unexpected shape raises these.
MISREAD = (KeyError, TypeError, AttributeError, ValueError, RecursionError)


_BOM = b"\xef\xbb\xbf"


class _Splitter:
    """Splits a stream at each `gap`; an event may have MAX_EVENT bytes."""

    gap: ClassVar[bytes]

    def __init__(self) -> None:
        self._held = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the payloads completed by `data`. Raises ProviderError for a too large one."""
        seen = max(0, len(self._held) - 1)
        self._held += data
        if self._held.find(self.gap, seen) < 0:
            if len(self._held) > MAX_EVENT:
                what = f"One event of the answer is larger than {MAX_EVENT // 1024 // 1024} MiB."
                raise ProviderError("bad_response", what, _REMEDY)
            return []
        *blocks, rest = bytes(self._held).split(self.gap)
        self._held = bytearray(rest)
        return self._payloads(blocks)

    def close(self) -> list[bytes]:
        """Returns the payload of a last event without its gap, if any."""
        return self._payloads([bytes(self._held.rstrip(b"\n"))])

    def _payloads(self, blocks: list[bytes]) -> list[bytes]:
        if not self._begun:
            self._begun, blocks[0] = True, blocks[0].removeprefix(_BOM)
            if blocks[0].lstrip().startswith(b"<"):
                what = "The server answers with a web page."
                raise ProviderError("bad_response", what, _REMEDY)
        return [payload for payload in map(self._read, blocks) if payload]

    def _read(self, block: bytes) -> bytes:
        raise NotImplementedError


class NdjsonSplitter(_Splitter):
    """Returns the lines of a newline-delimited stream, without blank ones."""

    gap = b"\n"

    def _read(self, block: bytes) -> bytes:
        return block.strip()


class SseSplitter(_Splitter):
    """Returns the `data` of each complete server-sent event, without comments and other fields."""

    gap = b"\n\n"
    _after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        if data and (self._after_cr or b"\r" in data):  # a CRLF cut in two is one line end
            data = data[1:] if self._after_cr and data[:1] == b"\n" else data
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return super().feed(data)

    def _read(self, block: bytes) -> bytes:
        return _data(block)


def _data(block: bytes) -> bytes:
    """Returns the data lines of one event block, or the JSON that came without them."""
    start = block.find(b"\n") + 1 if block.startswith(b"event: ") else 0
    if block.startswith(b"data: ", start) and block.find(b"\n", start) < 0:
        return block[start + 6 :]
    lines = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            lines.append(b"")
    bare = None if lines else _BARE.search(block)
    if bare and document_of(block[bare.end() - 1 :]) is not None:
        return block[bare.end() - 1 :]
    return b"\n".join(lines)


def document_of(body: bytes) -> Any:
    """Parses a document; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def incomplete(server: str, why: str = "") -> IncompleteError:
    """Makes the error for an answer without an end; `why` is the server's reason, a sentence."""
    what = f"{server} ended its answer before it was finished. {why}".rstrip()
    return IncompleteError("incomplete", what, "Try again.", retryable=True)


def then_raise(events: Iterable[StreamEvent], error: ProviderError) -> Iterator[StreamEvent]:
    """Yields `events`, then raises `error`: a reader sees what came before a fault."""
    yield from events
    raise error
