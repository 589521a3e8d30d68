"""The library: local documents, found by full text and kept up to date.

Four kinds of roots: this project's own documents (collection "docs"; inside an installed package,
or where a checkout has them), folders and files that the user adds, and opened pages (collection
"pages", bounded, the oldest removed first). Adding again reads only what changed. Documents have
addresses library://COLLECTION/PATH, which are opened from the index, never from a disk or network.

Others may import: index.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag

from searchloop.search_backend.cache.chats import TABLES, mark, unmark
from searchloop.search_backend.library.index import Document, Hit, Index, Root, drop, put
from searchloop.search_backend.readers import Reader, read, reader_for_name
from searchloop.search_backend.text.passages import section_offset, split, title_of
from searchloop.search_backend.types import Page, SearchBackendError

SCHEME = "library://"
DOCS, PAGES = "docs", "pages"
MOST_BYTES = 10 * 2**20
MOST_PAGES = 2_000
LONGEST_PAGE = 200_000
_KNOWN = "SELECT path, id, mtime, size, digest FROM documents WHERE root = ?"

Progress = Callable[[str, str], None]


def builtin_documents() -> Mapping[str, str]:
    """Returns Markdown text by path, for example README.md or search-switch.md (from docs/)."""
    packed = files("searchloop.search_backend") / "builtin_docs"
    if packed.is_dir():
        return dict(_documents(packed))
    checkout = Path(__file__).resolve().parents[2]
    # Next to an installed package lie other people's files, not our README.
    return dict(_documents(checkout)) if (checkout / "pyproject.toml").is_file() else {}


def _documents(root: Traversable) -> Iterator[tuple[str, str]]:
    for name in ("README.md", "CHANGELOG.md"):
        if (root / name).is_file():
            yield name, (root / name).read_text("utf-8")
    docs = root / "docs"
    if docs.is_dir():
        for entry in sorted(docs.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".md"):
                yield entry.name, entry.read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a folder; `skipped` is the reason if it cannot be read."""

    path: str
    file: Path
    skipped: str = ""


def walk(root: Path) -> Iterator[Found]:
    """Yields every file below `root` (or `root` itself), sorted, without following links."""
    if root.is_file():
        yield Found(root.name, root, _reason(root, named=True))
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            yield Found(file.relative_to(root).as_posix(), file, _reason(file))


def load(found: Found, body: bytes) -> Page:
    """Returns the file as text. Raises SearchBackendError(code "unreadable")."""
    if b"\0" in body[:8192] and not body.startswith(b"%PDF-"):
        raise SearchBackendError("unreadable", "a binary file")
    reader: Reader | None = reader_for_name(found.file.name)
    content_type = sorted(reader.types)[0] if reader else "text/plain"
    page = read(body, url=found.file.as_uri(), content_type=content_type)
    if page.error is not None and page.status == "error":
        raise SearchBackendError("unreadable", page.error.message, page.error.remedy)
    if not page.text.strip():
        raise SearchBackendError("unreadable", "no text in it")
    return page


def _reason(file: Path, *, named: bool = False) -> str:
    if file.is_symlink() and not named:
        return "a symbolic link"
    if file.name.startswith(".") and not named:
        return "a hidden file"
    if not named and reader_for_name(file.name) is None:
        return "not a kind of file that is read"
    try:
        size = file.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"larger than {MOST_BYTES // 2**20} MB" if size > MOST_BYTES else ""


