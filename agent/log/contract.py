"""The protocol of a store of the event log, and its tables.

Its users write SQL that every store understands, with `?` for values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from searchloop.agent.errors import StoreError
from searchloop.agent.log.events import Event
from searchloop.agent.text import column_text, plain, to_json

Steps = Sequence[Sequence[str]]
Heard = Callable[[Mapping[str, Any]], None]
Pending = tuple[str, Mapping[str, Any]]

_CLEARING = frozenset({"message", "run_resumed"})  # events that replace the deltas before them


@dataclass(frozen=True, slots=True)
class RunDeltas:
    """Deltas of one run, to be appended to its session."""

    session: str
    events: Sequence[Pending]
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one session that are stored together; they may replace (`clears`) its deltas.

    `fence` is the writer's, None without a lease; `after` is what the last event's number must be.
    """

    session: str
    rows: Sequence[tuple[str, str]]
    at: float
    questions: int = 0
    fence: int | None = None
    after: int | None = None
    clears: bool = False
    durable: bool = False
    data: Sequence[Mapping[str, Any]] = ()  # of each row, before serialization

    def events(self, last: int) -> list[Event]:
        """Returns the stored events, of which the last one has this number."""
        both = zip(self.rows, self.data, strict=True)
        first = last - len(self.data) + 1
        return [Event(seq, row[0], data, self.at) for seq, (row, data) in enumerate(both, first)]


def batch_of(
    session: str,
    events: Sequence[Pending],
    *,
    durable: bool = False,
    fence: int | None = None,
    after: int | None = None,
) -> Batch:
    """Makes a batch of now; serializes each event once, for the store and for other processes."""
    kinds, texts, data = [kind for kind, _ in events], list[str](), list[Mapping[str, Any]]()
    for _, each in events:
        try:
            text = to_json(each)
        except (ValueError, TypeError):
            text = to_json(each := plain(each))
        texts.append(text)
        data.append(each)
    return Batch(
        column_text(session) or "",
        list(zip(kinds, texts, strict=True)),
        time.time(),
        questions=kinds.count("user_message"),
        fence=fence,
        after=after,
        clears=not _CLEARING.isdisjoint(kinds),
        durable=durable,
        data=data,
    )


