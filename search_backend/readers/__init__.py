"""Readers turn the bytes of one kind of document into a page. One file each, found by name.

A reader module ends in `READER = Reader(...)`. Its `read` is pure: bytes, the address and the
charset of the HTTP header in, a `Page` out. It never opens anything.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from search_backend.types import Page, Problem


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of document: its media types, the ends of file names, and how it is read."""

    types: frozenset[str]
    suffixes: frozenset[str]
    read: Callable[[bytes, str, str | None], Page]


@cache
def find_readers() -> tuple[Reader, ...]:
    """Every reader of this package, in the order of the file names."""
    found = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if module.name.startswith("_"):
            continue
        reader = getattr(importlib.import_module(f"{__name__}.{module.name}"), "READER", None)
        if isinstance(reader, Reader):
            found.append(reader)
    return tuple(found)


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
    if kind.endswith("+xml") and kind != "application/xhtml+xml":
        return "application/xml"
    if kind not in ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown"):
        return kind
    start = head[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html"
    if body and b"\0" not in body[:4096]:
        return "text/plain"
    return kind
