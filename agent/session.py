"""A chat and its settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agent.types import Mode, Search


@dataclass(frozen=True, slots=True)
class Session:
    """A chat and its settings; `search_path` is what the last turn really used."""

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

    def as_dict(self) -> dict[str, Any]:
        """The session object of every surface."""
        return asdict(self)
