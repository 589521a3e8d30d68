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
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from psycopg.errors import FeatureNotSupported

from agent.errors import StoreError, UnsureError
from agent.events import DELTAS
from agent.store.contract import Batch, Heard, Rows, Steps
from agent.store.faults import newer
from agent.store.notices import Notices
from agent.store.postgres_append import (
    APPEND,
    CHANNEL,
    DELTAS_OF_ALL,
    append_values,
    deltas_values,
)
from agent.store.postgres_link import Link, Links

T = TypeVar("T")

_LISTENING = 5.0  # seconds of silence after which it is asked whether news come through
_AWHILE = 600.0  # seconds that bringing a large store up to date may take
_PERHAPS = "What was sent may be stored all the same: look before you send it again."
_LATER = frozenset({"store_down", "store_refused", "store_busy", "store_slow"})
_MIGRATING = 0x5EA2C41  # the advisory lock under which the tables are made
_NO_DELTAS = "FROM (SELECT * FROM events WHERE false) AS deltas"
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
        self.where = _shown(url)
        self._process = secrets.token_hex(6)
        self._starting = threading.Lock()
        self._steps, self._current = steps, False
        self.trouble: StoreError | None = None
        self.links = Links(url, self.where)
        self._notices = Notices(self.links.own, self._ring, self._process, _LISTENING)
        try:
            self._prepare()
        except StoreError as error:
            if error.code not in _LATER:  # else it may come yet: whoever uses it tries again
                raise
        self.links.open()

    def _prepare(self) -> None:
        """Makes or updates the tables, once the server answers; else they can be read at most."""
        with self._starting:
            if self._current:
                return
            try:
                with self.errors():
                    self._bring(self._steps)
            except StoreError as error:
                if error.code not in ("newer_store", "store_read_only"):
                    raise
                self.trouble = error
            else:
                self.trouble, self._current = None, True

    @contextmanager
    def _connection(self, *, writes: bool = True) -> Iterator[Link]:
        if not self._current and (writes or self.trouble is None):
            self._prepare()
        if writes and self.trouble is not None:
            raise self.trouble
        with self.links.taken() as db:
            yield db

    def _bring(self, steps: Steps) -> None:
        with self.links.own() as db:
            self.links.check_pooler(db)
            with db.transaction():
                self._brought(db, steps)

    def _brought(self, db: Link, steps: Steps) -> None:
        db.limit = _AWHILE
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
            for ours, theirs in _SPOKEN:
                statement = statement.replace(ours, theirs)
            db.execute(statement.encode())
        db.execute("DELETE FROM searchloop_schema")
        db.execute("INSERT INTO searchloop_schema VALUES (%s)", (len(steps),))

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[_Spoken]:
        """See Database: as the server is set, which by default waits for the disk."""
        with self._connection() as db, db.transaction():
            yield _Spoken(db)

    @contextmanager
    def reading(self) -> Iterator[_Spoken]:
        """See Database."""
        with self._connection(writes=False) as db:
            yield _Read(db)

    def append(self, batch: Batch) -> int | None:
        """See Database. Raises UnsureError when the connection broke before the answer came."""
        values = append_values(batch, self._process)
        row = self._settled(
            lambda db: db.execute(APPEND, values).fetchone(), lambda: self._found(batch)
        )
        return None if row is None else int(row[0])

    def append_deltas(self, batches: Sequence[Batch]) -> list[int | None]:
        """See Database. Raises UnsureError as `append` does."""
        values = deltas_values(batches, self._process)
        rows = self._settled(
            lambda db: db.execute(DELTAS_OF_ALL, values).fetchall(),
            lambda: self._deltas_found(batches),
        )
        lasts = {row[0]: int(row[1]) for row in rows}
        return [lasts.get(batch.session) for batch in batches]

    def _settled(self, ask: Callable[[Link], T], found: Callable[[], T | None]) -> T:
        """What `ask` comes to, though its connection may break before the answer comes.

        It is looked up then whether it was done. If not, and if it is certain that the server is
        not still at it, it is asked once more.
        """
        for again in (True, False):
            used: list[Link] = []
            try:
                with self._connection() as db:
                    used.append(db)
                    return ask(db)
            except StoreError as error:
                if not used or error.code != "store_down":
                    raise
                over, there = self._looked_up(used[0], found)
                if there is not None:
                    return there
                if over and not again:
                    raise
                if not over:
                    remedy = f"{error.remedy} {_PERHAPS}"
                    raise UnsureError(error.code, error.message, remedy) from error
        raise AssertionError("the second time ends it")

    def _looked_up(self, lost: Link, found: Callable[[], T | None]) -> tuple[bool, T | None]:
        """Whether the server is done with a connection that broke, and what came of it."""
        with suppress(StoreError):
            return self.links.settled(lost), found()
        return False, None

    def _found(self, batch: Batch) -> tuple[int] | None:
        """The last number of events whose append was not answered, if they are there."""
        kept = [row for row in batch.rows if row[0] not in DELTAS]
        if not kept:
            rows = self._deltas_found([batch])
            return (rows[0][1],) if rows else None
        query = "SELECT type, data, seq FROM events WHERE session = ? AND at = ? ORDER BY seq"
        with self.reading() as db:
            found = db.execute(query, (batch.session, batch.at)).fetchall()
            if [tuple(row[:2]) for row in found] == kept:
                kinds = [kind for kind, _ in reversed(batch.rows)]
                after = next(n for n, kind in enumerate(kinds) if kind not in DELTAS)
                return (int(found[-1][2]) + after,)
        return None

    def _deltas_found(self, batches: Sequence[Batch]) -> list[tuple[str, int]] | None:
        """Sessions and last numbers of deltas that were not answered, if there are any of them."""
        query = "SELECT max(seq) FROM deltas WHERE session = ? AND at = ?"
        with self.reading() as db:
            lasts = [db.execute(query, (b.session, b.at)).fetchone()[0] for b in batches]
        pairs = zip(batches, lasts, strict=True)
        return [(b.session, last) for b, last in pairs if last is not None] or None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Nobody calls this: a store that has to be waited for is asked on a thread."""
        yield

    def errors(self) -> AbstractContextManager[None]:
        """See Database."""
        return self.links.errors()

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
        with self.links.taken(1.0) as db:
            db.execute("SELECT pg_notify(%s, '')", (CHANNEL,))

    def close(self) -> None:
        """See Database."""
        self._notices.end()
        self.links.pool.close()


class _Spoken:
    """A connection that takes `?` for a value, as SQLite does."""

    def __init__(self, db: Link) -> None:
        self._db = db

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """See `agent.store.contract.Statements`."""
        return cast(Rows, self._db.execute(query.replace("?", "%s").encode(), values or None))


class _Read(_Spoken):
    """One to read with, on a standby too, which has nothing that was kept without a log."""

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """See Statements."""
        try:
            return super().execute(query, values)
        except FeatureNotSupported:
            return super().execute(query.replace("FROM deltas", _NO_DELTAS), values)


def _shown(url: str) -> str:
    """The address without user and password: of several hosts, all."""
    parts = urlsplit(url)
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
