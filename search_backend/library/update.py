"""Brings a folder of the library up to date: reads what changed, in batches, and can be paused.

A file whose time, size and inode are known is not opened. A file that cannot be read any more, or
is not there for a while, keeps its old text and a note that says so. Every batch is one
transaction, after which another process may have asked for a pause.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from searchloop.search_backend.library.file_text import MAY_COME_BACK, SECRET, Found, ReadPage, load
from searchloop.search_backend.library.folders import Walk
from searchloop.search_backend.library.index import Document, Index, Root, drop, put
from searchloop.search_backend.library.roots import SCHEME
from searchloop.search_backend.text.passages import split, title_of
from searchloop.search_backend.types import SearchBackendError

READING, PAUSED = "reading", "paused"
BATCH, BATCH_SECONDS = 500, 2.0
MOST_TOLD = 10_000  # reasons that are named one by one
GRACE = 7 * 86_400.0  # seconds for which a file may be away before a re-reading forgets it

_KNOWN = """
SELECT d.path, d.id, d.mtime, d.size, d.digest, coalesce(f.inode, 0), coalesce(f.note, ''),
       coalesce(f.since, 0.0)
FROM documents d LEFT JOIN files f ON f.root = d.root AND f.path = d.path WHERE d.root = ?
UNION ALL
SELECT f.path, NULL, f.mtime, f.size, '', f.inode, f.note, f.since FROM files f
WHERE f.root = ? AND NOT EXISTS (
    SELECT 1 FROM documents d WHERE d.root = f.root AND d.path = f.path)
