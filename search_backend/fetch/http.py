"""The answer of a web server as a value, read within limits that no server can exceed.

aiohttp speaks HTTP. Each request has a connection of its own, so what a server appends to an answer
is never taken for another one.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import aiohttp
import brotli

from searchloop.search_backend.fetch import NAMES
from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.refresh import RefreshIn, refresh_in
from searchloop.search_backend.types import FetchFailed, bad_response, timed_out, too_large

# Security policies of some sites are longer than the 8 KiB that aiohttp takes by default.
MOST_HEADER = 64 * 1024
# Chunks of one byte cost work and carry nothing; honest bodies have thousands of pieces.
_MOST_PIECES = 100_000
_KEPT = NAMES["kept_headers"]
_LISTS = frozenset({"cache-control", "content-encoding"})
_ENCODINGS = re.compile(f"|{'|'.join(NAMES['encodings'])}")
_PACKED = frozenset({"gzip", "x-gzip", "deflate", "br"})
_PIECE = 64 * 1024
_MOST_MEMBERS = 100  # of one gzip file; each costs work and may be empty
_GZIP = b"\x1f\x8b"
_HEAD = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,100})\s*(?:;|,|$)", re.I)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9][a-z0-9._:+-]{0,39})", re.IGNORECASE)
_TEXT = re.compile(
    r"|text/.*|.*[/+](?:x-)?(?:xml|jsonl?|ndjson|javascript|yaml|toml|sql|sh|tex|subrip)"
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The most that one fetch takes.

    `max_bytes` limits a body as sent, `max_decoded` after decompression. `seconds` are for all
    redirects together, `connect_seconds` for one connection with its TLS handshake. A fetch that
    reaches no server ends at a multiple of `failure_step` seconds, so that its duration does not
    tell why.
    """

    max_bytes: int = 10 * 1024 * 1024
    max_decoded: int = 20 * 1024 * 1024
    seconds: float = 15.0
    redirects: int = 5
    connect_seconds: float = 5.0
    failure_step: float = 0.25


DEFAULT_LIMITS = FetchLimits()


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of a public web server, whatever its status.

    `redirects` are the addresses that redirected, in order and without `final_url`. `content_type`
    is lower case without parameters, or "". `body` is decompressed. `cut` says why the body is not
    the whole page: max_bytes, max_decoded, max_pieces (absurdly many chunks), deadline, connection
    (the server stopped early), encoding (it cannot be decompressed) or partial (the server sent a
    part unasked); "" for a whole page. `headers` has lower-case names, only those in use.
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


# The same for every page and every user, whatever other packages are installed.
REQUEST_HEADERS: Mapping[str, str] = {
    "User-Agent": "searchloop (+local)",
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1",
    "Accept-Encoding": "gzip, deflate, br",
}


def content_type(header: str) -> tuple[str, str | None]:
    """(type, charset) of a Content-Type header: both lower case; "" and None when not named."""
    kind, charset = _TYPE.match(header), _CHARSET.search(header)
    return (kind[1].lower() if kind else "", charset[1].lower() if charset else None)


def redirect_of(answer: aiohttp.ClientResponse) -> str | None:
    """The Location of a redirect, as the server wrote it; None for any other answer."""
    if answer.status < 200:  # another protocol, for which nobody asked
        raise bad_response(answer.url.host or "")
    found = {_text(value) for value in answer.headers.getall("location", ())}
    if answer.status not in _REDIRECTS or not found:
        return None
    if len(found) > 1:
        words = "The server redirects to two places at once."
        raise FetchFailed("bad_response", words, "Use another source.")
    return found.pop()


