"""The event log on PostgreSQL, shared by any number of processes on any number of machines.

Each append is one statement, which also notifies the other processes. A crash of the server loses
unlogged deltas, and nothing else. https://www.postgresql.org/docs/current/sql-notify.html
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.errors import StoreError, UnsureError
from searchloop.agent.log.contract import Batch, Heard, Steps, newer
from searchloop.agent.log.events import DELTAS, MODULUS, unnumbered
from searchloop.agent.log.postgres.pool import (
    CHANNEL,
    NotificationListener,
    PostgresPool,
    TimedConnection,
)
from searchloop.agent.text import column_values

_MIGRATION_LIMIT = 600.0  # seconds for the migration of a large store
_PERHAPS = "What was sent may be stored all the same: look before you send it again."
_LATER = frozenset({"store_down", "store_refused", "store_busy", "store_slow"})
_MIGRATING = 0x5EA2C41  # the advisory lock under which the tables are made
_DIALECT = (
    ("REAL", "DOUBLE PRECISION"),
    (" BLOB", " BYTEA"),
    (" WITHOUT ROWID", ""),
    ("CREATE TABLE deltas", "CREATE UNLOGGED TABLE deltas"),
    ("id INTEGER PRIMARY KEY", "id BIGSERIAL PRIMARY KEY"),
)
_TERMS = (
    "CREATE TABLE IF NOT EXISTS found_terms (rowid BIGINT PRIMARY KEY, terms tsvector NOT NULL); "
    "CREATE INDEX IF NOT EXISTS found_terms_gin ON found_terms USING gin (terms)"
)
# ANALYZE keeps samples of a column, which would outlive a deleted chat. A type, the same one too,
# throws those away that there are.
_UNSAMPLED = {
    "sessions": {"title": "TEXT", "settings": "TEXT", "workspace": "TEXT"},
    "events": {"data": "TEXT"},
    "deltas": {"data": "TEXT"},
    "runs": {"turn": "TEXT"},
    "found_upto": {"title": "TEXT"},
    "found_terms": {"terms": "tsvector"},
    "files": {"data": "BYTEA", "pages": "TEXT"},
    "projects": {"name": "TEXT", "data": "TEXT"},
}


class PostgresDatabase:
    """See `agent.log.contract.Database`."""

    quick = False
    clock = date = "extract(epoch FROM clock_timestamp())::double precision"
    dialect = "postgres"

    def __init__(self, url: str, steps: Steps) -> None:
        parts = urlsplit(url)  # of several hosts, all are shown
        self.where = f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._process = secrets.token_hex(6)
        self._starting = threading.Lock()
        self._steps, self._current = steps, False
        self.trouble: StoreError | None = None
        self.connections = PostgresPool(url, self.where)
        self._listener = NotificationListener(self.connections.own, self._process)
        try:
            self._prepare()
        except StoreError as error:
            if error.code not in _LATER:  # else the server may come up: the next use tries again
                raise
        self.connections.pool.open()

    def _prepare(self) -> None:
        """Makes or migrates the tables; sets `trouble` if the server only allows reading."""
        with self._starting:
            if self._current:
                return
            try:
                with self.connections.errors(), self.connections.own() as db, db.transaction():
                    self._migrate(db, self._steps)
            except StoreError as error:
                if error.code not in ("newer_store", "store_read_only"):
                    raise
                self.trouble = error
            else:
                self.trouble, self._current = None, True

    @contextmanager
    def _connection(self, *, writes: bool = True) -> Iterator[TimedConnection]:
        if not self._current and (writes or self.trouble is None):
            self._prepare()
        if writes and self.trouble is not None:
            raise self.trouble
        with self.connections.taken() as db:
            yield db

    def _migrate(self, db: TimedConnection, steps: Steps) -> None:
        db.limit = _MIGRATION_LIMIT
        for name in ("statement_timeout", "lock_timeout"):
            db.execute(f"SET LOCAL {name} = 0".encode())
        db.execute(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
        db.execute("CREATE TABLE IF NOT EXISTS searchloop_schema (version INTEGER NOT NULL)")
        row = db.execute("SELECT version FROM searchloop_schema").fetchone()
        found = row[0] if row else 0
        if found > len(steps):
            raise newer(self.where, found, len(steps), "name another database")
        if found == len(steps):
            return
        for statement in (statement for step in steps[found:] for statement in step):
            for sqlite, postgres in _DIALECT:
                statement = statement.replace(sqlite, postgres)
            if statement.startswith("CREATE VIRTUAL TABLE IF NOT EXISTS found_terms"):
                statement = _TERMS
            db.execute(statement.encode())
        for table, columns in _UNSAMPLED.items():
            each = (
                f"ALTER {name} TYPE {kind}, ALTER {name} SET STATISTICS 0"
                for name, kind in columns.items()
            )
            db.execute(f"ALTER TABLE {table} {', '.join(each)}".encode())
        db.execute("DELETE FROM searchloop_schema")
        db.execute("INSERT INTO searchloop_schema VALUES (%s)", (len(steps),))

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[_Statements]:
        # Every commit waits for the disk, unless the server is set otherwise.
        with self._connection() as db, db.transaction():
            yield _Statements(db)

    @contextmanager
    def reading(self) -> Iterator[_Statements]:
        with self._connection(writes=False) as db:
            yield _Statements(db)

    def append(self, batches: Sequence[Batch]) -> list[int | None]:
        """Raises UnsureError when the connection broke before the answer came."""
        values, sent = append_values(batches, self._process), False
        try:
            with self._connection() as db:
                sent = True
                rows = db.execute(APPEND, values).fetchall()
        except StoreError as error:
            if not sent or error.code != "store_down":
                raise
            raise UnsureError(error.code, error.message, f"{error.remedy} {_PERHAPS}") from error
        lasts = {row[0]: int(row[1]) for row in rows}
        return [lasts.get(batch.session) for batch in batches]

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Changes nothing: this store is not `quick`, so its callers use threads."""
        yield

    def listen(self, heard: Heard) -> None:
        self._listener.begin(heard)

    def leave_nothing(self) -> None:
        """Does nothing: when its files lose what was deleted is up to the server's VACUUM."""

    def check(self) -> list[str]:
        """Checks only that the server answers: PostgreSQL checks its own files."""
        with self.reading() as db:
            db.execute("SELECT 1").fetchone()
        return []

    def close(self) -> None:
        self._listener.end()
        self.connections.pool.close()