@dataclass(frozen=True, slots=True)
class Added:
    """The counts of an `add`; `skipped` pairs paths with reasons."""

    collection: str
    added: int
    updated: int
    unchanged: int
    removed: int
    skipped: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A root of the library; `updated` in seconds since the epoch."""

    name: str
    path: str
    kind: str
    documents: int
    updated: float


class Library:
    """The index in `home`; the first use adds our own documents."""

    def __init__(
        self,
        home: Path,
        documents: Callable[[], Mapping[str, str]] = builtin_documents,
        most_pages: int = MOST_PAGES,
    ) -> None:
        self._index = Index(home / "library.sqlite3")
        self._documents = documents
        self._most_pages = most_pages
        self._lock = threading.Lock()
        self._ready = False

    def search(self, text: str, limit: int) -> list[Hit]:
        """Returns the best passages for a question in plain words."""
        self._refresh()
        return self._index.search(text, limit)

    def open(self, url: str) -> Page | None:
        """Returns the document at a library:// address or the address of a page opened before."""
        document = self._document(url)
        if document is None:
            return None
        return Page(url=url, final_url=document.url, title=document.title, text=document.text)

    def age(self, url: str) -> float:
        """Returns the seconds since the page at this address was stored or found unchanged."""
        document = self._document(url)
        return max(0.0, time.time() - document.added) if document else 0.0

    def _document(self, url: str) -> Document | None:
        self._refresh()
        bare = urldefrag(url).url
        document = self._index.document(bare)
        if document is None and bare.startswith(SCHEME):
            # People type blanks and letters that are quoted in the stored address.
            document = self._index.document(SCHEME + quote(unquote(bare.removeprefix(SCHEME))))
        return document

    def section(self, page: Page) -> int:
        """Returns the offset of the section named by the fragment of `page.url`, else 0."""
        anchor = unquote(urldefrag(page.url).fragment)
        return (section_offset(page.text, anchor) or 0) if anchor else 0

    def add(self, path: Path, progress: Progress | None = None) -> Added:
        """Indexes a folder or file, or brings it up to date.

        Calls `progress(path, outcome)` for each file: added, updated, unchanged, removed, skipped.
        Raises SearchBackendError if `path` does not exist or the index cannot be written.
        """
        report = progress or (lambda path, outcome: None)
        target = path.expanduser().resolve()
        if not target.exists():
            raise SearchBackendError(
                "not_found", f"There is no file or folder {target}.", "Check the path."
            )
        root = self._root_for(target)
        with self._index.open() as connection:
            known = {row[0]: row[1:] for row in connection.execute(_KNOWN, (root.id,))}
        tally = {"added": 0, "updated": 0, "unchanged": 0, "removed": 0}
        skipped: list[tuple[str, str]] = []
        # While one connection stays open, closing another one does not tidy up the file each time.
        with self._index.open():
            for found in walk(target):
                outcome = found.skipped or self._add_file(root, found, known.get(found.path))
                if outcome in tally:
                    tally[outcome] += 1
                    known.pop(found.path, None)
                else:
                    skipped.append((found.path, outcome))
                    outcome = f"skipped: {outcome}"
                report(found.path, outcome)
        with self._index.open(write=True) as connection:
            for gone, row in known.items():
                drop(connection, row[0])
                tally["removed"] += 1
                report(gone, "removed")
            connection.execute("UPDATE roots SET updated = ? WHERE id = ?", (time.time(), root.id))
        return Added(root.collection, **tally, skipped=tuple(skipped))

    def list(self) -> list[Collection]:
        """Returns every root with the number of its documents."""
        self._refresh()
        with self._index.open() as connection:
            rows = connection.execute(
                "SELECT r.collection, r.path, r.kind, count(d.id), r.updated FROM roots r "
                "LEFT JOIN documents d ON d.root = r.id GROUP BY r.id ORDER BY r.id"
            ).fetchall()
        return [Collection(*row) for row in rows]

    def remove(self, path: Path | str) -> int:
        """Removes the root with this path or collection name; returns its number of documents."""
        with self._index.open(write=True) as connection:
            row = connection.execute(
                "SELECT id FROM roots WHERE (path = ? OR collection = ?) AND kind != 'docs'",
                (str(Path(path).expanduser().resolve()), str(path)),
            ).fetchone()
            if row is None and str(path) == DOCS:
                raise SearchBackendError(
                    "built_in",
                    "These are searchloop's own documents, which are always in the library.",
                    "Name a folder or file that you added.",
                )
            if row is None:
                raise SearchBackendError(
                    "not_found",
                    f"{path} is not in the library.",
                    "Give a folder or file as the list of the library names it.",
                )
            count = _drop_documents(connection, row[0])
            connection.execute("DELETE FROM roots WHERE id = ?", row)
        return count

    def remember(self, page: Page, chat: str, age: float = 0.0) -> None:
        """Stores a page that a chat opened, so that a search finds it without a network.

        It was fetched `age` seconds ago. Nothing is stored for a chat that was forgotten.
        """
        self._refresh()
        text = page.text[:LONGEST_PAGE]
        document = Document(page.final_url, page.final_url, page.title, text, digest=_digest(text))
        with self._index.open(write=True) as connection:
            if not mark(connection, document.url, chat):
                return
            same = connection.execute(
                "UPDATE documents SET added = max(added, ?) WHERE url = ? AND digest = ?",
                (time.time() - age, document.url, document.digest),
            ).rowcount
        if same:
            return
        passages = list(split(text))
        with self._index.open(write=True) as connection:
            if not mark(connection, document.url, chat):
                return
            root = _ensure_root(connection, PAGES, PAGES, "pages")
            put(connection, root.id, document, passages)
            fetched = (time.time() - age, document.url)
            connection.execute("UPDATE documents SET added = ? WHERE url = ?", fetched)
            for (old,) in connection.execute(
                "SELECT id FROM documents WHERE root = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
                (root.id, self._most_pages),
            ).fetchall():
                drop(connection, old)

    def forget(self, chat: str) -> int:
        """Removes the pages that only this chat opened; returns their number."""
        self._refresh()
        with self._index.open(write=True) as connection:
            count = _drop_pages(connection, unmark(connection, chat))
        self._index.leave_nothing()
        return count

    def _add_file(self, root: Root, found: Found, known: tuple[int, int, int, str] | None) -> str:
        try:
            stat = found.file.stat()
            if known and known[1:3] == (stat.st_mtime_ns, stat.st_size):
                return "unchanged"
            body = found.file.read_bytes()
            digest = hashlib.sha256(body).hexdigest()
            if known and known[3] == digest:
                with self._index.open(write=True) as connection:
                    connection.execute(
                        "UPDATE documents SET mtime = ? WHERE id = ?", (stat.st_mtime_ns, known[0])
                    )
                return "unchanged"
            page = load(found, body)
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        except SearchBackendError as error:
            return error.message
        title = page.title or title_of(page.text, found.file.stem)
        url = f"{SCHEME}{root.collection}/{quote(found.path)}"
        document = Document(
            found.path, url, title, page.text, stat.st_mtime_ns, stat.st_size, digest
        )
        passages = list(split(page.text))
        with self._index.open(write=True) as connection:
            put(connection, root.id, document, passages)
        return "updated" if known else "added"

    def _root_for(self, target: Path) -> Root:
        self._refresh()
        base = target if target.is_dir() else target.parent
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", base.name).strip("-.") or "files"
        kind = "folder" if target.is_dir() else "file"
        with self._index.open(write=True) as connection:
            return _ensure_root(connection, name, str(target), kind)

    def _refresh(self) -> None:
        """Adds our own documents once a process, if they are new or have changed."""
        with self._lock:
            if self._ready:
                return
            documents = self._documents()
            digest = _digest("\0".join(f"{path}\0{text}" for path, text in documents.items()))
            with self._index.open() as connection:
                row = connection.execute(
                    "SELECT digest FROM roots WHERE collection = ?", (DOCS,)
                ).fetchone()
            if row is None or row[0] != digest:
                with self._index.open(write=True) as connection:
                    _replace_docs(connection, documents, digest)
            with self._index.open(write=True) as connection:
                for statement in TABLES:
                    connection.execute(statement)
                # Pages of versions that did not note who opened them.
                unknown = [row[0] for row in connection.execute(_UNKNOWN)]
                gone = _drop_pages(connection, unknown)
            if gone:
                self._index.leave_nothing()
            self._ready = True


