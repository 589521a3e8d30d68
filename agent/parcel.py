"""What is given to the event log at one moment for one session.

The events are dumped once: the same text goes to the store and to other processes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.events import Event
from agent.store.contract import Batch
from agent.text import plain, to_json

Pending = tuple[str, Mapping[str, Any]]

_CLEARING = frozenset({"message", "run_resumed"})  # what takes the place of the deltas before it


@dataclass(frozen=True, slots=True)
class Passing:
    """Deltas of a run, on their way to its session."""

    session: str
    events: Sequence[Pending]
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Parcel:
    """Events on their way: `data` of each, and how the store is given them."""

    batch: Batch
    data: Sequence[Mapping[str, Any]]

    def events(self, last: int) -> list[Event]:
        """The events as they were stored, the last one under this number."""
        at, first = self.batch.at, last - len(self.data) + 1
        kinds = [kind for kind, _ in self.batch.rows]
        both = zip(kinds, self.data, strict=True)
        return [Event(seq, kind, data, at) for seq, (kind, data) in enumerate(both, first)]


def parcel(
    session_id: str,
    events: Sequence[Pending],
    *,
    durable: bool = False,
    fence: int | None = None,
    after: int | None = None,
) -> Parcel:
    """These events, said now; see `EventLog.append` for the rest."""
    kinds = [kind for kind, _ in events]
    given = [_dump(data) for _, data in events]
    batch = Batch(
        session_id,
        [(kind, text) for kind, (_, text) in zip(kinds, given, strict=True)],
        time.time(),
        questions=kinds.count("user_message"),
        fence=fence,
        after=after,
        clears=not _CLEARING.isdisjoint(kinds),
        durable=durable,
    )
    return Parcel(batch, [data for data, _ in given])


def _dump(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    try:
        return data, to_json(data)
    except (ValueError, TypeError):
        return (data := plain(data)), to_json(data)
