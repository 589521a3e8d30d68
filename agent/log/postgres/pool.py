"""The pool of connections to PostgreSQL, and the listener for notifications.

A connection may end, freeze or be refused at any moment: every wait has a limit.
"""

# An editor may not have the extra that this module needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from json import JSONDecodeError
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from searchloop.agent.errors import StoreError
from searchloop.agent.log.contract import Heard, fault

CONNECTIONS = 10
PATIENCE = 5.0  # seconds for a connection
LIMIT = 15.0  # seconds for an answer, after which the server counts as gone
# Limits of our sessions, in milliseconds, in place of the administrator's. The server gives up a
# statement before we do, so that it is certainly undone; a process of ours that freezes in a
# transaction soon loses its locks; and the listener's connection may be idle.
_SESSION = {
    "statement_timeout": 10_000,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 4_000,
    "idle_session_timeout": 0,
    "transaction_timeout": 0,
}
# The first statement: an administrator's limit may be too short for the next one.
_FIRST = f"SET statement_timeout = {_SESSION['statement_timeout']}".encode()
# As a join, because not every version knows each of them.
_BEGIN = f"""
SELECT count(set_config(name, wanted, false)) FROM pg_settings JOIN
    (VALUES {", ".join(f"('{name}', '{value}')" for name, value in _SESSION.items())})
    AS own(name, wanted) USING (name)"""
# A dead host is noticed within ten seconds instead of two hours.
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
_RECONNECT = 2.0  # seconds; then the next request tries again, with no growing pauses
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
# For a refused connection the driver has no code, only the server's text.
_FULL = re.compile(r"too many (clients|connections)|connection slots")
_NOT_YET = re.compile(r"starting up|shutting down|recovery mode|not accepting")

CHANNEL = "searchloop"
_LOOK = 0.5  # seconds after which the listener sees that it is to end
logging.getLogger("psycopg").addHandler(logging.NullHandler())  # our errors say what it would say


class Refused(psycopg.OperationalError):
    """The server refused a connection."""


class TimedConnection(psycopg.Connection[Any]):
    """A connection with a time limit for each answer."""

    connections: PostgresPool
    limit: float | None = None  # in seconds, in place of that of `connections`

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, connections: PostgresPool, **rest: Any
    ) -> TimedConnection:
        """Connects with our limits. Raises psycopg.Error, and saves a refusal in `connections`."""
        try:
            db = super().connect(conninfo, **rest)
        except psycopg.OperationalError as error:
            connections.refused = Refused(str(error))
            raise connections.refused from error
        connections.refused, db.connections = None, connections
        try:
            db.execute(_FIRST)
            db.execute(_BEGIN)
        except BaseException:
            db.close()
            raise
        return db

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Limits the time to an answer, and closes the connection if none comes.

        A `timeout` is that of the listener, which has a limit of its own.
        """
        try:
            return super().wait(gen, interval, timeout or self.limit or self.connections.limit)
        except psycopg.OperationalError as error:
            if timeout is None and error.sqlstate is None:
                self.close()
            raise


def _unbroken(db: TimedConnection) -> None:
    """Raises psycopg.Error for a connection that ended while it was idle; sends nothing."""
    try:
        db.pgconn.consume_input()
        db.pgconn.consume_input()  # the end comes behind the server's last words
    except psycopg.Error:
        db.connections.pool.drain()  # the others have probably ended as well
        raise


class PostgresPool:
    """The connections of one store, with limits in seconds for an answer and for a connection."""

    def __init__(self, url: str, where: str) -> None:
        """Opens nothing yet. `where` is the address for messages, without a password."""
        self._url, self._where = url, where
        self.limit, self.patience = LIMIT, PATIENCE
        self.refused: Refused | None = None  # the error of the last attempt to connect
        self.pool: ConnectionPool[TimedConnection] = ConnectionPool(
            url,
            connection_class=TimedConnection,
            min_size=1,
            max_size=CONNECTIONS,
            reconnect_timeout=_RECONNECT,
            kwargs={**_ALIVE, "connections": self},
            check=_unbroken,
            open=False,
        )

    @contextmanager
    def taken(self, patience: float | None = None) -> Iterator[TimedConnection]:
        """Takes a connection of the pool once one is free. Raises StoreError."""
        with self.errors(), self.pool.connection(patience or self.patience) as db:
            yield db

    @contextmanager
    def own(self) -> Iterator[TimedConnection]:
        """Opens a connection outside the pool. Raises psycopg.Error."""
        with closing(TimedConnection.connect(self._url, connections=self, **_ALIVE)) as db:
            yield db

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Converts errors in here to StoreError."""
        try:
            yield
        except PoolTimeout as error:
            raise self._none_free(error) from error
        except JSONDecodeError as error:
            raise fault("damaged", self._where, _line(error)) from error
        except psycopg.Error as error:
            code = _code(error)
            if code == "store_down" or error.sqlstate in _STANDBY:
                self.pool.drain()  # new connections may reach another server by now
            raise fault(code, self._where, _line(error)) from error

    def _none_free(self, error: Exception) -> StoreError:
        if self.refused is not None:
            return fault(_code(self.refused), self._where, _line(self.refused))
        taken = self.pool.get_stats()["pool_size"] == CONNECTIONS
        return fault("store_busy" if taken else "store_down", self._where, error)


def _code(error: psycopg.Error) -> str:
    """Returns the code of the StoreError for an error of psycopg."""
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
    """Returns the first line: the rest is the statement, which may quote a chat."""
    return str(error).strip().partition("\n")[0]


class NotificationListener:
    """Listens on a thread and on a connection of its own, on a new one when that breaks."""

    def __init__(
        self, connected: Callable[[], AbstractContextManager[TimedConnection]], process: str
    ) -> None:
        """Ignores what `process` itself has changed."""
        self._connected, self._process = connected, process
        self._starting = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, heard: Heard) -> None:
        """Starts the thread unless it runs already."""
        with self._starting:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._hear, args=(heard,), name="postgres listener", daemon=True
                )
                self._thread.start()

    def _hear(self, heard: Heard) -> None:
        while not self._closed.is_set():
            try:
                with self._connected() as db:
                    db.execute(f"LISTEN {CHANNEL}".encode())
                    heard({})
                    while not self._closed.is_set():
                        for note in db.notifies(timeout=_LOOK, stop_after=1):
                            self._pass_on(note.payload, heard)
            except (psycopg.Error, StoreError):
                self._closed.wait(_LOOK)

    def _pass_on(self, payload: str, heard: Heard) -> None:
        with suppress(ValueError, AttributeError):  # of another program on the same channel
            news = json.loads(payload)
            if news.get("from") != self._process:
                heard(news)

    def end(self) -> None:
        """Ends the thread."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
