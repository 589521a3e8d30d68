"""The event log on PostgreSQL, shared by any number of processes on any number of machines.

An append is one statement and one way there and back, and so are the deltas of all runs that speak
at one moment. It tells the other processes what was appended, so that they need not ask. Deltas are
kept in a table without a write-ahead log: if the server itself crashes they are gone, and nothing
else is.
https://www.postgresql.org/docs/current/sql-notify.html
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from agent.errors import ConfigError, StoreError, UnsureError
from agent.events import DELTAS
from agent.store.contract import Batch, Heard, Rows, Steps
from agent.store.faults import fault, newer
from agent.store.notices import Notices
from agent.store.postgres_append import (
    APPEND,
    CHANNEL,
    DELTAS_OF_ALL,
    append_values,
    deltas_values,
)

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE = 5.0  # seconds for a connection
_CONNECTIONS = 10
_RECONNECT = 2.0  # then the next request tries anew, instead of waiting ever longer in between
# A host that is gone without a word is noticed within ten seconds, not two hours. Of libpq:
# https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
_ALIVE: Mapping[str, Any] = {
    "autocommit": True,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_MIGRATING = 0x5EA2C41  # the advisory lock under which the tables are made
_SPOKEN = (
    ("REAL", "DOUBLE PRECISION"),
    (" WITHOUT ROWID", ""),
    ("CREATE TABLE deltas", "CREATE UNLOGGED TABLE deltas"),
)


class PostgresDatabase:
    """See `agent.store.contract.Database`."""

    quick = False
    clock = "extract(epoch FROM clock_timestamp())::double precision"
    like = "ILIKE ? ESCAPE '\\'"
    # JSON's way to write NUL is the one that PostgreSQL has no character for.
    text_of_data = "replace(data, '\\u0000', '\\ufffd')::json ->> 'text'"
    locking = " FOR UPDATE"

    def __init__(self, url: str, steps: Steps) -> None:
        self._url = url
        self.where = _shown(url)
        self._process = secrets.token_hex(6)
        self._notices = Notices(self._connected, self._ring, self._process, _PATIENCE)
        self._starting = threading.Lock()
        self._steps, self._current = steps, False
        self.trouble: StoreError | None = None
        _check_driver()
        from psycopg_pool import ConnectionPool

        try:
            self._prepare()
        except StoreError as error:
            if error.code != "store_down":  # else it may come yet: whoever uses it tries again
                raise
        with self.errors():
            self._pool: ConnectionPool[Connection[Any]] = ConnectionPool(
                url,
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=_PATIENCE,
                reconnect_timeout=_RECONNECT,
                kwargs=dict(_ALIVE),
                open=True,
            )

    def _prepare(self) -> None:
        """Makes or updates the tables, once the server answers; else they can be read at most."""
        with self._starting:
            if self._current:
                return
            try:
                with self.errors():
                    self._bring(self._steps)
            except StoreError as error:
                if error.code not in ("newer_store", "read_only"):
                    raise
                self.trouble = error
            else:
                self.trouble, self._current = None, True

    @contextmanager
    def _connection(self, *, writes: bool = True) -> Iterator[Connection[Any]]:
        if not self._current and (writes or self.trouble is None):
            self._prepare()
        if writes and self.trouble is not None:
            raise self.trouble
        with self.errors(), self._pool.connection() as db:
            yield db

    def _bring(self, steps: Steps) -> None:
        with self._connected() as db, db.transaction():
            db.execute(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
            db.execute("CREATE TABLE IF NOT EXISTS searchloop_schema (version INTEGER NOT NULL)")
            row = db.execute("SELECT version FROM searchloop_schema").fetchone()
            found = row[0] if row else 0
            if found > len(steps):
                raise newer(self.where, found, len(steps), "name another database")
            if found == len(steps):
                return
            for statement in (statement for step in steps[found:] for statement in step):
                for ours, theirs in _SPOKEN:
                    statement = statement.replace(ours, theirs)
                db.execute(statement.encode())
            db.execute("DELETE FROM searchloop_schema")
            db.execute("INSERT INTO searchloop_schema VALUES (%s)", (len(steps),))

    @contextmanager
    def _connected(self) -> Iterator[Connection[Any]]:
        import psycopg

        with psycopg.connect(self._url, connect_timeout=int(_PATIENCE), **_ALIVE) as db:
            yield db

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[_Spoken]:
        """See Database: as the server is set, which by default waits for the disk."""
        with self._connection() as db, db.transaction():
            yield _Spoken(db)

    @contextmanager
    def reading(self) -> Iterator[_Spoken]:
        """See Database."""
        with self._connection(writes=False) as db:
            yield _Spoken(db)

    def append(self, batch: Batch) -> int | None:
        """See Database. Raises UnsureError when the connection broke before the answer came."""
        sent = False
        try:
            with self._connection() as db:
                sent = True
                row = db.execute(APPEND, append_values(batch, self._process)).fetchone()
        except StoreError as error:
            if not sent or error.code != "store_down":
                raise
            last = self._found(batch)
            if last is None:
                raise UnsureError(error.code, error.message, error.remedy) from error
            return last
        return None if row is None else int(row[0])

    def append_deltas(self, batches: Sequence[Batch]) -> list[int | None]:
        """See Database."""
        with self._connection() as db:
            rows = db.execute(DELTAS_OF_ALL, deltas_values(batches, self._process)).fetchall()
        lasts = {row[0]: int(row[1]) for row in rows}
        return [lasts.get(batch.session) for batch in batches]

    def _found(self, batch: Batch) -> int | None:
        """The last number of events whose append was not answered, if they are there.

        None says little: the server may still be at it.
        """
        kept = [row for row in batch.rows if row[0] not in DELTAS]
        query = "SELECT type, data, seq FROM events WHERE session = ? AND at = ? ORDER BY seq"
        with suppress(StoreError), self.reading() as db:
            found = db.execute(query, (batch.session, batch.at)).fetchall()
            if kept and [tuple(row[:2]) for row in found] == kept:
                kinds = [kind for kind, _ in reversed(batch.rows)]
                after = next(n for n, kind in enumerate(kinds) if kind not in DELTAS)
                return int(found[-1][2]) + after
        return None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Nobody calls this: a store that has to be waited for is asked on a thread."""
        yield

    @contextmanager
    def errors(self) -> Iterator[None]:
        """See Database."""
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            yield
        except PoolTimeout as error:
            busy = self._pool.get_stats()["pool_size"] == _CONNECTIONS
            raise fault("store_busy" if busy else "store_down", self.where, error) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            with suppress(Exception):  # connections that broke are not handed out again
                self._pool.check()
            code = "disk_full" if isinstance(error, psycopg.errors.DiskFull) else "store_down"
            raise fault(code, self.where, _line(error)) from error
        except (JSONDecodeError, psycopg.DataError, psycopg.IntegrityError) as error:
            raise fault("damaged", self.where, _line(error)) from error
        except psycopg.Error as error:
            code = "read_only" if error.sqlstate in _READ_ONLY else "store_failed"
            raise fault(code, self.where, _line(error)) from error

    def tell(self, news: Mapping[str, Any]) -> None:
        """See Database."""
        with self.reading() as db:
            told = (CHANNEL, json.dumps({"from": self._process, **news}))
            db.execute("SELECT pg_notify(?, ?)", told)

    def listen(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        """See Database."""
        self._notices.begin(heard)

    def check(self) -> list[str]:
        """See Database: PostgreSQL looks after its own files."""
        with self.reading() as db:
            db.execute("SELECT 1").fetchone()
        return []

    def _ring(self) -> None:
        """Tells ourselves nothing."""
        with self.errors(), self._pool.connection(timeout=1) as db:
            db.execute("SELECT pg_notify(%s, '')", (CHANNEL,))

    def close(self) -> None:
        """See Database."""
        self._notices.end()
        self._pool.close()


_READ_ONLY = ("25006", "42501")  # read_only_sql_transaction, insufficient_privilege


class _Spoken:
    """A connection that takes `?` for a value, as SQLite does."""

    def __init__(self, db: Connection[Any]) -> None:
        self._db = db

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """See `agent.store.contract.Statements`."""
        return cast(Rows, self._db.execute(query.replace("?", "%s").encode(), values or None))


def _check_driver() -> None:
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "no_driver",
            f"SEARCHLOOP_DATABASE_URL needs a driver that is not installed ({error}).",
            "pip install 'searchloop[postgres]'",
        ) from error


def _shown(url: str) -> str:
    """The address without user and password."""
    parts = urlsplit(url)
    host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    return f"postgresql://{host}{parts.path}"


def _line(error: Exception) -> str:
    """The first line: the rest is the statement, which may hold what somebody wrote."""
    return str(error).strip().partition("\n")[0]
