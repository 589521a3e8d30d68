"""Readers turn a document into a page: one file each, found by name; none of them sends anything.

A module for one kind of document ends in `READER = Reader(...)`, whose pure `read` takes bytes, the
address and the charset of the HTTP header and returns a `Page`. Together they are the reader
`local`; those of `office` share what opens archives. A module of `services` is for a service that
fetches and reads pages elsewhere and ends in `SERVICE = Service(...)`, with two pure functions: one
makes the request, one reads the answer. A service gets an address only if the user has chosen it
and we would open the address ourselves.

Others may import: _served, html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from searchloop.analysis.plugins import Plugin
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting
from searchloop.search_backend.plugin.entry_points import find_parts, own_parts
from searchloop.search_backend.text.clean import binary_share
from searchloop.search_backend.types import Page, Problem, failed_page

LOCAL = "local"
# XML in pieces, however broken. Each alternative takes a character and never backtracks.
XML_PIECE = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)|<[?!][^>]*>?"
    r"|<(?P<end>/?)(?>(?:[\w.-]++:)?)(?P<name>[A-Za-z_][\w.-]*+)(?P<rest>[^<>]*+)>|(?P<text><?[^<]*+)",
    re.DOTALL,
)
_HEAD = 64 * 1024
_is_unknown = re.compile(
    r"(?:application|binary)/octet-stream|(?:application|unknown)/unknown|\*/\*|"
).fullmatch
# What stands for a page in a document of an unknown kind (MIME Sniffing 7.1).
_MARKUP = re.compile(
    rb"<!--|<(?:!doctype html|a|b|body|br|div|font|h1|head|html|iframe|p|script|style|table|title)"
    rb"[\s>]",
    re.IGNORECASE,
)
# HTML with more control characters than this share is none.
_MOST_BINARY = 0.04
_CONTAINERS = {
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Office file, or one with a password",
    b"PK\x03\x04": "an archive or a damaged document",
}
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")  # the stream of an Office file so protected
_KINDS = {"html": "application/xhtml+xml"} | dict.fromkeys(
    ("rss", "feed", "rdf"), "application/rss+xml"
)


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one kind of document, with its media types and suffixes of file names.

    `knows` tells this kind by its bytes, whatever a server or the name of a file says.

        READER = Reader(frozenset({"text/x-nest"}), frozenset({".nest"}), read)
    """

    types: frozenset[str]
    suffixes: frozenset[str]
    read: Callable[[bytes, str, str | None], Page]
    knows: Callable[[bytes], bool] | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A reader elsewhere. `needs` are the required settings, `settings` all that it reads.

    `request` takes a checked address and raises EngineError(config) for unusable settings. `parse`
    returns the page, with status error if the service reports that the page failed; it raises
    EngineError for any other failure.
    """

    name: str
    title: str
    request: Callable[[str, Keys], HttpRequest]
    parse: Callable[[HttpResponse, str, Keys], Page]
    needs: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()

    def missing(self, keys: Keys) -> tuple[str, ...]:
        """Returns the names of required settings without a value."""
        return tuple(name for name in self.needs if not keys.get(name))


def _own_services() -> list[Service]:
    return own_parts(f"{__name__}.services", "SERVICE", Service)


@cache
def find_services() -> Mapping[str, Service]:
    """Returns every service, those of plugins included, by name, sorted."""
    found = [part.value for part in reader_plugins() if isinstance(part.value, Service)]
    found += _own_services()
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


@cache
def find_readers() -> tuple[Reader, ...]:
    """Returns every reader, ours first, sorted by file name."""
    office = own_parts(f"{__name__}.office", "READER", Reader)
    return (*own_parts(__name__, "READER", Reader), *office, *brought_readers())


@cache
def brought_readers() -> tuple[Reader, ...]:
    """Returns the readers of other packages, whose code belongs into a process that may be
    killed."""
    return tuple(part.value for part in reader_plugins() if isinstance(part.value, Reader))


def reader_plugins() -> tuple[Plugin, ...]:
    """Returns what other packages bring as readers and services, broken ones included."""
    taken = frozenset(one.name for one in _own_services()) | {LOCAL}
    return find_parts("readers", (Reader, Service), ("READER", "SERVICE"), taken)


def reader_for_name(name: str) -> Reader | None:
    """Returns the reader for a file of this name; None if there is none."""
    suffix = PurePosixPath(name).suffix.lower()
    return next((reader for reader in find_readers() if suffix in reader.suffixes), None)


def read(body: bytes, *, url: str, content_type: str, charset: str | None = None) -> Page:
    """Returns the page in `body`; status error for a kind that no reader reads."""
    kind = kind_of(body, content_type, charset)
    reader = next((reader for reader in find_readers() if kind in reader.types), None)
    if reader is None:
        problem = Problem(
            "unsupported_type",
            f"This is not a page with text but {kind}.",
            "Look for the same content as a web page or a text file.",
        )
        return failed_page(url, problem)
    return reader.read(body, url, charset)


def container_of(body: bytes) -> str:
    """Returns what kind of archive the bytes are, and whether it has a password, or ""."""
    if body.startswith(b"PK\x03\x04") and body[6:7] and body[6] & 1:
        return "an archive with a password"
    if body.startswith(b"\xd0\xcf\x11\xe0") and _ENCRYPTED in body:
        return "an Office file with a password"
    return next((what for magic, what in _CONTAINERS.items() if body.startswith(magic)), "")


def kind_of(body: bytes, content_type: str, charset: str | None = None) -> str:
    """Returns the media type of a reader, or what the document is instead.

    The header tells a page from its source text, the bytes tell text from other data. Servers have
    hundreds of types for text.
    """
    kind = content_type.partition(";")[0].strip().lower()
    for reader in find_readers():
        if reader.knows and reader.knows(body):
            return min(reader.types)
        if kind in reader.types and reader.knows:  # it is something else
            kind = ""
    if what := container_of(body):
        return what
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    binary, is_page = binary_share(body, charset), kind in ("text/html", "application/xhtml+xml")
    if kind == "video/mp2t" and not binary:  # program text in .ts, for servers that know only films
        return "text/plain"
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return kind
    if binary > (_MOST_BINARY if is_page else 0):
        return f"binary data sent as {kind or 'no type'}"
    if _is_unknown(kind) and _MARKUP.match(head):
        return "text/html"
    is_xml = kind in ("text/xml", "application/xml") or (kind.endswith("+xml") and not is_page)
    if is_xml or (_is_unknown(kind) and head.startswith(b"<?xml")):
        return _xml_kind(body)
    known = any(kind in reader.types for reader in find_readers())
    return kind if is_page or known else "text/plain"


def _xml_kind(body: bytes) -> str:
    """Returns the media type by the first tag; text/plain if that has no reader of its own."""
    head = body[:_HEAD].replace(b"\0", b"").decode("latin-1")
    first = next((found["name"].lower() for found in XML_PIECE.finditer(head) if found["name"]), "")
    return _KINDS.get(first, "text/plain")
