"""Which turns of a chat count: a question asked anew stands beside the old one, and one is shown.

A turn is a `user_message` with everything up to the next. The log only grows, so going back is an
event like any other, and the turns form a tree:

- `user_message` with `replaces` stands beside the turn of that number: both follow the same turn,
- `branch_chosen` shows another of the turns that stand beside each other, and what followed it,
- `turn_removed` takes a turn out of the chat and `turn_restored` brings it back; what followed it
  stays, and where others stand beside it the nearest of them is shown.

The page folds the same events by the same rules: web/static/branches.js.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from agent.errors import ConfigError

BRANCHING = frozenset({"branch_chosen", "turn_removed", "turn_restored"})


class Logged(Protocol):
    """What is read of an event."""

    @property
    def seq(self) -> int:
        """Its number."""

    @property
    def type(self) -> str:
        """Its kind."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says."""


E = TypeVar("E", bound=Logged)


class Turns:
    """The tree of a chat's turns, each called by the number of its `user_message`."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        self._chosen: dict[int, int] = {}
        self._removed: set[int] = set()

    @classmethod
    def of(cls, events: Iterable[Logged]) -> Turns:
        """The tree as it stands after these events."""
        turns = cls()
        for event in events:
            if event.type == "user_message":
                turns._ask(event.seq, event.data.get("replaces"))
            elif event.type in BRANCHING and event.data["turn"] in turns._parents:
                turns._change(event.type, event.data["turn"])
        return turns

    def __contains__(self, turn: int) -> bool:
        return turn in self._parents

    def shown(self) -> list[int]:
        """The turns of the chat as it is, in order."""
        return [turn for turn in self._way() if turn not in self._removed]

    def before(self, turn: int) -> list[int]:
        """The turns that this one follows. Raises ConfigError when there is no such turn."""
        if turn not in self._parents:
            raise no_turn(turn)
        way: list[int] = []
        at = self._parents[turn]
        while at:
            way.append(at)
            at = self._parents[at]
        return [turn for turn in reversed(way) if turn not in self._removed]

    def _way(self) -> list[int]:
        way: list[int] = []
        at = self._chosen.get(0)
        while at is not None:
            way.append(at)
            at = self._chosen.get(at)
        return way

    def _ask(self, turn: int, replaces: int | None) -> None:
        parent = self._parents.get(replaces or 0)
        if parent is None:
            parent = next(reversed(self._way()), 0)
        self._parents[turn] = parent
        self._children.setdefault(parent, []).append(turn)
        self._show(turn)

    def _change(self, kind: str, turn: int) -> None:
        if kind == "turn_removed":
            self._removed.add(turn)
            self._show_another(turn)
            return
        if kind == "turn_restored":
            self._removed.discard(turn)
        self._show(turn)

    def _show(self, turn: int) -> None:
        """Chooses it, and whatever it follows."""
        while turn:
            self._chosen[self._parents[turn]] = turn
            turn = self._parents[turn]

    def _show_another(self, turn: int) -> None:
        parent = self._parents[turn]
        beside = self._children[parent]
        left = [other for other in beside if other not in self._removed]
        if left and self._chosen[parent] == turn:
            self._chosen[parent] = min(left, key=lambda other: (abs(other - turn), other))


def shown(events: Iterable[E], *, before: int | None = None) -> Sequence[E]:
    """The events of the turns that count; with `before` those of the turns which that one follows.

    Raises ConfigError when there is no turn `before`.
    """
    events = tuple(events)
    if before is None and not any(
        event.type in BRANCHING or (event.type == "user_message" and event.data.get("replaces"))
        for event in events
    ):
        return events
    turns = Turns.of(events)
    count = {0, *(turns.shown() if before is None else turns.before(before))}
    kept: list[E] = []
    turn = 0
    for event in events:
        if event.type == "user_message":
            turn = event.seq
        if turn in count and event.type not in BRANCHING:
            kept.append(event)
    return kept


def no_turn(turn: int) -> ConfigError:
    """There is no question of this number."""
    return ConfigError(
        "no_turn", f"This chat has no question number {turn}.", "Read its events for the numbers."
    )
