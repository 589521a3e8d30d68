"""The full-text index: documents and the terms of their passages in one SQLite file (FTS5).

FTS5 stores terms that our own analysis made, in any script, and proposes passages; `ranking` orders
them. What an older version indexed is analysed again at once. Threads and processes share the file,
each call by a connection of its own; what is written is locked only while it reaches the disk.
https://www.sqlite.org/fts5.html
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from searchloop.analysis.language import language
from searchloop.analysis.terms import PUNCTUATION, terms
from searchloop.search_backend.library.chats import CHAT_TABLES, leave_nothing
from searchloop.search_backend.text.passages import Passage, split
from searchloop.search_backend.types import SearchBackendError

SCHEMA_VERSION = 5
MOST_PASSAGES = 65_536

_SCHEMA = """
CREATE TABLE roots (
    id INTEGER PRIMARY KEY, collection TEXT NOT NULL UNIQUE, path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL, digest TEXT NOT NULL DEFAULT '', updated REAL NOT NULL DEFAULT 0);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, root INTEGER NOT NULL REFERENCES roots(id), path TEXT NOT NULL,
    url TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL, added REAL NOT NULL,
    UNIQUE (root, path))
"""
# Version 1 had another table of words, `passages`; 0 in `analysis` means: not yet in `terms`.
_SCHEMA_2 = f"""
ALTER TABLE documents ADD COLUMN analysis INTEGER NOT NULL DEFAULT 0;
CREATE VIRTUAL TABLE terms USING fts5(
    title, heading, body, headings UNINDEXED, anchor UNINDEXED, begins UNINDEXED, ends UNINDEXED,
    lang UNINDEXED, length UNINDEXED, tokenize = "ascii tokenchars '{PUNCTUATION}'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, row);
CREATE TABLE totals (passages INTEGER NOT NULL, length INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TABLE languages (lang TEXT PRIMARY KEY) WITHOUT ROWID
"""
# Version 3 had vectors of an embedding model beside the words.
_SCHEMA_4 = "DROP TABLE IF EXISTS vectors; DROP TABLE IF EXISTS embedding"
_SCHEMA_5 = "DROP INDEX IF EXISTS documents_by_analysis; DROP TABLE IF EXISTS passages"
_STEPS = (_SCHEMA, _SCHEMA_2, "", _SCHEMA_4, _SCHEMA_5)
# The state of each file that was opened, and of each folder; and of whom each page is.
_MORE = (
    "CREATE TABLE IF NOT EXISTS files (root INTEGER NOT NULL, path TEXT NOT NULL,"
    " mtime INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL, note TEXT NOT NULL,"
    " since REAL NOT NULL, PRIMARY KEY (root, path)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS folders (root INTEGER PRIMARY KEY,"
    " exclude TEXT NOT NULL DEFAULT '', state TEXT NOT NULL DEFAULT '',"
    " done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,"
    " skipped INTEGER NOT NULL DEFAULT 0, device INTEGER NOT NULL DEFAULT 0,"
    " note TEXT NOT NULL DEFAULT '', beat REAL NOT NULL DEFAULT 0)",
    *CHAT_TABLES,
)


@dataclass(frozen=True, slots=True)
class Root:
    """A source of documents. `kind` is docs, folder, file or pages."""

    id: int
    collection: str
    path: str
    kind: str
    digest: str


@dataclass(frozen=True, slots=True)
class Document:
    """One indexed text. `mtime` in nanoseconds, `digest` of the source's bytes.

    `added` is when it was stored or last found unchanged, in seconds since the epoch.
    """

    path: str
    url: str
    title: str
    text: str
    mtime: int = 0
    size: int = 0
    digest: str = ""
    added: float = 0.0


_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Damage that is told as an error of the query, or found by us: each file has these tables.
_ODD = re.compile(r"decode to UTF-8|fts5|no such table|are no numbers")


class Index:
    """The file at `path`; the first use makes it, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = (0, 0)  # device and inode of the one that was opened last

    @contextmanager
    def open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Yields a connection; with `write`, commits its transaction at the end.

        Raises SearchBackendError(code "library_unavailable") if the file cannot be used, and with
        "library_rebuilt" if it was damaged: then it is gone, and the next call makes a new one.
        """
        file = (0, 0)
        try:
            with closing(self._connect()) as connection:
                file = self.file
                # Reading is a transaction, too: what a search found is still there when it is read.
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield connection
                connection.commit()
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            if _is_damage(error):
                self.discard(file)
                raise SearchBackendError(
                    "library_rebuilt",
                    "The index of the library was damaged, and your folders are being read anew.",
                    "Search again in a moment; pages opened before are found once opened again.",
                ) from error
            raise SearchBackendError(
                "library_unavailable",
                f"The library at {self.path} cannot be used: {error}.",
                "Make room, make its folder writable, or set SEARCHLOOP_HOME to another one.",
            ) from error

    def _connect(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        found = self.path.stat()
        if os.name == "posix" and found.st_mode & 0o077:
            self.path.chmod(0o600)
        is_new = self.file != (found.st_dev, found.st_ino)
        self.file = (found.st_dev, found.st_ino)
        connection = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
                _prepare(connection)
            for statement in _MORE if is_new else ():
                connection.execute(statement)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_spill = OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    def discard(self, file: tuple[int, int] | None = None) -> None:
        """Deletes the file, unless somebody has put a new one in the place of `file`."""
        with suppress(OSError):
            found = self.path.stat()
            if (file or self.file) in ((found.st_dev, found.st_ino), (0, 0)):
                for suffix in ("", "-journal", "-wal", "-shm"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self.file = (0, 0)

    def leave_nothing(self) -> None:
        """Overwrites what was removed: in the segments of the index, and in the log of writes."""
        with self.open(write=True) as connection:
            connection.execute("INSERT INTO terms(terms) VALUES ('optimize')")
        with self.open(write=True) as connection:
            connection.commit()
            leave_nothing(connection)

    def document(self, url: str) -> Document | None:
        """Returns the document at `url` (without a fragment)."""
        with self.open() as connection:
            row = connection.execute(
                "SELECT path, url, title, text, mtime, size, digest, added FROM documents "
                "WHERE url = ?",
                (url,),
            ).fetchone()
        return Document(*row) if row else None


def _is_damage(error: Exception) -> bool:
    """Tells whether the file holds what neither SQLite nor we have written."""
    is_odd = isinstance(error, UnicodeDecodeError) or _ODD.search(str(error))
    return bool(is_odd) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def no_room(error: object) -> bool:
    """Tells whether the disk took no more."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    )


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the tables; another process may do so at the same time."""
    with suppress(sqlite3.OperationalError):  # another program still has it open
        connection.execute("PRAGMA journal_mode = DELETE")  # versions up to 4 had a log of writes
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"it was written by a newer version (format {version})")
    for statement in _STEPS[version:]:
        for part in statement.split(";"):
            connection.execute(part)
    query = "SELECT id, title, text FROM documents WHERE analysis = 0"
    for number, title, text in connection.execute(query):
        add_terms(connection, number, title, list(split(text)))
    connection.execute("UPDATE documents SET analysis = 1")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def put(
    connection: sqlite3.Connection, root: int, document: Document, passages: Sequence[Passage]
) -> None:
    """Adds a document to a root, or replaces the one at the same path."""
    for (old,) in connection.execute(
        "SELECT id FROM documents WHERE url = ? OR (root = ? AND path = ?)",
        (document.url, root, document.path),
    ).fetchall():
        drop(connection, old)
    number = connection.execute(
        "INSERT INTO documents (root, path, url, title, text, mtime, size, digest, added, analysis)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
        (
            *(root, document.path, document.url, document.title, document.text),
            *(document.mtime, document.size, document.digest, time.time()),
        ),
    ).lastrowid
    assert number is not None
    add_terms(connection, number, document.title, passages)


def add_terms(
    connection: sqlite3.Connection, document: int, title: str, passages: Sequence[Passage]
) -> None:
    """Adds the terms of a document's passages."""
    usual = language("\n".join(passage.text for passage in passages[:8]))
    rows, total = [], 0
    for n, passage in enumerate(passages[:MOST_PASSAGES]):
        lang = language(passage.text) or usual
        body = terms(passage.text, lang)
        total += len(body)
        heads = (terms(title, lang), terms(" ".join(passage.headings), lang), body)
        told = (" > ".join(passage.headings), passage.anchor, passage.start, passage.end, lang)
        rows.append((document * MOST_PASSAGES + n, *map(" ".join, heads), *told, len(body)))
    connection.executemany(
        "INSERT INTO terms (rowid, title, heading, body, headings, anchor, begins, ends, lang, "
        "length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    langs = {(row[-2],) for row in rows if row[-2]}
    connection.executemany("INSERT OR IGNORE INTO languages VALUES (?)", langs)
    query = "UPDATE totals SET passages = passages + ?, length = length + ?"
    connection.execute(query, (len(rows), total))


def drop(connection: sqlite3.Connection, document: int) -> None:
    """Removes one document and its passages."""
    connection.execute("DELETE FROM documents WHERE id = ?", (document,))
    first = document * MOST_PASSAGES
    rows = (first, first + MOST_PASSAGES - 1)
    query = "SELECT count(*), coalesce(sum(length), 0) FROM terms WHERE rowid BETWEEN ? AND ?"
    counts = connection.execute(query, rows).fetchone()
    query = "UPDATE totals SET passages = passages - ?, length = length - ?"
    connection.execute(query, counts)
    connection.execute("DELETE FROM terms WHERE rowid BETWEEN ? AND ?", rows)
