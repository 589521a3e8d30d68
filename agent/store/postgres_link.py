"""Connections to PostgreSQL: none waits for ever, and none that has ended is used.

What a server, its administrator or the way to it may do to a connection at any moment is dealt
with here: it may be ended, cut, frozen, refused, or only be allowed to read.
"""

from __future__ import annotations

import re
import select
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from json import JSONDecodeError
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from agent.errors import StoreError
from agent.store.faults import fault

T = TypeVar("T")

CONNECTIONS = 10
PATIENCE = 5.0  # seconds for a connection
LIMIT = 15.0  # seconds for an answer, after which the server counts as gone
# What holds for our sessions on the server, whatever its administrator has set for others: a
# statement that waits is given up there before we give up here, so that it is certain to be
# undone; a process of ours that is frozen in a transaction keeps no other from the runs that it
# held; and the connection that waits for news may be idle. Milliseconds.
_SESSION = {
    "statement_timeout": 10_000,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 4_000,
    "idle_session_timeout": 0,
    "transaction_timeout": 0,
}
# Before anything else: an administrator's limit may be too short to set ours under it.
_FIRST = f"SET statement_timeout = {_SESSION['statement_timeout']}".encode()
# As a join, because not every version knows each of them.
_BEGIN = f"""
SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
  (SELECT count(set_config(name, wanted, false)) FROM pg_settings JOIN
    (VALUES {", ".join(f"('{name}', '{value}')" for name, value in _SESSION.items())})
    AS own(name, wanted) USING (name))"""
_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
)
# A host that is gone without a word is noticed within ten seconds, not two hours. Of libpq:
# https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES
_ALIVE: Mapping[str, Any] = {
    "autocommit": True,
    "connect_timeout": int(PATIENCE),
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "fallback_application_name": "searchloop",
}
_RECONNECT = 2.0  # then the next request tries anew, instead of waiting ever longer in between
# https://www.postgresql.org/docs/current/errcodes-appendix.html
# read_only_sql_transaction; and feature_not_supported, of a standby about tables without a log
_STANDBY = ("25006", "0A000")
_CODES = {
    **dict.fromkeys(_STANDBY, "store_read_only"),
    "42501": "store_read_only",  # insufficient_privilege
    "53100": "disk_full",
    "53200": "no_memory",
    "53300": "store_busy",  # too_many_connections
    "55P03": "store_slow",  # lock_not_available
    "57014": "store_slow",  # query_canceled
    "40P01": "store_slow",  # deadlock_detected
}
# Why a connection was refused has no code that the driver could be asked for.
_FULL = re.compile(r"too many (clients|connections)|connection slots")
_NOT_YET = re.compile(r"starting up|shutting down|recovery mode|not accepting")
_never = threading.Event()  # to wait a moment between two looks


class Silent(psycopg.OperationalError):
    """The server has not answered in time."""


class Refused(psycopg.OperationalError):
    """There was no connection to be had."""


class Link(psycopg.Connection[Any]):
    """A connection whose answers have to come within the limit of its `links`.

    `backend` tells its process on the server from any other: number and start.
    """

    links: Links
    limit: float | None = None  # where it is another one
    backend: tuple[int, object] = (0, None)

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, links: Links, **rest: Any
    ) -> Link:
        """As in psycopg, with our limits; raises psycopg.Error, which `links` remembers."""
        try:
            db = super().connect(conninfo, **rest)
        except psycopg.OperationalError as error:
            links.refused = Refused(str(error))
            raise links.refused from error
        links.refused, db.links = None, links
        try:
            db.execute(_FIRST)
            row = db.execute(_BEGIN).fetchone()
            db.backend = (row[0], row[1]) if row else db.backend
        except BaseException:
            db.close()
            raise
        return db

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As in psycopg; raises Silent, and is closed, when nothing comes for too long."""
        if timeout is not None:  # of one who waits for news, and knows how long
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(_bounded(gen, self.limit or self.links.limit), interval)
        except Silent:
            self.close()
            raise


def _bounded(gen: Generator[Any, Any, T], limit: float) -> Generator[Any, Any, T]:
    """The same generator of psycopg's, ended when nothing has come for too long."""
    until = time.monotonic() + limit
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > until:
                raise Silent(f"no answer within {limit:g} s")
            wanted = gen.send(ready)
    except StopIteration as done:
        value: T = done.value
        return value