async def read_page(
    answer: aiohttp.ClientResponse, url: str, limits: FetchLimits, ends: float
) -> Fetched:
    """Reads the body of `answer` until it ends or a limit does; `ends` is a time of the loop.

    A text that is cut short comes back with `truncated`; of any other file a part is of no use.
    Raises FetchFailed.
    """
    headers = _kept(answer)
    encoding = headers.get("content-encoding", "").lower()
    codings = [value.lower() for value in answer.headers.getall("transfer-encoding", ())]
    if not _ENCODINGS.fullmatch(encoding) or codings not in ([], ["chunked"], ["identity"]):
        words = f"The server encoded the page in an unknown way ({encoding or codings!r:.60})."
        raise FetchFailed("bad_response", words, "Use another source.")
    kind, charset = content_type(headers.get("content-type", ""))
    body, cut = await _body(answer.content, limits, ends)
    if encoding in _PACKED or body.startswith(_GZIP):  # some servers do not say that they zip
        work = partial(_unpacked, body, encoding, limits.max_decoded)
        body, why = await asyncio.wrap_future(in_thread(work))
        cut = why if why != "connection" else cut or why
    cut = cut or "partial" * (answer.status == 206)
    if cut and not (body and _TEXT.fullmatch(kind)):
        if cut == "deadline":
            raise timed_out(limits.seconds)
        too_much = cut.startswith("max_")
        raise too_large(limits.max_bytes) if too_much else bad_response(answer.url.host or url)
    return Fetched(url, url, answer.status, kind, charset, body, bool(cut), (), headers, cut)


async def _body(
    content: aiohttp.StreamReader, limits: FetchLimits, ends: float
) -> tuple[bytes, str]:
    """(the body as sent, why it is cut or "")."""
    body, pieces, cut = bytearray(), 0, ""
    try:
        async with asyncio.timeout_at(ends):
            while not cut and not content.at_eof():
                piece, _ = await content.readchunk()
                body += piece
                pieces += bool(piece)
                if len(body) > limits.max_bytes:
                    cut = "max_bytes"
                    del body[limits.max_bytes :]
                elif pieces == _MOST_PIECES:
                    cut = "max_pieces"
    except TimeoutError:
        cut = "deadline"
    except (aiohttp.ClientError, OSError):
        cut = "connection"
    return bytes(body), cut


def _unpacked(body: bytes, encoding: str, most: int) -> tuple[bytes, str]:
    """(the first `most` bytes of a packed body, why they are cut or "")."""
    try:
        if encoding == "br":
            brotli_stream = brotli.Decompressor()
            found = brotli_stream.process(body, output_buffer_limit=most + 1)
            whole = brotli_stream.is_finished()
        else:  # deflate comes with the header of zlib or without
            is_bare = encoding == "deflate" and body[:1] != b"x"
            found, whole = _inflated(body, -15 if is_bare else 47, most + 1)
    except (zlib.error, brotli.error):
        return b"", "encoding"
    if len(found) > most:
        return found[:most], "max_decoded"
    if encoding and found.startswith(_GZIP):  # packed twice
        return _unpacked(found, "", most)
    return found, "" if whole else "connection"


def _inflated(body: bytes, form: int, most: int) -> tuple[bytes, bool]:
    """(the first `most` bytes of a stream, or of all members of a gzip file; whether it ends)."""
    found, stream, members = bytearray(), zlib.decompressobj(form), 1
    for at in range(0, len(body), _PIECE):
        found += stream.decompress(body[at : at + _PIECE], most - len(found))
        while len(found) < most and (rest := stream.unused_data).startswith(_GZIP):
            stream, members = zlib.decompressobj(form), members + 1
            found += stream.decompress(rest, most - len(found))
            if members > _MOST_MEMBERS:
                raise zlib.error("too many members")
        if len(found) >= most:
            break
    return bytes(found), stream.eof


def refresh_of(page: Fetched, read: RefreshIn = refresh_in) -> str | None:
    """Returns the address to which `page` sends its readers on soon, as written; None without.

    `read` parses what the page says.
    """
    said = page.headers.get("refresh", "")
    head = page.body[:_HEAD] if "html" in page.content_type else b""
    is_named = all(word in head.lower() for word in (b"http-equiv", b"refresh"))
    if page.status != 200 or not (said or is_named):
        return None
    return read(head, page.charset, said)


def _kept(answer: aiohttp.ClientResponse) -> Mapping[str, str]:
    """The headers that readers use, by their lower-case names; lists in several lines as one."""
    found: dict[str, str] = {}
    for given, value in answer.headers.items():
        if (name := given.lower()) in _KEPT:
            before = f"{found[name]}, " if name in _LISTS and name in found else ""
            found[name] = before + _text(value)
    return MappingProxyType(found)


def _text(value: str) -> str:
    """A header as its sender meant it: UTF-8 where it is valid, else Latin-1."""
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8").strip()
    except UnicodeError:
        return raw.decode("latin-1").strip()
