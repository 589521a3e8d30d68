"""What a program that uses the agent hands over and gets: a turn's options, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from agent.approvals import Approve
from agent.events import Event, citation_from
from agent.limits import Limits
from agent.types import Citation, NativeSearch, RunReason, Source, Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run ended. `error` is {code, message, remedy} when it did not end well."""

    text: str
    reason: RunReason
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    usage: Usage
    search_path: str
    session_id: str
    error: dict[str, str] | None = None

    @classmethod
    def of(cls, event: Event) -> Answer:
        """From the data of a `run_finished` event."""
        data = event.data
        return cls(
            text=data["answer"],
            reason=data["reason"],
            citations=tuple(citation_from(c) for c in data["citations"]),
            sources=tuple(Source(**s) for s in data["sources"]),
            usage=Usage(**data["usage"]),
            search_path=data["search_path"],
            session_id=data["session_id"],
            error=data.get("error"),
        )


class Turn(TypedDict, total=False):
    """What a turn may differ in; what is left out is the session's or the settings'.

    `approve` is what becomes of calls that need the user: `never` (the default: they do not run),
    `auto` (they run, unless something would leak), `ask` (they wait for `Agent.decide`). `plan` is
    the data of the plan that the question has carried out.
    """

    model: str | None
    mode: str | None
    search: str | None
    limits: Limits | None
    options: NativeSearch | None
    approve: Approve
    plan: Mapping[str, Any] | None


def settled(turn: Turn) -> Turn:
    """The options with what holds for a program: nobody is there to be asked."""
    return {"approve": "never", **turn}
