"""What a store of the event log has to do.

`agent.log` and `agent.leases` speak SQL that every store understands, with `?` for values; what the
stores say differently is an attribute or a method of `Database`. Errors leave one as StoreError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from agent.errors import StoreError

Steps = Sequence[Sequence[str]]
Heard = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one session that are stored together: (type, JSON) each.

    `fence` is that of the run that writes; None for a writer that holds none. `after` is the number
    that the session's last event must have; None for any. `clears` says that they take the place
    of the deltas there are.
    """

    session: str
    rows: Sequence[tuple[str, str]]
    at: float
    questions: int = 0
    fence: int | None = None
    after: int | None = None
    clears: bool = False
    durable: bool = False


class Rows(Protocol):
    """What a statement came to."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Statements(Protocol):
    """A transaction that is open."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Rows:
        """One statement, `?` for each value."""


class Database(Protocol):
    """A store. Every method may be called from any thread."""

    @property
    def where(self) -> str:
        """Its place as a user may see it: no password."""

    @property
    def quick(self) -> bool:
        """Whether a statement usually takes less time than handing it to a thread."""

    @property
    def clock(self) -> str:
        """SQL for the time in seconds by the one clock that all who use this store share."""

    @property
    def like(self) -> str:
        """SQL: what follows a text to compare it with a pattern, whatever the case."""

    @property
    def text_of_data(self) -> str:
        """SQL for the field `text` of an event's data."""

    @property
    def locking(self) -> str:
        """What makes a SELECT hold its rows until the transaction is over."""

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be written, while what can be read is read; None as a rule."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Statements]:
        """All of it or nothing; with `durable` it, and all before it, outlives a power cut."""

    def reading(self) -> AbstractContextManager[Statements]:
        """One SELECT."""

    def append(self, batch: Batch) -> int | None:
        """Stores the events and returns the last one's number.

        None when the session is gone, the fence is not its newest or `after` is not its last event:
        nothing is stored then.
        """

    def append_deltas(self, batches: Sequence[Batch]) -> list[int | None]:
        """Stores deltas of different sessions in one transaction; see `append` for each."""

    def at_once(self) -> AbstractContextManager[None]:
        """In here this thread waits for nobody: what would have to fails with `locked`."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns what goes wrong in here into StoreError."""

    def tell(self, news: Mapping[str, Any]) -> None:
        """Passes news on to those who `listen` in other processes, where there is a way."""

    def listen(self, heard: Heard, wanted: Callable[[], bool]) -> None:
        """Hands over, on a thread, what other processes tell; empty news: some may be lost.

        A store that has to look for news does so only while they are `wanted`; whoever begins to
        want them calls this again.
        """

    def check(self) -> list[str]:
        """What is wrong with the store itself, a line each."""

    def close(self) -> None:
        """Gives everything back."""


def rows_of(db: Database, query: str, values: Sequence[Any] = ()) -> list[Any]:
    """All rows of a SELECT. What is damaged is asked for twice: by then the store has found out
    how it can be read. Raises StoreError.
    """
    for last in (False, True):
        try:
            with db.reading() as statements:
                return statements.execute(query, values).fetchall()
        except StoreError as error:
            if last or error.code != "damaged":
                raise
    raise AssertionError("the second time ends it")