class _Statements:
    """A connection with `?` for each value, as in SQLite."""

    def __init__(self, db: TimedConnection) -> None:
        self._db = db

    def execute(self, query: str, values: Sequence[Any] = ()) -> Any:
        given = column_values(values) or None
        return self._db.execute(query.replace("?", "%s").encode(), given)


MOST_BYTES = 7900  # of a notification, with room for the number that the server fills in

APPEND = Path(__file__).with_name("append.sql").read_text("utf-8")


def append_values(batches: Sequence[Batch], process: str) -> Mapping[str, Any]:
    """Returns the values of APPEND, which answers (session, last number) of each stored batch."""
    of_batches = [
        (b.session, b.fence, b.after, len(b.rows), b.questions, b.at, b.clears > 0, b.ends, news)
        for b, news in ((batch, _news(batch, process)) for batch in batches)
    ]
    of_events = [
        (b.session, place, kind, text, unnumbered(b.session, kind, text, b.at))
        for b in batches
        for place, kind, text in b.lasting
    ]
    return {
        **_columns("sessions fences afters counts questions times clears ends news", of_batches),
        **_columns("owners places types texts sums", of_events),
        "deltas": list(DELTAS),
        "modulus": MODULUS,
        "channel": CHANNEL,
        "waiting": "on" if any(batch.durable for batch in batches) else "off",
    }


def _columns(names: str, rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    return dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=True))


def _news(batch: Batch, process: str) -> str:
    """Returns a notification up to the last event's number; with the events, if they fit."""
    about = f'{{"from":"{process}","session":{json.dumps(batch.session)}'
    events = ",".join(f"[{json.dumps(kind)},{text}]" for kind, text in batch.rows)
    whole = f'{about},"at":{batch.at!r},"events":[{events}],"last":'
    return whole if len(whole.encode()) < MOST_BYTES else f'{about},"last":'
