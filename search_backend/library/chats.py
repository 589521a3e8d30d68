"""Which chats brought an item of a store: it goes with the last of them.

A chat is known by a digest of its id. One that was forgotten stays known as such, so that a page
which was still on its way when its chat was deleted is not stored after all.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import suppress

# With `item` empty: this chat was forgotten.
CHAT_TABLES = (
    "CREATE TABLE IF NOT EXISTS chats (chat TEXT NOT NULL, item TEXT NOT NULL,"
    " PRIMARY KEY (chat, item)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS chats_item ON chats(item)",
)
_SMALL = 64 * 2**20  # bytes
_ALONE = """SELECT item FROM chats AS own WHERE chat = ? AND item != '' AND NOT EXISTS
    (SELECT 1 FROM chats AS other WHERE other.item = own.item AND other.chat != own.chat)"""


def mark(connection: sqlite3.Connection, item: str, chat: str) -> bool:
    """Notes that a chat brought an item. Returns False if the chat was forgotten."""
    known = connection.execute(
        "SELECT item FROM chats WHERE chat = ? AND item IN ('', ?)", (_digest(chat), item)
    ).fetchall()
    if not known:
        connection.execute("INSERT OR IGNORE INTO chats VALUES (?, ?)", (_digest(chat), item))
    return ("",) not in known


def unmark(connection: sqlite3.Connection, chat: str) -> list[str]:
    """Forgets a chat; returns the items that no other chat brought."""
    digest = _digest(chat)
    alone = [row[0] for row in connection.execute(_ALONE, (digest,))]
    connection.execute("DELETE FROM chats WHERE chat = ?", (digest,))
    connection.execute("INSERT INTO chats VALUES (?, '')", (digest,))
    return alone


def leave_nothing(connection: sqlite3.Connection) -> None:
    """Writes a small file anew, as pages that were split keep copies of what was deleted, and
    empties the log of writes; that goes when the last one closes the file who reads it now."""
    size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    with suppress(sqlite3.OperationalError):  # another process writes
        if connection.execute(size).fetchone()[0] <= _SMALL:
            connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _digest(chat: str) -> str:
    return hashlib.sha256(chat.encode("utf-8", "surrogatepass")).hexdigest()[:32]
