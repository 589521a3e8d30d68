"""A session, one event of its log, and the branches of a chat: which turns are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict, cast

from searchloop.agent.errors import ConfigError
from searchloop.agent.text import column_text, object_in
from searchloop.agent.types import Mode, RunReason, Search, StopReason

# The columns of `session_of`, in this order.
COLUMNS = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id) AS running, settings"
)

PROVISIONAL = "provisional"  # in settings: the title is the question's, a model may give another
FAR = 1e11  # seconds from 1970 on that no clock shows, and no calendar holds
# Settings with a column of their own, by which sessions are chosen; see `chosen_by`.
CHOSEN_BY = ("archived", "pinned", "temporary", PROVISIONAL, "project")


class EventData(TypedDict):
    """What events hold, by field; the table in `agent.log.events` says which has which.

    No event has all of them. They are not marked as optional: type checkers would then refuse
    `event.data["text"]`.
    """

    text: str
    replaces: int
    note: str
    plan: str
    imported: bool
    folders: list[str]
    attachments: list[dict[str, Any]]
    turn: int
    rating: int
    run_id: str
    session_id: str
    takeovers: int
    model: str
    mode: str
    search: str
    search_path: str
    local: bool
    effort: str
    servers: list[str]
    missing: list[str]
    query: str
    by: str
    years: list[str]
    status: str
    results: int | None
    attempts: list[dict[str, Any]]
    error: Any
    invisible: int
    notes: list[dict[str, str]]
    url: str
    title: str
    reader: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    effect: str
    server: str
    why: str
    preview: str | None
    definition: str
    folder: str
    question: bool
    decision: Any
    key: str
    is_error: bool
    content: str
    details: Mapping[str, Any]
    sources: list[dict[str, Any]]
    plan_id: str
    steps: list[dict[str, Any]]
    files: list[str]
    thinking: str
    tool_calls: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    step: int
    usage: Mapping[str, Any]
    stop_reason: StopReason | None
    provider_data: dict[str, Any]
    partial: bool
    code: str
    message: str
    remedy: str
    upto: int
    turns: list[int]
    left: int
    tokens: int
    questions: list[str]
    reason: RunReason
    answer: str
    limit: str
    performance: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a log: `seq` grows within a session, `at` is in epoch seconds.

    >>> Event.of(1, "user_message", {"text": "What is new?"}, 1795000000.0)
    """

    seq: int
    type: str
    data: EventData
    at: float

    @classmethod
    def of(cls, seq: int, kind: str, data: Mapping[str, Any], at: float) -> Event:
        """Makes an event of data that nobody has typed: a row of a store, a line of a file."""
        return cls(seq, kind, cast(EventData, data), at)


@dataclass(frozen=True, slots=True)
class Session:
    """A chat and its settings; `search_path` is the one that the last turn really used.

    >>> agent.log.session(answer.session_id).title
    """

    id: str
    title: str
    model: str
    mode: Mode
    search: Search
    search_path: str
    workspace: str | None
    created: float
    updated: float
    messages: int
    running: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Returns the session object of every surface, without its copy of its preset."""
        shown = {name: value for name, value in self.settings.items() if name != "preset"}
        return {**asdict(self), "settings": shown, "agent": self.settings.get("agent")}


def session_of(row: Sequence[Any]) -> Session:
    """Returns the session of a row of COLUMNS."""
    return Session(*(*row[:-2], bool(row[-2]), object_in(row[-1]) or {}))


def chosen_by(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the values of the columns CHOSEN_BY: 1 for a setting that is true, then a project."""
    marks = (int(settings.get(name) is True) for name in CHOSEN_BY[:-1])
    return (*marks, column_text(settings.get("project")) or "")


BRANCHING = frozenset({"branch_chosen", "turn_removed", "turn_restored"})


