"""The answer of a web server as a value, read within limits that no server can exceed.

aiohttp speaks HTTP. Each request has a connection of its own, so what a server appends to an answer
is never taken for another one.

Spec: https://html.spec.whatwg.org/multipage/semantics.html (declarative refresh)
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from types import MappingProxyType
from urllib.parse import urljoin

import aiohttp
from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.fetch import NAMES
from searchloop.search_backend.text.clean import decode
from searchloop.search_backend.types import FetchFailed, bad_response, timed_out, too_large

_ACCEPT = "text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1"
# Security policies of some sites are longer than the 8 KiB that aiohttp takes by default.
MOST_HEADER = 64 * 1024
# Chunks of one byte cost work and carry nothing; honest bodies have thousands of pieces.
_MOST_PIECES = 100_000
_KEPT = NAMES["kept_headers"]
_LISTS = frozenset({"cache-control", "content-encoding", "vary"})
_ENCODINGS = re.compile(f"|{'|'.join(NAMES['encodings'])}")
_GZIP = b"\x1f\x8b"
# Seconds before a refresh that is still followed, and the words of a page that is read instead.
_LONGEST_DELAY = 15
_MANY_WORDS = 60
_HEAD = 64 * 1024
_DELAYED = re.compile(
    r"\s*([0-9]{1,3})(?:\.[0-9.]*)?\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|([^\"'].*))",
    re.IGNORECASE | re.DOTALL,
)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,100})\s*(?:;|,|$)", re.I)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9][a-z0-9._:+-]{0,39})", re.IGNORECASE)
_RANGE = re.compile(r"bytes[ =]0-([0-9]{1,18})/([0-9]{1,18})", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Known:
    """A page read before: its final address, and the headers that ask whether it has changed."""

    url: str
    conditions: Mapping[str, str]


@cache
def request_headers() -> Mapping[str, str]:
    """The same for every page and every user, whatever other packages are installed."""
    try:
        version = metadata.version("searchloop")
    except metadata.PackageNotFoundError:
        version = "0"
    agent = f"searchloop/{version} (+local)"
    return {"User-Agent": agent, "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate, br"}


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
    if body.startswith(_GZIP):  # a server that does not say so
        body, cut = _unzipped(body, cut, limits.max_decoded)
    elif encoding == "br" and not body and answer.status == 200:
        cut = cut or "encoding"  # its decoder does not tell that a stream is broken
    cut = cut or ("partial" if _is_part(answer) else "")
    if cut and not (body and _TEXT.fullmatch(kind)):
        if cut == "deadline":
            raise timed_out(limits.seconds)
        too_much = cut.startswith("max_")
        raise too_large(limits.max_bytes) if too_much else bad_response(answer.url.host or url)
    return Fetched(url, url, answer.status, kind, charset, body, bool(cut), (), headers, cut)


async def _body(
    content: aiohttp.StreamReader, limits: FetchLimits, ends: float
) -> tuple[bytes, str]:
    """(the decompressed body, why it is cut or "")."""
    body, pieces, cut = bytearray(), 0, ""
    try:
        async with asyncio.timeout_at(ends):
            while not cut and not content.at_eof():
                piece, _ = await content.readchunk()
                body += piece
                pieces += bool(piece)
                packed = content.total_compressed_bytes or 0
                most = limits.max_decoded if packed else limits.max_bytes
                if len(body) > most:
                    cut = "max_decoded" if packed else "max_bytes"
                    del body[most:]
                elif packed > limits.max_bytes:
                    cut = "max_bytes"
                elif pieces == _MOST_PIECES:
                    cut = "max_pieces"
    except TimeoutError:
        cut = "deadline"
    except (aiohttp.ClientError, OSError) as error:
        cut = "encoding" if "encoding" in str(error.__cause__) else "connection"
    return bytes(body), cut


def _unzipped(body: bytes, cut: str, most: int) -> tuple[bytes, str]:
    """(the first `most` bytes of a gzip file, why they are cut or "")."""
    stream = zlib.decompressobj(31)
    try:
        text = stream.decompress(body, most)
    except zlib.error:
        return b"", "encoding"
    return text, cut or (
        "" if stream.eof else "max_decoded" if stream.unconsumed_tail else "encoding"
    )


def refresh_of(page: Fetched) -> str | None:
    """Returns the address to which `page` sends its readers on soon, as written; None without.

    A page with text of its own is left only at once, and not for what is in its `noscript`.
    """
    said = [page.headers.get("refresh", "")]
    head = page.body[:_HEAD] if "html" in page.content_type else b""
    if page.status != 200 or not (said[0] or b"refresh" in head.lower()):
        return None
    tree = LexborHTMLParser(decode(head, page.charset))
    tags = 'meta[http-equiv="refresh" i][content]'
    said += [tag.attributes["content"] or "" for tag in tree.css(f"{tags}:not(noscript *)")]
    unscripted = [tag.attributes["content"] or "" for tag in tree.css(f"noscript {tags}")]
    for node in tree.css("script,style,noscript,template"):
        node.decompose()
    words = (tree.body.text(separator=" ") if tree.body else "").split(None, _MANY_WORDS)
    alone = len(words) < _MANY_WORDS
    found = (_soon(text, _LONGEST_DELAY if alone else 1) for text in said + unscripted * alone)
    start = next((node.attributes["href"] or "" for node in tree.css("base[href]")), "")
    return next((urljoin(start, url) for url in found if url), None)


def _soon(text: str, most: int) -> str | None:
    """Returns the web address in the text of a refresh after at most so many seconds."""
    found = _DELAYED.match(text)
    url = (found[2] or found[3] or found[4] or "").strip() if found else ""
    other = re.match(r"(?!https?:)[a-z][a-z0-9+.-]*:", url, re.IGNORECASE)
    return None if found is None or int(found[1]) > most or other else url


def _is_part(answer: aiohttp.ClientResponse) -> bool:
    """True for a part of the page, though all was asked for (RFC 9110 15.3.7); some servers send
    the whole page as one part."""
    said = [_RANGE.fullmatch(value) for value in answer.headers.getall("content-range", ())]
    whole = len(said) == 1 and said[0] is not None and int(said[0][1]) + 1 == int(said[0][2])
    return answer.status == 206 and not whole


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