class Statements(Protocol):
    """An open transaction."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Any:
        """Executes one statement, with `?` for each value; returns a cursor of the DB-API."""


class Database(Protocol):
    """A store. Any thread may call every method; errors are StoreError."""

    where: str  # its place for messages, without a password
    quick: bool  # a statement usually takes less time than handing it to a thread
    clock: str  # SQL for the seconds of the one clock that all processes on this store share
    like: str  # SQL operator that compares a text with a pattern, ignoring case
    text_of_data: str  # SQL for the field `text` of an event's data

    @property
    def trouble(self) -> StoreError | None:
        """The reason why the store can only be read; None as a rule."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Statements]:
        """Opens a transaction; with `durable` it, and all before it, survives a power cut."""

    def reading(self) -> AbstractContextManager[Statements]:
        """Opens a connection for one SELECT."""

    def append(self, batches: Sequence[Batch]) -> list[int | None]:
        """Stores batches of different sessions in one transaction; returns each one's last number.

        None means not stored: the session is gone, or `fence` or `after` no longer holds.
        """

    def at_once(self) -> AbstractContextManager[None]:
        """In here this thread does not wait for a lock: it gets the error `locked` instead."""

    def tell(self, news: Mapping[str, Any]) -> None:
        """Sends news to the `listen` of other processes, if the store has a channel for that."""

    def listen(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        """Calls `heard` on a thread with news of other processes while they are `wanted`.

        Empty news say that some may be lost. Callers repeat the call when they want news again.
        """

    def check(self) -> list[str]:
        """Returns damage of the store itself, a line each."""

    def close(self) -> None:
        """Closes every connection."""


def rows_of(db: Database, query: str, values: Sequence[Any] = ()) -> list[Any]:
    """Returns all rows of a SELECT; after damage it asks once more, of what can still be read."""

    def rows() -> list[Any]:
        with db.reading() as statements:
            return list(statements.execute(query, values).fetchall())

    try:
        return rows()
    except StoreError as error:
        if error.code != "damaged":
            raise
        return rows()


_FIRST = (
    """CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, model TEXT NOT NULL, mode TEXT NOT NULL,
  search TEXT NOT NULL, search_path TEXT NOT NULL, workspace TEXT,
  created REAL NOT NULL, updated REAL NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX IF NOT EXISTS sessions_updated ON sessions(updated)",
    """CREATE TABLE IF NOT EXISTS events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID""",
    """CREATE INDEX IF NOT EXISTS events_deltas ON events(session, type)
  WHERE type IN ('text_delta', 'thinking_delta')""",
    """CREATE TABLE IF NOT EXISTS runs (
  session TEXT PRIMARY KEY, run_id TEXT NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL)""",
)
# Further settings of a session, as one JSON object: a new setting needs no new column.
_SETTINGS = ("ALTER TABLE sessions ADD COLUMN settings TEXT NOT NULL DEFAULT '{}'",)
# Deltas are temporary and have a table of their own. A run has a lease: `fence` grows with each
# holder, `beat` is the time of its last sign of life, `takeovers` counts its changes of holder,
# `turn` is its question. Signals are requests to the holder of the run.
_LEASES = (
    """CREATE TABLE deltas (
  session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID""",
    """INSERT INTO deltas SELECT session, seq, type, data, at FROM events
  WHERE type IN ('text_delta', 'thinking_delta')""",
    "DELETE FROM events WHERE type IN ('text_delta', 'thinking_delta')",
    "DROP INDEX events_deltas",
    "ALTER TABLE sessions ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN turn TEXT NOT NULL DEFAULT '{}'",
    "UPDATE runs SET beat = 0",  # by another clock
    """CREATE TABLE signals (
  id TEXT PRIMARY KEY, session TEXT NOT NULL, run_id TEXT NOT NULL, data TEXT NOT NULL,
  at REAL NOT NULL)""",
    "CREATE INDEX signals_session ON signals(session)",
)

# See `agent.log.events`; NULL for what was written before.
_CHECKSUMS = ("ALTER TABLE events ADD COLUMN checksum BIGINT",)

# Whose a session is, by the name that a proxy gives; empty for whoever has the token. What people
# used is counted by itself, because it outlives their sessions.
_PEOPLE = (
    "ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_owner ON sessions(owner, updated)",
    """CREATE TABLE used (
  owner TEXT NOT NULL, day TEXT NOT NULL, answers INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL, searches INTEGER NOT NULL, pages INTEGER NOT NULL,
  cost_usd REAL NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (owner, day))""",
)

# See `agent.log.attachments`; `pages` is a JSON list of texts.
_ATTACHMENTS = (
    """CREATE TABLE IF NOT EXISTS files (
  digest TEXT PRIMARY KEY, data BLOB NOT NULL, pages TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS attachments (
  session TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (session, digest)) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS attachments_digest ON attachments(digest)",
)

STEPS: tuple[tuple[str, ...], ...] = (
    *(_FIRST, _SETTINGS, _LEASES, _CHECKSUMS, _PEOPLE),
    _ATTACHMENTS,
)

_COUNTED = ("run_finished", "second_reading")  # the events that tell of a usage of their own
_COUNTS = ("input_tokens", "output_tokens", "searches", "pages")
_SUMS = ("answers", *_COUNTS, "cost_usd", "unpriced")
_COUNT = (
    f"INSERT INTO used (owner, day, {', '.join(_SUMS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, day) DO UPDATE SET "
    + ", ".join(f"{name} = used.{name} + excluded.{name}" for name in _SUMS)
)


def count_used(db: Database, person: str, events: Sequence[Pending]) -> None:
    """Adds what stored events used to a person's day; a crash before this loses one count."""
    for kind, data in events:
        usage = data.get("usage") if kind in _COUNTED else None
        if not isinstance(usage, Mapping):
            continue
        counts, cost = [int(usage.get(name) or 0) for name in _COUNTS], usage.get("cost_usd")
        day, answers = time.strftime("%Y-%m-%d", time.gmtime()), int(kind == _COUNTED[0])
        with db.transaction() as open_one:
            row = (person, day, answers, *counts, cost or 0.0, int(cost is None))
            open_one.execute(_COUNT, row)


def used(db: Database, person: str | None) -> list[dict[str, Any]]:
    """Returns what each person used on each day, or one of them; cost without unpriced answers."""
    where, values = (" WHERE owner = ?", [person]) if person is not None else ("", [])
    query = f"SELECT owner, day, {', '.join(_SUMS)} FROM used{where} ORDER BY day DESC, owner"
    names = ("person", "day", *_SUMS)
    return [dict(zip(names, row, strict=True)) for row in rows_of(db, query, values)]
