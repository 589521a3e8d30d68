"""A session and one event of its log, as the stores return them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from searchloop.agent.text import object_in
from searchloop.agent.types import Mode, Search

# The columns of `session_of`, in this order.
COLUMNS = (
    "id, title, model, mode, search, search_path, workspace, created, updated, messages, "
    "EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id) AS running, settings"
)

PROVISIONAL = "provisional"  # in settings: the title is the question's, a model may give another


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a log: `seq` grows within a session, `at` is in epoch seconds.

    >>> Event(1, "user_message", {"text": "What is new?"}, 1795000000.0)
    """

    seq: int
    type: str
    data: Mapping[str, Any]
    at: float


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
