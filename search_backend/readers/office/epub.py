"""E-books: the chapters in the order of the book. Spec: https://www.w3.org/TR/epub-33/"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import unquote

from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers.office._archive import (
    LOCKED,
    MOST_MARKUP,
    Archive,
    Handlers,
    UnreadableDocument,
    archive_reader,
)
from searchloop.search_backend.text.clean import binary_share, decode

_CONTAINER = "META-INF/container.xml"
_LOCKS = ("META-INF/rights.xml", "META-INF/encryption.xml")


def _markup(archive: Archive) -> tuple[str, str]:
    packages: list[str] = []

    def root(tag: str, its: Mapping[str, str]) -> None:
        if tag == "rootfile":
            packages.append(its.get("full-path", ""))

    archive.parse(_CONTAINER, Handlers(root))
    package = packages[0]
    chapters: list[str] = []
    length = 0
    for name in _chapters(archive, package):
        if name not in archive or length > MOST_MARKUP:
            continue
        body = archive.read(name)
        if not binary_share(body):
            chapters.append(_body(decode(body)))
            length += len(chapters[-1])
    if not chapters and any(lock in archive for lock in _LOCKS):  # of fonts alone, it locks no book
        raise UnreadableDocument(LOCKED)
    return archive.texts(package).get("title", ""), "\n".join(chapters)


def _chapters(archive: Archive, package: str) -> list[str]:
    """Returns the names of the chapters in their order."""
    files: dict[str, str] = {}
    order: list[str] = []

    def start(tag: str, its: Mapping[str, str]) -> None:
        if tag == "item":
            path = posixpath.join(posixpath.dirname(package), unquote(its.get("href", "")))
            files[its.get("id", "")] = posixpath.normpath(path)
        elif tag == "itemref":
            order.append(its.get("idref", ""))

    archive.parse(package, Handlers(start))
    return [files[one] for one in dict.fromkeys(order) if one in files]


def _body(markup: str) -> str:
    tree, _ = parsed(markup)
    return (tree.body.html or "") if tree.body is not None else ""


READER = archive_reader(_markup, "application/epub+zip", ".epub", _CONTAINER.encode())
