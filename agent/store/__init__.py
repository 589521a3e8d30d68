"""Where the event log is kept: one SQLite file, or PostgreSQL for more than one machine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from agent.errors import ConfigError
from agent.settings import DATABASES
from agent.store.contract import Database
from agent.store.sqlite import SqliteDatabase
from agent.tables import STEPS


def open_store(where: Path | str) -> Database:
    """The store at this path or `postgresql://` address, made or brought up to date.

    Raises StoreError when it cannot be used or is newer than this program, ConfigError when the
    driver is missing.
    """
    if str(where).startswith(DATABASES):
        return _postgres(str(where))
    return SqliteDatabase(Path(where), STEPS)


def _postgres(url: str) -> Database:
    """Loaded with its driver, when it is first needed."""
    try:
        module = import_module("agent.store.postgres")
    except ImportError as error:
        raise ConfigError(
            "no_driver",
            f"SEARCHLOOP_DATABASE_URL needs a driver that is not installed ({error}).",
            "pip install 'searchloop[postgres]'",
        ) from error
    store: Database = module.PostgresDatabase(url, STEPS)
    return store
