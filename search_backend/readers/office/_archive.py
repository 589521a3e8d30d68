"""Archives of XML documents (DOCX, PPTX, ODT, EPUB), opened within bounds.

An archive says how large its parts are once unpacked, and `zipfile` unpacks no more than it says.
XML is parsed as a stream; documents that declare entities are refused.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import NamedTuple
from xml.parsers import expat

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.whole import file_name, whole_page
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page, Problem, failed_page

MOST_PARTS = 10_000
MOST_UNPACKED = 48 * 2**20  # bytes of one part
MOST_MARKUP = 4_000_000  # characters
_PIECE = 64 * 1024
_ENCRYPTED = 1

Start = Callable[[str, Mapping[str, str]], None]


class UnreadableDocument(Exception):
    """A document that is not read; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Handlers(NamedTuple):
    """What is done with the tags (by their local names) and the text of an XML document."""

    start: Start
    end: Callable[[str], None] = lambda name: None
    text: Callable[[str], None] = lambda text: None


class Written:
    """What a document shows, as HTML."""

    def __init__(self) -> None:
        self.markup: list[str] = []
        self._skip = 0  # tags that are open inside one that is left out
        self._length = 0

    def escaped(self, words: str) -> str:
        """Returns text as HTML. Raises UnreadableDocument if the document has too much."""
        self._length += len(words)
        if self._length > MOST_MARKUP:
            raise UnreadableDocument(TOO_LARGE)
        return escape(words, quote=False)


class Archive:
    """The parts of a ZIP archive, by name."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._left = 2 * MOST_UNPACKED

    def __contains__(self, name: str) -> bool:
        return name in self._file.NameToInfo

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yields a part, unpacked. Raises UnreadableDocument if it is missing or too large."""
        if name not in self:
            raise UnreadableDocument(BROKEN)
        entry = self._file.getinfo(name)
        if entry.flag_bits & _ENCRYPTED:
            raise UnreadableDocument(LOCKED)
        self._left -= entry.file_size
        if entry.file_size > MOST_UNPACKED or self._left < 0:
            raise UnreadableDocument(TOO_LARGE)
        with self._file.open(entry) as part:
            while piece := part.read(_PIECE):
                yield piece

    def read(self, name: str) -> bytes:
        """Returns a part, unpacked."""
        return b"".join(self.pieces(name))

    def parse(self, name: str, handlers: Handlers) -> None:
        """Calls the handlers for what is in an XML part."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True

        def start(tag: str, attributes: dict[str, str]) -> None:
            local = {name.rpartition(" ")[2]: value for name, value in attributes.items()}
            handlers.start(tag.rpartition(" ")[2], local)

        def refuse(*_: object) -> None:
            raise UnreadableDocument(BROKEN)

        parser.StartElementHandler = start
        parser.EndElementHandler = lambda tag: handlers.end(tag.rpartition(" ")[2])
        parser.CharacterDataHandler = handlers.text
        parser.EntityDeclHandler = refuse
        for piece in self.pieces(name):
            parser.Parse(piece)
        parser.Parse(b"", True)

    def texts(self, name: str) -> dict[str, str]:
        """Returns the text inside each tag of a small XML part; {} if there is no such part."""
        found: dict[str, str] = {}
        inside: list[str] = []

        def text(words: str) -> None:
            if inside:
                found[inside[-1]] = found.get(inside[-1], "") + words

        if name in self:
            leave = Handlers(lambda tag, _: inside.append(tag), lambda _: inside.__delitem__(-1))
            self.parse(name, leave._replace(text=text))
        return found


@contextmanager
def _opened(body: bytes) -> Iterator[Archive]:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as file:
            if len(file.filelist) > MOST_PARTS:
                raise UnreadableDocument(TOO_LARGE)
            yield Archive(file)
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, expat.ExpatError),
        *(EOFError, OSError, KeyError, NotImplementedError, UnicodeError, ValueError, IndexError),
    ) as error:
        raise UnreadableDocument(BROKEN) from error


def document(body: bytes, url: str, markup_of: Callable[[Archive], tuple[str, str]]) -> Page:
    """Returns the page of an archive; `markup_of` returns its title and what it shows as HTML."""
    try:
        with _opened(body) as archive:
            title, markup = markup_of(archive)
    except UnreadableDocument as error:
        return failed_page(url, error.problem)
    page = whole_page(markup, url, title)
    if not page.text.strip():
        return failed_page(url, NO_TEXT)
    if not page.title:
        page = whole_page(markup, url, title_of(page.text, file_name(url)))
    return page


def archive_reader(
    markup_of: Callable[[Archive], tuple[str, str]], kind: str, suffixes: str, *known: bytes
) -> Reader:
    """Returns the reader of archives that have all of `known` in their bytes."""

    def read(body: bytes, url: str, _charset: str | None) -> Page:
        return document(body, url, markup_of)

    def knows(body: bytes) -> bool:
        return body.startswith(b"PK\x03\x04") and all(part in body for part in known)

    return Reader(frozenset({kind}), frozenset(suffixes.split()), read, knows)


def related(archive: Archive, part: str) -> dict[str, tuple[str, str]]:
    """Returns what a part of an Office document names, by id: what each is, and the name of that
    part; what lies elsewhere is external, with its address."""
    folder, name = posixpath.split(part)
    found: dict[str, tuple[str, str]] = {}

    def start(tag: str, its: Mapping[str, str]) -> None:
        target, kind = its.get("Target", ""), its.get("Type", "").rpartition("/")[2]
        if its.get("TargetMode") == "External":
            found[its.get("Id", "")] = "external", target
        elif tag == "Relationship":
            path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            found[its.get("Id", "")] = kind, posixpath.normpath(path)

    if (links := posixpath.join(folder, f"_rels/{name}.rels")) in archive:
        archive.parse(links, Handlers(start))
    return found


BROKEN = Problem("bad_document", "This document is damaged.", "Look for another copy of it.")
LOCKED = Problem(
    "bad_document", "This document needs a password.", "Save a copy of it without a password."
)
TOO_LARGE = Problem(
    "too_large",
    f"Unpacked, this document is larger than {MOST_UNPACKED // 2**20} MB.",
    "Save the part that matters as a document of its own.",
)
NO_TEXT = Problem("no_text", "This document holds no text.", "Look for a version with text.")
