"""The full-text index: documents and their passages in one SQLite file (FTS5, Porter stemming).

A search returns passages that contain all words, then those that contain a good part of them,
ranked by bm25 with more weight for titles and headings. Each operation opens its own connection;
threads and processes share the file through WAL. https://www.sqlite.org/fts5.html
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from searchloop.search_backend.cache.chats import leave_nothing
from searchloop.search_backend.text.passages import CLOSE, OPEN, Passage, excerpt
from searchloop.search_backend.types import SearchBackendError

SCHEMA_VERSION = 1
MOST_TERMS = 24
PASSAGES_PER_DOCUMENT = 3
MOST_PASSAGES = 65_536
# What holds only some of the words must hold this share, or anything would match anything.
LEAST_SHARE = 0.4
CANDIDATES = 60

_SCHEMA = """
CREATE TABLE roots (
    id INTEGER PRIMARY KEY, collection TEXT NOT NULL UNIQUE, path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL, digest TEXT NOT NULL DEFAULT '', updated REAL NOT NULL DEFAULT 0);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, root INTEGER NOT NULL REFERENCES roots(id), path TEXT NOT NULL,
    url TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL, added REAL NOT NULL,
    UNIQUE (root, path));
CREATE VIRTUAL TABLE passages USING fts5(
    title, heading, body, anchor UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2');
"""
_COMMON = """
    a an and are as at be been between but by can could did do does for from had has have how i if
    in into is it its me my of on or our out should so than that the their them then there these
    they this those to us was we were what when where which who whom whose why will with would you
    your"""
_STOP_WORDS = frozenset(_COMMON.split())


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


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by a search. `url` ends in the anchor of its heading."""

    title: str
    url: str
    snippet: str


_TRIES = 50  # at changing a new file over to WAL while others do the same


class Index:
    """The file at `path`; the first use makes it, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Yields a connection; with `write`, commits its transaction at the end.

        Raises SearchBackendError(code "library_unavailable") if the file cannot be used.
        """
        connection: sqlite3.Connection | None = None
        try:
            connection = self._connect()
            # Reading is a transaction, too: what a search found is still there when it is read.
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection
            if write:
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise SearchBackendError(
                "library_unavailable",
                f"The library at {self.path} cannot be used: {error}.",
                "Make its folder writable, set SEARCHLOOP_HOME to another one, or, if the file is "
                "damaged, delete it and add your folders again.",
            ) from error
        finally:
            if connection is not None:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        elif os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)
        connection = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
                _prepare(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def leave_nothing(self) -> None:
        """Overwrites what was removed: in the segments of the index, and in the log of writes."""
        with self.open(write=True) as connection:
            connection.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        with self.open() as connection:
            connection.execute("COMMIT")
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

    def search(self, text: str, limit: int) -> list[Hit]:
        """Returns the best passages for a question in plain words; FTS5 syntax has no effect."""
        terms = terms_of(text)
        if not terms:
            return []
        with self.open() as connection:
            chosen = _best(connection, terms, limit)
            return [_hit(connection, rowid, " OR ".join(terms)) for rowid in chosen]


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the tables; another process may do so at the same time."""
    for attempts_left in range(_TRIES, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not attempts_left:
                raise
            connection.execute("BEGIN IMMEDIATE")  # waits for the other, which the pragma does not
            connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"it was written by a newer version (format {version})")
    if version == 0:
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
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
        "INSERT INTO documents (root, path, url, title, text, mtime, size, digest, added) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(root, document.path, document.url, document.title, document.text),
            *(document.mtime, document.size, document.digest, time.time()),
        ),
    ).lastrowid
    assert number is not None
    connection.executemany(
        "INSERT INTO passages (rowid, title, heading, body, anchor) VALUES (?, ?, ?, ?, ?)",
        (
            (number * MOST_PASSAGES + n, document.title, " > ".join(p.headings), p.text, p.anchor)
            for n, p in enumerate(passages[:MOST_PASSAGES])
        ),
    )


def drop(connection: sqlite3.Connection, document: int) -> None:
    """Removes one document and its passages."""
    first = document * MOST_PASSAGES
    connection.execute(
        "DELETE FROM passages WHERE rowid BETWEEN ? AND ?", (first, first + MOST_PASSAGES - 1)
    )
    connection.execute("DELETE FROM documents WHERE id = ?", (document,))


def terms_of(text: str) -> list[str]:
    """Returns the words without stop words, each quoted for FTS5."""
    words = list(dict.fromkeys(re.findall(r"\w+", text.lower())))
    telling = [word for word in words if word not in _STOP_WORDS and word.strip("_")]
    return [f'"{word}"' for word in (telling or words)[:MOST_TERMS]]


def _best(connection: sqlite3.Connection, terms: list[str], limit: int) -> list[int]:
    """Ranks passages with all words before those with some, by bm25 and words in the body."""
    ranked = _ranked(connection, " AND ".join(terms))
    chosen = _spread(_reordered(connection, terms, ranked), limit)
    if len(chosen) < limit and len(terms) > 1:
        some = _ranked(connection, " OR ".join(terms))
        held = _terms_held(connection, terms, [rowid for rowid, _ in some])
        least = ceil(len(terms) * LEAST_SHARE)
        # bm25 is negative, the best first; a passage with more of the words gains.
        some = [(rowid, rank * held[rowid]) for rowid, rank in some if held[rowid] >= least]
        chosen = _spread([*chosen, *_reordered(connection, terms, some)], limit)
    return chosen


def _reordered(
    connection: sqlite3.Connection, terms: list[str], ranked: list[tuple[int, float]]
) -> list[int]:
    """Favours passages with the words in the body over those with them in the heading."""
    in_body = [f"body : {term}" for term in terms]
    held = _terms_held(connection, in_body, [rowid for rowid, _ in ranked])
    ranked = sorted(ranked, key=lambda row: row[1] * (1 + held[row[0]]))
    return [rowid for rowid, _ in ranked]


def _ranked(connection: sqlite3.Connection, match: str) -> list[tuple[int, float]]:
    return connection.execute(
        "SELECT rowid, rank FROM passages WHERE passages MATCH ? "
        "AND rank MATCH 'bm25(4.0, 3.0, 1.0)' ORDER BY rank LIMIT ?",
        (match, CANDIDATES),
    ).fetchall()


def _terms_held(
    connection: sqlite3.Connection, terms: list[str], rowids: list[int]
) -> dict[int, int]:
    held = dict.fromkeys(rowids, 0)
    marks = ",".join("?" * len(rowids))
    for term in terms:
        for (rowid,) in connection.execute(
            f"SELECT rowid FROM passages WHERE passages MATCH ? AND rowid IN ({marks})",
            (term, *rowids),
        ):
            held[rowid] += 1
    return held


def _spread(rowids: Sequence[int], limit: int) -> list[int]:
    """Returns the first `limit` rows, at most PASSAGES_PER_DOCUMENT of one document."""
    chosen: list[int] = []
    counts: dict[int, int] = {}
    for rowid in dict.fromkeys(rowids):
        document = rowid // MOST_PASSAGES
        counts[document] = counts.get(document, 0) + 1
        if counts[document] <= PASSAGES_PER_DOCUMENT:
            chosen.append(rowid)
    return chosen[:limit]


def _hit(connection: sqlite3.Connection, rowid: int, match: str) -> Hit:
    title, heading, body, anchor, url = connection.execute(
        "SELECT p.title, p.heading, highlight(passages, 2, ?, ?), p.anchor, d.url "
        "FROM passages p JOIN documents d ON d.id = ? WHERE passages MATCH ? AND p.rowid = ?",
        (OPEN, CLOSE, rowid // MOST_PASSAGES, match, rowid),
    ).fetchone()
    own = heading.rpartition(" > ")[2]
    full = f"{title}: {own}" if own and own != title else title
    # Only our own addresses have our own anchors.
    link = f"{url}#{anchor}" if anchor and url.startswith("library:") else url
    return Hit(full, link, excerpt(body))
