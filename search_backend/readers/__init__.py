"""Readers turn a document into a page. One file each, found by name; none of them opens anything.

A module that reads one kind of document ends in `READER = Reader(...)`. Its `read` is pure: bytes,
the address and the charset of the HTTP header in, a `Page` out. All of these together are the
reader `local`.

A module for a service that fetches and reads pages elsewhere ends in `SERVICE = Service(...)`, with
two pure functions: one makes the request, one reads the answer. A service is told an address only
when the user has chosen it, and only an address that we would open ourselves.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from types import ModuleType

from search_backend.http_values import HttpRequest, HttpResponse
from search_backend.keys import Keys, Setting
from search_backend.readers._xml import kind_of
from search_backend.types import Page, Problem

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of document: its media types, the ends of file names, and how it is read."""

    types: frozenset[str]
    suffixes: frozenset[str]
    read: Callable[[bytes, str, str | None], Page]


@dataclass(frozen=True, slots=True)
class Service:
    """A reader elsewhere. `needs` are the settings it cannot work without, `settings` all that it
    reads.

    `request` is given an address that was checked, and raises EngineError(config) for settings it
    cannot use. `parse` gives the page, with status error for what the service says of the page;
    it raises EngineError for any answer that does not speak of the page at all.
    """

    name: str
    title: str
    request: Callable[[str, Keys], HttpRequest]
    parse: Callable[[HttpResponse, str, Keys], Page]
    needs: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()

    def missing(self, keys: Keys) -> tuple[str, ...]:
        """Names of the needed settings that have no value."""
        return tuple(name for name in self.needs if not keys.get(name))


@cache
def find_services() -> Mapping[str, Service]:
    """Every service by name, in the order of the names."""
    found = [getattr(module, "SERVICE", None) for module in _modules()]
    return {one.name: one for one in found if isinstance(one, Service)}


@cache
def find_readers() -> tuple[Reader, ...]:
    """Every reader of this package, in the order of the file names."""
    found = [getattr(module, "READER", None) for module in _modules()]
    return tuple(one for one in found if isinstance(one, Reader))


def _modules() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{n}") for n in names if not n.startswith("_")]


def reader_for_name(name: str) -> Reader | None:
    """The reader for a file of this name."""
    suffix = PurePosixPath(name).suffix.lower()
    return next((reader for reader in find_readers() if suffix in reader.suffixes), None)


def read(body: bytes, *, url: str, content_type: str, charset: str | None = None) -> Page:
    """The page in `body`. A kind that cannot be read gives a page with status error."""
    kind = _kind(body, content_type)
    reader = next((reader for reader in find_readers() if kind in reader.types), None)
    if reader is None:
        problem = Problem(
            "unsupported_type",
            f"This is not a page with text but {kind or 'data of an unknown kind'}.",
            "Look for the same content as a web page or a text file.",
        )
        return Page(url=url, final_url=url, title="", text="", status="error", error=problem)
    return reader.read(body, url, charset)


def _kind(body: bytes, content_type: str) -> str:
    """The media type, judged by the first bytes where the header is silent or too general."""
    kind = content_type.partition(";")[0].strip().lower()
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if kind.endswith("+json"):
        return "application/json"
    # A picture is none whose parts are words: most of its text is not on view.
    other = ("application/xhtml+xml", "image/svg+xml")
    if kind in ("text/xml", "application/xml") or (kind.endswith("+xml") and kind not in other):
        return kind_of(body)
    if kind not in ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown"):
        return kind
    start = head[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html"
    if body and b"\0" not in body[:4096]:
        return "text/plain"
    return kind