"""

MERGED = 500  # pages of the index that are written anew after a reading, and one for each file

Progress = Callable[[str, str], None]
Counted = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Added:
    """The counts of an `add`; `skipped` pairs paths with reasons, `kept` those with old text.

    `state` is "" when all was read, else "paused".
    """

    collection: str
    added: int
    updated: int
    unchanged: int
    removed: int
    skipped: tuple[tuple[str, str], ...]
    kept: tuple[tuple[str, str], ...] = ()
    state: str = ""


class _Known(NamedTuple):
    """What is stored about a file; `document` is None for one that could not be read."""

    document: int | None
    mtime: int
    size: int
    digest: str
    inode: int
    note: str
    since: float


class _Outcome(NamedTuple):
    """What became of a file: a document to store, or `why` there is none."""

    found: Found
    outcome: str
    document: Document | None = None


class Update:
    """One reading of one root. `patient` readings remove a file only after `GRACE`."""

    def __init__(
        self,
        index: Index,
        root: Root,
        read: ReadPage,
        *,
        patient: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._index, self._root, self._read = index, root, read
        self._patient, self._clock = patient, clock
        self._counts = dict.fromkeys(("added", "updated", "unchanged", "removed"), 0)
        self._skipped, self._kept = list[tuple[str, str]](), list[tuple[str, str]]()
        self._untold = 0
        self._stopped = False

    def run(self, progress: Progress, counted: Counted, walk: Walk | None = None) -> Added:
        """Reads what changed. Calls `counted(done, total)` after each batch."""
        self._progress, self._counted = progress, counted
        with self._index.open() as connection:
            rows = connection.execute(_KNOWN, [self._root.id] * 2)
            known = {row[0]: _Known(*row[1:]) for row in rows}
            exclude, device = connection.execute(
                "SELECT exclude, device FROM folders WHERE root = ?", (self._root.id,)
            ).fetchone()
            nested = self._nested(connection)
        top = Path(self._root.path)
        walk = walk or Walk(top, exclude.splitlines(), nested)
        files, away = list[Found](), self._away(top, device)
        if away:
            walk.unlisted[""] = away
            self._skipped.append((str(top), away))
        else:
            files = list(walk)
        try:
            self._read_all(files, known)
        except BaseException:
            self._finish(PAUSED, "")
            raise
        if not self._stopped:
            self._leave(known, walk)
            self._finish("", away)
        if self._untold:
            self._skipped.append(("...", f"{self._untold:,} further files are not read"))
        skipped, kept = tuple(self._skipped), tuple(self._kept)
        state, name = PAUSED if self._stopped else "", self._root.collection
        return Added(name, **self._counts, skipped=skipped, kept=kept, state=state)

    def _nested(self, connection: sqlite3.Connection) -> list[Path]:
        """Returns the roots inside this one: each file belongs to the innermost."""
        rows = connection.execute("SELECT path FROM roots WHERE kind IN ('folder', 'file')")
        inside = self._root.path.rstrip("/") + "/"
        home = self._index.path.absolute().parent
        return [home, *(Path(path) for (path,) in rows if path.startswith(inside))]

    def _away(self, top: Path, device: int) -> str:
        """Returns why the whole root is not there, as a disk that is not connected."""
        try:
            now = top.stat().st_dev
            empty = top.is_dir() and next(iter(top.iterdir()), None) is None
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return "is empty, and its disk seems to be away" if empty and device not in (0, now) else ""

    def _read_all(self, files: list[Found], known: dict[str, _Known]) -> None:
        batch: list[_Outcome] = []
        began, done, total = time.monotonic(), 0, len(files)
        for each in self._outcomes(files, known):
            batch.append(each)
            if len(batch) >= BATCH or time.monotonic() - began > BATCH_SECONDS:
                done += len(batch)
                if not self._store(batch, known, done, total):
                    self._stopped = True
                    return
                batch, began = [], time.monotonic()
        self._stopped = not self._store(batch, known, total, total)

    def _outcomes(self, files: list[Found], known: Mapping[str, _Known]) -> Iterator[_Outcome]:
        """Yields what became of each file, in order."""
        for found in files:
            before = known.get(found.path)
            if found.skipped:
                yield _Outcome(found, found.skipped)
            elif before and _same(found, before) and self._is_settled(before):
                yield _Outcome(found, before.note or "unchanged")
            else:
                yield self._outcome(found, before)

    def _is_settled(self, before: _Known) -> bool:
        """True if reading the file once more would say the same."""
        if before.document is not None:
            return not before.note
        return self._patient and not before.note.startswith(MAY_COME_BACK)

    def _outcome(self, found: Found, before: _Known | None) -> _Outcome:
        try:
            body = found.file.read_bytes()
            digest = hashlib.sha256(body).hexdigest()
            if before and before.digest == digest:
                return _Outcome(found, "unchanged")
            page = load(found, body, self._read)
        except OSError as error:
            return _Outcome(found, f"cannot be read: {error.strerror}")
        except SearchBackendError as error:
            return _Outcome(found, error.message.rstrip("."))
        except Exception as error:  # a reader of somebody else's may fail in any way
            return _Outcome(found, f"cannot be read: {type(error).__name__}")
        title = page.title or title_of(page.text, found.file.stem)
        url = f"{SCHEME}{self._root.collection}/{quote(found.path)}"
        stat = (found.mtime, found.size, digest)
        document = Document(found.path, url, title, page.text, *stat)
        is_new = before is None or before.document is None
        return _Outcome(found, "added" if is_new else "updated", document)

    def _store(
        self, batch: list[_Outcome], known: dict[str, _Known], done: int, total: int
    ) -> bool:
        """Writes a batch; False when somebody asked for a pause or removed the folder."""
        root = self._root.id
        passages = [list(split(each.document.text)) if each.document else [] for each in batch]
        with self._index.open(write=True) as connection:
            query = "SELECT state FROM folders WHERE root = ?"
            row = connection.execute(query, (root,)).fetchone()
            if row is None:
                return False
            for each, parts in zip(batch, passages, strict=True):
                before = known.pop(each.found.path, None)
                if each.document:
                    put(connection, root, each.document, parts)
                self._note(connection, each, before)
            query = "UPDATE folders SET done = ?, total = ?, beat = ? WHERE root = ?"
            connection.execute(query, (done, total, self._clock(), root))
        for each in batch:
            self._count(each)
        self._counted(done, total)
        return bool(row[0] == READING)

    def _note(self, connection: sqlite3.Connection, each: _Outcome, before: _Known | None) -> None:
        """Stores a file's state, unless its name alone decides it."""
        found, outcome = each.found, each.outcome
        note = "" if outcome in self._counts else outcome
        has_text = before is not None and before.document is not None
        if note and has_text and before and before.document is not None:
            if outcome == SECRET or (found.skipped and not outcome.startswith(MAY_COME_BACK)):
                drop(connection, before.document)
                self._forget(connection, found.path)
                self._counts["removed"] += 1
                return
            self._kept.append((found.path, note))
        if found.folder or (found.skipped and not has_text):
            return
        if before and before.note == note and _same(found, before):
            return
        if not each.document and not note and before:
            query = "UPDATE documents SET mtime = ? WHERE id = ?"
            connection.execute(query, (found.mtime, before.document))
        self._put_state(connection, found.path, found, note, self._clock())

    def _put_state(
        self,
        connection: sqlite3.Connection,
        path: str,
        its: Found | _Known,
        note: str,
        since: float,
    ) -> None:
        row = (self._root.id, path, its.mtime, its.size, its.inode, note, since)
        connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _count(self, each: _Outcome) -> None:
        outcome = each.outcome
        if outcome in self._counts:
            self._counts[outcome] += 1
        else:
            if len(self._skipped) < MOST_TOLD:
                self._skipped.append((each.found.path, outcome))
            else:
                self._untold += 1
            outcome = f"skipped: {outcome}"
        self._progress(each.found.path, outcome)

    def _leave(self, known: Mapping[str, _Known], walk: Walk) -> None:
        """Removes what is gone, or keeps its text for a while."""
        with self._index.open(write=True) as connection:
            for path, before in known.items():
                why = next((why for at, why in walk.unlisted.items() if path.startswith(at)), "")
                since = before.since if before.note else self._clock()
                may_come = why or (self._patient and self._clock() - since < GRACE)
                if before.document is not None and may_come and not walk.leaves_out(path):
                    note = f"its folder {why}" if why else "is not there"
                    self._kept.append((path, note))
                    self._put_state(connection, path, before, note, since)
                    continue
                self._forget(connection, path)
                if before.document is not None:
                    drop(connection, before.document)
                    self._counts["removed"] += 1
                    self._progress(path, "removed")

    def _forget(self, connection: sqlite3.Connection, path: str) -> None:
        connection.execute("DELETE FROM files WHERE root = ? AND path = ?", (self._root.id, path))

    def _finish(self, state: str, note: str) -> None:
        device = 0
        if not note:
            try:
                device = Path(self._root.path).stat().st_dev
            except OSError:
                note = "is not there"
        told = (state, note, len(self._skipped) + self._untold, device, self._root.id)
        with self._index.open(write=True) as connection:
            connection.execute(
                "UPDATE folders SET state = ?, note = ?, skipped = ?, "
                "device = coalesce(nullif(?, 0), device) WHERE root = ?",
                told,
            )
            query = "UPDATE roots SET updated = ? WHERE id = ?"
            connection.execute(query, (self._clock(), self._root.id))
            if changed := sum(self._counts.values()) - self._counts["unchanged"]:
                # A word is looked up in each part of the index, and each batch added one.
                query = "INSERT INTO terms(terms, rank) VALUES ('merge', ?)"
                connection.execute(query, (-MERGED - changed,))


def _same(found: Found, known: _Known) -> bool:
    inode = known.inode or found.inode  # not stored by earlier versions
    return (known.mtime, known.size, inode) == (found.mtime, found.size, found.inode)
