"""Stores the files that users attach: the bytes of equal files once, gone with their last chat.

`files` has a content and the text of its pages, `attachments` says which session holds which.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from searchloop.agent.log.contract import Database, Statements, rows_of
from searchloop.agent.text import to_json
from searchloop.agent.types.attachments import Attachment

_COLUMNS = "digest, data, pages"
_OWN = "SELECT digest FROM attachments WHERE session = ?"


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file with its content and, for a document, the text of each page."""

    attachment: Attachment
    data: bytes
    texts: tuple[str, ...] = ()


class AttachmentStore:
    """The files of the sessions of a store that somebody `owns`."""

    def __init__(self, db: Database, owns: Callable[[str], bool] = bool) -> None:
        self._db, self._owns = db, owns

    def put(self, session_id: str, files: Iterable[AttachedFile]) -> None:
        """Stores the files of a question; returns once no power cut can lose them."""
        rows = [(f.attachment.digest, f.data, to_json(f.texts)) for f in files]
        if rows:
            with self._db.transaction(durable=True) as db:
                insert(db, session_id, rows)

    def data(self, session_id: str, digest: str) -> bytes | None:
        """Returns the content of a file that this session holds, or None."""
        found = self._row("data", session_id, digest)
        return None if found is None else bytes(found[0])

    def texts(self, session_id: str, digest: str) -> list[str]:
        """Returns the text of each page of a document; empty if it is not there."""
        found = self._row("pages", session_id, digest)
        return list(json.loads(found[0])) if found else []

    def copy(self, session_id: str, target: Statements) -> None:
        """Copies the files of a session into another store."""
        for (digest,) in rows_of(self._db, _OWN, (session_id,)):
            if row := self._row(_COLUMNS, session_id, digest):
                insert(target, session_id, [row])

    def _row(self, columns: str, session_id: str, digest: str) -> Sequence[Any] | None:
        if not self._owns(session_id):
            return None
        query = f"SELECT {columns} FROM files WHERE digest = ? AND digest IN ({_OWN})"
        return next(iter(rows_of(self._db, query, (digest, session_id))), None)


def insert(db: Statements, session_id: str, rows: Iterable[Sequence[Any]]) -> None:
    """Adds files (digest, data, pages) to a session, inside a transaction."""
    for row in rows:
        # The update locks a row that is there: `delete_files` in another transaction waits for us.
        db.execute(
            f"INSERT INTO files ({_COLUMNS}) VALUES (?, ?, ?)"
            " ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest",
            row,
        )
        db.execute(
            "INSERT INTO attachments (session, digest) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (session_id, row[0]),
        )


def delete_files(db: Statements, session_id: str) -> None:
    """Deletes the files of a session that no other session holds, inside a transaction."""
    held = [row[0] for row in db.execute(_OWN, (session_id,)).fetchall()]
    for digest in held:
        db.execute("UPDATE files SET digest = digest WHERE digest = ?", (digest,))  # see `insert`
    db.execute("DELETE FROM attachments WHERE session = ?", (session_id,))
    for digest in held:
        db.execute(
            "DELETE FROM files WHERE digest = ? AND NOT EXISTS"
            " (SELECT 1 FROM attachments WHERE attachments.digest = files.digest)",
            (digest,),
        )