class Turns:
    """The tree of a chat's turns; the number of its `user_message` identifies a turn."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        self._chosen: dict[int, int] = {}
        self._end = 0  # the last turn that is chosen
        self.removed: set[int] = set()

    @classmethod
    def of(cls, events: Iterable[Event]) -> Turns:
        """Builds the tree from the events of a log."""
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
        """Returns the turns that are shown, in order."""
        return [turn for turn in self._path() if turn not in self.removed]

    def before(self, turn: int) -> list[int]:
        """Returns the turns before this one. Raises ConfigError when there is no such turn."""
        if turn not in self._parents:
            raise no_turn(turn)
        path: list[int] = []
        while turn := self._parents[turn]:
            path.append(turn)
        return [turn for turn in reversed(path) if turn not in self.removed]

    def parent(self, turn: int) -> int:
        """Returns the turn right before this one, 0 for none."""
        while (turn := self._parents[turn]) in self.removed:
            pass
        return turn

    def _path(self) -> list[int]:
        path: list[int] = []
        turn = 0
        while turn := self._chosen.get(turn, 0):
            path.append(turn)
        return path

    def _ask(self, turn: int, replaces: int | None) -> None:
        beside = self._parents.get(replaces or 0)
        parent = self._parents[turn] = self._end if beside is None else beside
        self._children.setdefault(parent, []).append(turn)
        if beside is None:  # what is before it is chosen already
            self._chosen[parent] = self._end = turn
        else:
            self._show(turn)

    def _change(self, kind: str, turn: int) -> None:
        if kind == "turn_removed":
            self.removed.add(turn)
            self._show_sibling(turn)
            self._end = next(reversed(self._path()), 0)
        else:
            if kind == "turn_restored":
                self.removed.discard(turn)
            self._show(turn)

    def _show(self, turn: int) -> None:
        """Selects the turn and every turn before it."""
        while turn:
            self._chosen[self._parents[turn]] = turn
            turn = self._parents[turn]
        self._end = next(reversed(self._path()), 0)

    def _show_sibling(self, turn: int) -> None:
        parent = self._parents[turn]
        left = [other for other in self._children[parent] if other not in self.removed]
        if left and self._chosen[parent] == turn:
            self._chosen[parent] = min(left, key=lambda other: (abs(other - turn), other))


def shown(events: Iterable[Event], *, before: int | None = None) -> Sequence[Event]:
    """Returns the events of the shown turns, or of those `before` a turn. Raises ConfigError."""
    events = tuple(events)
    if before is None and not any(
        event.type in BRANCHING or (event.type == "user_message" and event.data.get("replaces"))
        for event in events
    ):
        return events
    turns = Turns.of(events)
    count = {0, *(turns.shown() if before is None else turns.before(before))}
    kept: list[Event] = []
    turn = 0
    for event in events:
        if event.type == "user_message":
            turn = event.seq
        if turn in count and event.type not in BRANCHING:
            kept.append(event)
    return kept


def checked(events: Iterable[Event]) -> tuple[Event, ...]:
    """Returns the events with the citations of each answer as later checks have left them."""
    events = tuple(events)
    changed: dict[int, dict[int, Any]] = {}
    for event in events:
        if event.type == "check" and event.data.get("citations"):
            known = changed.setdefault(event.data["turn"], {})
            known |= {each["n"]: each for each in event.data["citations"]}
    if not changed:
        return events
    out, turn = list[Event](), 0
    for event in events:
        turn = event.seq if event.type == "user_message" else turn
        if event.type == "run_finished" and turn in changed:
            all_of = {each["n"]: each for each in event.data["citations"]} | changed[turn]
            event = replace(event, data={**event.data, "citations": list(all_of.values())})
        out.append(event)
    return tuple(out)


def summary_of(events: Iterable[Event], turns: Sequence[int]) -> Event | None:
    """Returns the summary that covers most of these turns, the latest of equals, or None.

    A summary counts only while the turns that it covers are those shown before it.
    """
    found = [
        event
        for event in events
        if event.type == "summary"
        and list(turns[: len(event.data["turns"])]) == event.data["turns"]
    ]
    return max(found, key=lambda event: (len(event.data["turns"]), event.seq), default=None)


def no_turn(turn: int) -> ConfigError:
    """Makes the error for a question number that the chat does not have."""
    what = f"This chat has no question number {turn}."
    return ConfigError("no_turn", what, "Read its events for the numbers.")
