"""Where the event log is kept: one SQLite file, or PostgreSQL for more than one machine."""

from __future__ import annotations

from pathlib import Path

from agent.store.contract import Database
from agent.store.postgres import PostgresDatabase
from agent.store.sqlite import SqliteDatabase
from agent.tables import STEPS

_POSTGRES = ("postgresql://", "postgres://")


def open_store(where: Path | str) -> Database:
    """The store at this path or `postgresql://` address, made or brought up to date.

    Raises StoreError when it cannot be used or is newer than this program, ConfigError when the
    driver is missing.
    """
    if str(where).startswith(_POSTGRES):
        return PostgresDatabase(str(where), STEPS)
    return SqliteDatabase(Path(where), STEPS)