_UNKNOWN = """SELECT d.url FROM documents d JOIN roots r ON r.id = d.root
    WHERE r.kind = 'pages' AND d.url NOT IN (SELECT item FROM chats)"""


def _drop_pages(connection: sqlite3.Connection, urls: list[str]) -> int:
    query = """SELECT d.id FROM documents d JOIN roots r ON r.id = d.root
        WHERE r.kind = 'pages' AND d.url = ?"""
    found = [row for url in urls for row in connection.execute(query, (url,)).fetchall()]
    for (number,) in found:
        drop(connection, number)
    return len(found)


def _replace_docs(
    connection: sqlite3.Connection, documents: Mapping[str, str], digest: str
) -> None:
    root = _ensure_root(connection, DOCS, DOCS, "docs")
    _drop_documents(connection, root.id)
    for path, text in documents.items():
        url = f"{SCHEME}{DOCS}/{quote(path)}"
        document = Document(path, url, title_of(text, path), text)
        put(connection, root.id, document, list(split(text)))
    connection.execute(
        "UPDATE roots SET digest = ?, updated = ? WHERE id = ?", (digest, time.time(), root.id)
    )


def _drop_documents(connection: sqlite3.Connection, root: int) -> int:
    select = "SELECT id FROM documents WHERE root = ?"
    numbers = connection.execute(select, (root,)).fetchall()
    for (number,) in numbers:
        drop(connection, number)
    return len(numbers)


def _ensure_root(connection: sqlite3.Connection, name: str, path: str, kind: str) -> Root:
    found = connection.execute(
        "SELECT id, collection, path, kind, digest FROM roots WHERE path = ?", (path,)
    ).fetchone()
    if found:
        return Root(*found)
    taken = {row[0] for row in connection.execute("SELECT collection FROM roots")}
    if kind in ("folder", "file"):
        taken |= {DOCS, PAGES}
    unique = next(
        one for n in range(len(taken) + 1) if (one := f"{name}-{n + 1}" if n else name) not in taken
    )
    number = connection.execute(
        "INSERT INTO roots (collection, path, kind) VALUES (?, ?, ?)", (unique, path, kind)
    ).lastrowid
    assert number is not None
    return Root(number, unique, path, kind, "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
