"""The check of histories sees what it is there for: each promise broken on purpose, and noticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log.contract import Batch
from searchloop.agent.log.leases import Lease, Leases
from tests.chaos.house import play
from tests.chaos.test_history import Dying, Op, Server, history

pytestmark = pytest.mark.integration

Rows = list[tuple[str, str]]


class Lying(Dying):
    """A store that does something else with a batch than it is told."""

    def __init__(self, path: Path, spoil: Callable[[Batch], Batch]) -> None:
        super().__init__(path)
        self._spoil = spoil

    def append(self, batches: Sequence[Batch]) -> list[int | None]:
        """See SqliteDatabase."""
        return super().append([self._spoil(batch) for batch in batches])


class Careless(Leases):
    """Leases that do not look whether another holds the session."""

    def claim(
        self, session_id: str, run_id: str, owner: str, turn: Mapping[str, Any] | None = None
    ) -> Lease:
        """See Leases."""
        with self._db.transaction() as db:
            db.execute("DELETE FROM runs WHERE session = ?", (session_id,))
        return super().claim(session_id, run_id, owner, turn)


def lying(spoil: Callable[[Rows], Rows]) -> Callable[[Path, list[str]], Server]:
    """Servers whose store keeps other rows than those it is given."""
    return storing(lambda batch: batch._replace(rows=spoil(list(batch.rows))))


def storing(spoil: Callable[[Batch], Batch]) -> Callable[[Path, list[str]], Server]:
    """Servers on such a store."""

    def make(home: Path, saved: list[str]) -> Server:
        server = Server(home, saved)
        server.db.close()
        server.db = Lying(home / "sessions.sqlite3", spoil)
        server.log._db, server.log.leases._db = server.db, server.db
        return server

    return make


def careless(home: Path, saved: list[str]) -> Server:
    """A server that takes any session."""
    server = Server(home, saved)
    server.log.leases = server.runner._leases._leases = Careless(server.db)
    return server


def deaf(home: Path, saved: list[str]) -> Server:
    """A server that says that it has stopped a run, and has not, the first time it is asked."""

    async def nothing(session: str) -> bool:
        server.runner.cancel = obeys  # type: ignore[method-assign]
        return True

    server = Server(home, saved)
    obeys, server.runner.cancel = server.runner.cancel, nothing  # type: ignore[method-assign]
    return server


class Both(list[str]):
    """What is put in here is in another list twice."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__()
        self._kept = kept

    def append(self, what: str, /) -> None:
        """See list."""
        self._kept += [what, what]


def twice(kind: str, mark: str = "") -> Callable[[Rows], Rows]:
    """Keeps a row of this type twice, if it holds the mark."""
    return lambda rows: [
        row for row in rows for _ in range(1 + (row[0] == kind and mark in row[1]))
    ]


def without(kind: str) -> Callable[[Rows], Rows]:
    """Keeps a notice in the place of a row of this type."""
    return lambda rows: [("notice", "{}") if row[0] == kind else row for row in rows]


SEND: list[Op] = [(0, "send"), (3, "send"), (1, "reload")]
SAVE: list[Op] = [
    *((3, "save"), (3, "until approval_requested"), (3, "reload")),
    *((3, "approve"), (3, "until run_finished"), (3, "reload")),
]
SLOW: list[Op] = [(0, "slow"), (3, "reload")]
BROKEN: dict[str, tuple[Callable[[Path, list[str]], Server], list[Op]]] = {
    "question dropped": (lying(without("user_message")), SEND),
    "beginning dropped": (lying(without("run_started")), SEND),
    "end dropped": (lying(without("run_finished")), SEND),
    "question doubled": (lying(twice("user_message")), SEND),
    "answer doubled": (lying(twice("message")), SEND),
    "end doubled": (lying(twice("run_finished")), SEND),
    "end doubled in close_run": (
        lying(twice("run_finished", '"interrupted"')),
        [*SLOW, (2, "lose"), (1, "send")],
    ),
    "end doubled by a stop": (
        lying(twice("run_finished", '"cancelled"')),
        [*SLOW, (2, "lose"), (1, "cancel")],
    ),
    "out of order": (lying(lambda rows: rows[::-1]), SEND),
    "call begun twice": (lying(twice("tool_started")), SAVE),
    "call run twice": (lambda home, saved: Server(home, Both(saved)), SAVE),
    "decision applied twice": (lying(twice("approval_decided")), SAVE),
    "result doubled": (lying(twice("tool_result")), SAVE),
    "two runs at once": (careless, [*SLOW, (1, "send")]),
    "no fence": (storing(lambda batch: batch._replace(fence=None)), [*SLOW, (1, "usurp")]),
    "stop lost": (deaf, [*SLOW, (0, "cancel")]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_noticed(name: str) -> None:
    """The same history is fine with servers as they are."""
    make, ops = BROKEN[name]
    play(history(ops))
    with pytest.raises(AssertionError):
        play(history(ops, make))
