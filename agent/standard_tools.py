"""Tools beside those of a workspace: the time, and in plan mode the way to hand over a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.session import Session
from agent.tools import ServerState, Tool
from agent.tools.current_time import current_time
from agent.tools.present_plan import present_plan

_SPARE = frozenset({"current_time", "present_plan"})


class StandardTools:
    """See `agent.tools.ToolSource`."""

    async def tools(self, session: Session) -> Sequence[Tool]:
        """The plan's in plan mode; the time only beside files.

        A model that has nothing else to call answers better without any tool.
        """
        plan = (present_plan(),) if session.mode == "plan" else ()
        return (current_time(), *plan) if session.workspace else plan

    def servers(self, session: Session) -> Mapping[str, ServerState]:
        """None."""
        return {}

    def notices(self, session: Session) -> Sequence[Mapping[str, str]]:
        """None."""
        return ()

    def secrets(self, workspace: str | None) -> Mapping[str, str]:
        """None."""
        return {}

    async def aclose(self) -> None:
        """Nothing was started."""


def without_spare(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """The tools but for those that a turn can do without.

    Some models cannot search by themselves and use tools in one turn: the time is not worth that.
    """
    return tuple(t for t in tools if t.spec.name not in _SPARE or t.origin != "ours")
