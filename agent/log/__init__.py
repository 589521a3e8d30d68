"""The event log: import `EventLog` (loaded on first use, with its database) and `Event` from here.

Others may import: backup, contract, events, leases, projects, session, window.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchloop.agent.log.log import EventLog as EventLog
from searchloop.agent.log.events import Event

__all__ = ["Event", "EventLog"]


def __getattr__(name: str) -> Any:
    if name == "EventLog":
        return import_module("searchloop.agent.log.log").EventLog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
