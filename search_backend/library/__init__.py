"""The library: local documents, found by full text and kept up to date.

Four kinds of roots: this project's own documents (collection "docs"; inside an installed package,
or where a checkout has them), folders and files that the user adds, and opened pages (collection
"pages", bounded, the oldest removed first). Adding again reads only what changed. Documents have
addresses library://COLLECTION/PATH, which are opened from the index, never from a disk or network.

Others may import: file_text, roots.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag

from searchloop.search_backend.library.chats import mark, unmark
from searchloop.search_backend.library.file_text import ReadPage
from searchloop.search_backend.library.finding import Hit, named, search
from searchloop.search_backend.library.folders import check_patterns
from searchloop.search_backend.library.index import Document, Index, Root, drop, no_room, put
from searchloop.search_backend.library.roots import (
    DOCS,
    PAGES,
    SCHEME,
    drop_documents,
    drop_pages,
    ensure_root,
    folders_around,
    named_root,
    note,
    noted,
    root_at,
    take_over,
)
from searchloop.search_backend.library.update import (
    PAUSED,
    READING,
    Added,
    Counted,
    Progress,
    Update,
)
from searchloop.search_backend.readers import read
from searchloop.search_backend.text.passages import section_offset, split, title_of
from searchloop.search_backend.types import Page, SearchBackendError

MOST_PAGES = 2_000
LONGEST_PAGE = 200_000
FRESH = 30.0  # seconds after which a search looks for changed files again
LONGER = 20  # times as long as that took, it is not done again
PATIENCE = 0.3  # seconds that a search waits for that
STALE = 30.0  # seconds without a sign of life after which a reading counts as broken off
_LIST = """
SELECT r.collection, r.path, r.kind, count(d.id), r.updated,
       CASE WHEN f.state = ? AND f.beat NOT BETWEEN ? AND ? THEN '' ELSE coalesce(f.state, '') END,
       coalesce(f.done, 0), coalesce(f.total, 0), coalesce(f.skipped, 0),
       (SELECT count(*) FROM files s JOIN documents k ON k.root = s.root AND k.path = s.path
        WHERE s.root = r.id AND s.note != ''), coalesce(f.note, ''), coalesce(f.exclude, '')
