"""A chat and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.types import Mode, Search


@dataclass(frozen=True, slots=True)
class Session:
    """A chat and its settings; `search_path` is what the last turn really used.

    `settings` is a JSON object of what few sessions have.
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
        """The session object of every surface; `agent` is the preset it runs as, if any.

        The copy of that preset stays inside: it can be long, and lists hold many sessions.
        """
        shown = {name: value for name, value in self.settings.items() if name != "preset"}
        return {**asdict(self), "settings": shown, "agent": self.settings.get("agent")}