def _unbroken(db: Link) -> None:
    """Raises psycopg.Error for a connection that was ended while nobody used it; asks nobody."""
    if _readable(db):
        try:
            db.pgconn.consume_input()  # what else may come unasked is of no interest
            if _readable(db):
                raise psycopg.OperationalError("the connection has ended")
        except psycopg.Error:
            db.links.pool.drain()  # the others will have ended as well
            raise


def _readable(db: Link) -> bool:
    if not hasattr(select, "poll"):  # elsewhere `select` knows any number of sockets
        return bool(select.select([db.pgconn.socket], [], [], 0)[0])
    way = select.poll()
    way.register(db.pgconn.socket, select.POLLIN)
    return bool(way.poll(0))


class Links:
    """The connections of one store. `where` is its address as a user may see it.

    `limit` and `patience` are seconds to wait for an answer and for a connection.
    """

    def __init__(self, url: str, where: str) -> None:
        """Nothing is opened before `open`."""
        self._url, self._where = url, where
        self.limit, self.patience = LIMIT, PATIENCE
        self.refused: Refused | None = None  # why the last connection was not to be had
        self.pool: ConnectionPool[Link] = ConnectionPool(
            url,
            connection_class=Link,
            min_size=1,
            max_size=CONNECTIONS,
            reconnect_timeout=_RECONNECT,
            kwargs={**_ALIVE, "links": self},
            check=_unbroken,
            open=False,
        )

    def open(self) -> None:
        """Connections are made from now on."""
        self.pool.open()

    @contextmanager
    def taken(self, patience: float | None = None) -> Iterator[Link]:
        """A connection that others use as well, once one is free. Raises StoreError."""
        with self.errors(), self.pool.connection(patience or self.patience) as db:
            yield db

    @contextmanager
    def own(self) -> Iterator[Link]:
        """A connection for this alone. Raises psycopg.Error."""
        with closing(Link.connect(self._url, links=self, **_ALIVE)) as db:
            yield db

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what goes wrong in here into StoreError."""
        try:
            yield
        except PoolTimeout as error:
            raise self._none_free(error) from error
        except JSONDecodeError as error:
            raise fault("damaged", self._where, _line(error)) from error
        except psycopg.Error as error:
            code = _code(error)
            if code == "store_down" or error.sqlstate in _STANDBY:
                self.pool.drain()  # the others are no better; another server may be, by now
            raise fault(code, self._where, _line(error)) from error

    def _none_free(self, error: Exception) -> StoreError:
        if self.refused is not None:
            return fault(_code(self.refused), self._where, _line(self.refused))
        taken = self.pool.get_stats()["pool_size"] == CONNECTIONS
        return fault("store_busy" if taken else "store_down", self._where, error)

    def settled(self, lost: Link) -> bool:
        """Whether a connection that broke certainly does nothing more on the server.

        One that the server still takes for alive is ended there, and waited for. Raises StoreError
        when the server cannot be asked.
        """
        until = time.monotonic() + self.patience
        with self.taken() as db:
            while db.execute(_END, lost.backend).fetchone():
                if time.monotonic() > until:
                    return False
                _never.wait(0.01)
        return True

    def check_pooler(self, db: Link) -> None:
        """Raises StoreError when what we say on one connection may reach the server on another.

        `db` is in no transaction: a pooler that gives it to somebody else does so now.
        """
        if db.backend[0] == db.info.backend_pid:  # nobody in between answered when we connected
            return
        with self.own() as other:
            try:
                with other.transaction():
                    shared = _pid(other) == db.backend[0] or _pid(db) != db.backend[0]
            except psycopg.Error as error:  # one that knows no transactions
                raise fault("store_pooler", self._where, _line(error)) from error
        if shared:
            raise fault("store_pooler", self._where, "two connections of ours are one there")


def _pid(db: Link) -> int:
    row = db.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


def _code(error: psycopg.Error) -> str:
    """Which of our words this is about."""
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return "damaged"
    if error.sqlstate in _CODES:
        return _CODES[error.sqlstate]
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return "store_failed"
    why = str(error)
    if not isinstance(error, Refused) or "FATAL" not in why or _NOT_YET.search(why):
        return "store_down"
    return "store_busy" if _FULL.search(why) else "store_refused"


def _line(error: Exception) -> str:
    """The first line: the rest is the statement, which may hold what somebody wrote."""
    return str(error).strip().partition("\n")[0]