FROM roots r LEFT JOIN documents d ON d.root = r.id LEFT JOIN folders f ON f.root = r.id
GROUP BY r.id ORDER BY r.id"""


def builtin_documents() -> Mapping[str, str]:
    """Returns Markdown text by name, for example README.md or search-switch.md (from docs/)."""
    root = Path(__file__).parents[1] / "builtin_docs"
    if not root.is_dir():
        root = Path(__file__).resolve().parents[2]
        if not (root / "pyproject.toml").is_file():
            return {}  # next to an installed package lie other people's files, not our README
    found = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
    # By name alone: a page keeps its address when it moves to another folder.
    return {file.name: file.read_text("utf-8") for file in found if file.is_file()}


@dataclass(frozen=True, slots=True)
class Collection:
    """A root of the library; `updated` in seconds since the epoch.

    `state` is reading (`done` of `total` files), paused or "". `skipped` counts files that are not
    read, `kept` those whose old text is kept; `note` says why the whole root is not there.
    """

    name: str
    path: str
    kind: str
    documents: int
    updated: float
    state: str = ""
    done: int = 0
    total: int = 0
    skipped: int = 0
    kept: int = 0
    note: str = ""
    exclude: tuple[str, ...] = ()


class Library:
    """The index in `home`; the first use adds our own documents."""

    def __init__(
        self,
        home: Path,
        documents: Callable[[], Mapping[str, str]] = builtin_documents,
        most_pages: int = MOST_PAGES,
        read: ReadPage = read,
    ) -> None:
        """`read` turns the bytes of files into pages; large ones belong into a worker process."""
        self.read = read
        self._fresh_until = 0.0
        self._index = Index(home / "library.sqlite3")
        self._documents = documents
        self._most_pages = most_pages
        self._lock = threading.Lock()
        self._ready = (0, 0)  # the file that has our own documents

    def search(self, text: str, limit: int, folders: Sequence[str] = ()) -> list[Hit]:
        """Returns the best passages for a question in plain words, of these folders alone if any
        are named, by path or collection. Raises SearchBackendError if none of them is there."""
        self._refresh()
        self.reread(PATIENCE)
        return search(self._index, text, limit, folders, _notes)

    def named(self, part: str, limit: int) -> list[dict[str, str]]:
        """Returns the documents with these letters in their title or address."""
        self._refresh()
        return named(self._index, part, limit)

    def trouble(self, url: str) -> str:
        """Returns why the text at a library:// address is older than its file; "" if it is not."""
        if (document := self._document(url)) is None:
            return ""
        with self._index.open() as connection:
            return _notes(connection, [document.url]).get(document.url, "")

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

    def add(
        self,
        path: Path,
        progress: Progress | None = None,
        *,
        exclude: Sequence[str] | None = None,
        counted: Counted | None = None,
    ) -> Added:
        """Indexes a folder or file, or brings it up to date, unless `pause` ends it before.

        Calls `progress(path, outcome)` for each file: added, updated, unchanged, removed, skipped;
        and `counted(done, total)` now and then. `exclude` are patterns as in .gitignore, which
        stay. Raises SearchBackendError if there is no `path` or the index cannot be written.
        """
        return self._update(self._begin(path, exclude), progress, counted)

    def _update(
        self,
        root: Root,
        progress: Progress | None = None,
        counted: Counted | None = None,
        *,
        patient: bool = False,
    ) -> Added:
        self._fresh_until = time.monotonic() + FRESH
        update = Update(self._index, root, self.read, patient=patient)
        return update.run(progress or (lambda *_: None), counted or (lambda *_: None))

    def _begin(self, path: Path, exclude: Sequence[str] | None) -> Root:
        """Finds or makes the root and marks it as being read."""
        target = path.expanduser().resolve()
        self._refresh()
        with self._index.open() as connection:
            query = "SELECT 1 FROM roots WHERE path = ?"
            known = connection.execute(query, (str(target),)).fetchone()
        if not known and not target.exists():
            what = f"There is no file or folder {target}."
            raise SearchBackendError("not_found", what, "Check the path.")
        check_patterns(exclude or ())
        with self._index.open(write=True) as connection:
            root = root_at(connection, target)
            connection.execute("INSERT OR IGNORE INTO folders (root) VALUES (?)", (root.id,))
            query = "UPDATE folders SET state = ?, done = 0, total = 0, beat = ? WHERE root = ?"
            connection.execute(query, (READING, time.time(), root.id))
            if exclude is not None:
                query = "UPDATE folders SET exclude = ? WHERE root = ?"
                connection.execute(query, ("\n".join(exclude), root.id))
            take_over(connection, root)
        note(self._index)
        return root

    def start(self, path: Path, exclude: Sequence[str] | None = None) -> tuple[str, Future[Added]]:
        """Does `add` on a thread that ends with this process; returns the name, too."""
        root = self._begin(path, exclude)
        done = Future[Added]()

        def work() -> None:
            try:
                done.set_result(self._update(root))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, name="library", daemon=True).start()
        return root.collection, done

    def reread(self, patience: float = 0.0) -> None:
        """Brings all folders up to date in the background, and waits up to `patience` seconds.

        Does nothing for half a minute after it was done; leaves alone what is paused or being read.
        """
        with self._lock:
            if time.monotonic() < self._fresh_until:
                return
            self._fresh_until = time.monotonic() + FRESH
        with self._index.open() as connection:
            query = "SELECT 1 FROM roots WHERE kind IN ('folder', 'file')"
            if connection.execute(query).fetchone() is None:
                return
        thread = threading.Thread(target=self._reread, name="library", daemon=True)
        thread.start()
        thread.join(patience)

    def _reread(self) -> None:
        began = time.monotonic()
        with suppress(SearchBackendError):  # the next search says what is wrong with the file
            for each in self.list():
                if each.kind not in ("folder", "file") or each.state:
                    continue
                with suppress(SearchBackendError):  # removed meanwhile
                    self._update(self._begin(Path(each.path), None), patient=True)
        now = time.monotonic()
        self._fresh_until = now + max(FRESH, LONGER * (now - began))

    def pause(self, path: Path | str) -> None:
        """Stops the reading of a folder after its current batch; `add` goes on with it."""
        with self._index.open(write=True) as connection:
            number = named_root(connection, path).id
            query = "UPDATE folders SET state = ? WHERE root = ? AND state = ?"
            connection.execute(query, (PAUSED, number, READING))

    def list(self) -> list[Collection]:
        """Returns every root with the number of its documents and the state of its reading."""
        self._refresh()
        with self._index.open() as connection:
            now = time.time()  # a beat of the future is of a clock that was wrong
            rows = connection.execute(_LIST, (READING, now - STALE, now + STALE)).fetchall()
        return [replace(Collection(*row), exclude=tuple(row[-1].splitlines())) for row in rows]

    def remove(self, path: Path | str) -> int:
        """Removes the root with this path or collection name; returns its number of documents.

        A larger folder around it leaves it out from then on.
        """
        with self._index.open(write=True) as connection:
            root = named_root(connection, path)
            count = drop_documents(connection, root.id)
            for table, column in (("roots", "id"), ("files", "root"), ("folders", "root")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (root.id,))
            for around, inside in folders_around(connection, root):
                query = "UPDATE folders SET exclude = exclude || ? WHERE root = ?"
                connection.execute(query, (f"\n/{inside}", around.id))
        note(self._index)
        return count

    def remember(self, page: Page, chat: str, age: float = 0.0) -> None:
        """Stores a page that a chat opened, so that a search finds it without a network.

        It was fetched `age` seconds ago. Nothing is stored for a chat that was forgotten.
        """
        self._refresh()
        text = page.text[:LONGEST_PAGE]
        document = Document(page.final_url, page.final_url, page.title, text, digest=_digest(text))
        with self._index.open(write=True) as connection:
            mark(connection, document.url, chat)
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
            root = ensure_root(connection, PAGES, PAGES, "pages")
            put(connection, root.id, document, passages)
            fetched = (time.time() - age, document.url)
            connection.execute("UPDATE documents SET added = ? WHERE url = ?", fetched)
            for (old,) in connection.execute(
                "SELECT id FROM documents WHERE root = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
                (root.id, self._most_pages),
            ).fetchall():
                drop(connection, old)

    def forget(self, chat: str) -> int:
        """Removes the pages that only this chat opened, and returns their number; where the disk is
        too full for that, the whole index, which can be made anew."""
        try:
            self._refresh()
            with self._index.open(write=True) as connection:
                count = drop_pages(connection, unmark(connection, chat))
            self._index.leave_nothing()
            return count
        except SearchBackendError as error:
            if not no_room(error.__cause__):
                raise
        self._index.discard()
        return 0

    def _refresh(self) -> None:
        """Adds our own documents once a process, if they are new or have changed; and to a new file
        the folders of the one before."""
        with self._lock:
            if self._ready == self._index.file != (0, 0):
                return
            documents = self._documents()
            digest = _digest("\0".join(f"{path}\0{text}" for path, text in documents.items()))
            with self._index.open() as connection:
                row = connection.execute(
                    "SELECT digest FROM roots WHERE collection = ?", (DOCS,)
                ).fetchone()
                file = self._index.file
            if row is None or row[0] != digest:
                with self._index.open(write=True) as connection:
                    _replace_docs(connection, documents, digest)
            self._ready = file  # not one that came meanwhile
        for path, exclude in () if row else noted(self._index.path):
            with suppress(SearchBackendError):  # it is there no more
                self.start(Path(path), exclude)
        note(self._index)


def _replace_docs(
    connection: sqlite3.Connection, documents: Mapping[str, str], digest: str
) -> None:
    root = ensure_root(connection, DOCS, DOCS, "docs")
    drop_documents(connection, root.id)
    for path, text in documents.items():
        url = f"{SCHEME}{DOCS}/{quote(path)}"
        document = Document(path, url, title_of(text, path), text)
        put(connection, root.id, document, list(split(text)))
    connection.execute(
        "UPDATE roots SET digest = ?, updated = ? WHERE id = ?", (digest, time.time(), root.id)
    )


def _notes(connection: sqlite3.Connection, urls: Sequence[str]) -> dict[str, str]:
    """Returns for documents with old text why it is old, as the beginning of a sentence."""
    marks = ",".join("?" * len(urls))
    rows = connection.execute(
        "SELECT d.url, f.note FROM documents d JOIN files f ON f.root = d.root "
        f"AND f.path = d.path WHERE f.note != '' AND d.url IN ({marks})",
        urls,
    ).fetchall()
    return {url: f"The file cannot be read as it is now ({note})" for url, note in rows}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
