"""What a fetch may cost and what it brings back. Values only; `fetch` does the work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from search_backend.errors import FetchFailed, bad_response, timed_out, too_large

if TYPE_CHECKING:
    from search_backend.head import Head

# What a reader may want to know. Everything else a server says stays at the door.
KEPT_HEADERS = frozenset(
    {
        *("age", "cache-control", "content-disposition", "content-encoding", "content-language"),
        *("content-length", "content-type", "date", "etag", "expires", "last-modified", "pragma"),
        *("retry-after", "server", "vary", "x-robots-tag"),
    }
)
_LISTS = frozenset({"cache-control", "content-encoding", "vary"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,100})\s*(?:;|,|$)", re.I)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9][a-z0-9._:+-]{0,39})", re.IGNORECASE)
_RANGE = re.compile(r"bytes[ =]0-([0-9]{1,18})/([0-9]{1,18})", re.IGNORECASE)
_TEXT = re.compile(r"text/.*|.*[/+](?:xml|json|javascript|x-ndjson|yaml)")


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The most that one fetch takes, all hops together where it says total.

    `max_bytes` counts a body as sent, `max_decoded` after decompression, `max_header_bytes` the
    head of one answer with all interim answers. `seconds` is total; `connect_seconds` is for one
    address. `failure_step`: a fetch that finds nothing reachable ends at a multiple of so many
    seconds, so that its duration does not tell why.
    """

    max_bytes: int = 10 * 1024 * 1024
    max_decoded: int = 20 * 1024 * 1024
    seconds: float = 15.0
    redirects: int = 5
    max_header_bytes: int = 64 * 1024
    connect_seconds: float = 5.0
    failure_step: float = 0.25


DEFAULT_LIMITS = FetchLimits()


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of a public web server, whatever its status.

    `url` is the address asked for, `redirects` the addresses that redirected (in order, without
    `final_url`). `content_type` is lower case without parameters, empty when the server named none.
    `body` is decompressed. `truncated` says that it is not all of the page, and `cut` why:
    max_bytes, max_decoded, max_pieces (absurdly many chunks), deadline, connection (the server
    stopped early), encoding (the rest could not be decompressed) or partial (the server sent a part
    that nobody had asked for). `headers` has lower-case names and only KEPT_HEADERS.
    """

    url: str
    final_url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    truncated: bool = False
    redirects: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A page read before: its final address, and the headers that ask whether it has changed."""

    url: str
    conditions: Mapping[str, str]


def content_type(header: str) -> tuple[str, str | None]:
    """(type, charset) of a Content-Type header: both lower case; "" and None when not named."""
    kind, charset = _TYPE.match(header), _CHARSET.search(header)
    return (kind[1].lower() if kind else "", charset[1].lower() if charset else None)


def is_text(kind: str) -> bool:
    """Whether a part of such a body is of use. A body of unknown type is taken for text."""
    return not kind or _TEXT.fullmatch(kind) is not None


def is_part(head: Head) -> bool:
    """Whether an answer is only a part of the page, though all was asked for (RFC 9110 15.3.7).
    One that says that it is all, as some servers do, is taken so."""
    said = [_RANGE.fullmatch(value) for value in head.every("content-range")]
    whole = len(said) == 1 and said[0] is not None and int(said[0][1]) + 1 == int(said[0][2])
    return head.status == 206 and not whole


def useless(cut: str, host: str, limits: FetchLimits) -> FetchFailed:
    """The failure for a body that is cut and of which no part is of use."""
    if cut == "deadline":
        return timed_out(limits.seconds)
    return too_large(limits.max_bytes) if cut.startswith("max_") else bad_response(host)


def kept(head: Head) -> Mapping[str, str]:
    """KEPT_HEADERS of an answer, by their lower-case names; lists in several lines as one."""
    found: dict[str, str] = {}
    for name, value in head.fields:
        if name in KEPT_HEADERS:
            before = f"{found[name]}, " if name in _LISTS and name in found else ""
            found[name] = before + _text(value)
    return MappingProxyType(found)


def location(head: Head) -> str | None:
    """Where a redirect leads, as it says; None for an answer that is none."""
    found = {_text(value) for value in head.every("location")}
    if head.status not in _REDIRECTS or not found:
        return None
    if len(found) > 1:
        raise FetchFailed(
            "bad_response", "The server redirects to two places at once.", "Use another source."
        )
    return found.pop()


def _text(value: str) -> str:
    """A header's value as its sender meant it: UTF-8 where it is valid, else Latin-1."""
    try:
        return value.encode("latin-1").decode("utf-8").strip()
    except UnicodeError:
        return value.strip()
