"""The tools of a turn: the caller's and the sources', but for what its agent may not use.

Some come from servers that have to be connected to first. A question does not wait for that: its
run does, and says for whom.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.errors import ConfigError
from agent.parcel import Pending
from agent.presets import allowed, preset_in
from agent.session import Session
from agent.standard_tools import without_spare
from agent.tools import ALLOWED, CHANGING, Tool, ToolSource
from agent.types import Mode

Tell = Callable[[str, dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the session may use, and what its user should know of that.

    `waits` names the servers that are not connected yet; while there are any, there are no tools,
    and `later` waits for all of them.
    """

    tools: tuple[Tool, ...] = ()
    notices: tuple[Pending, ...] = ()
    waits: tuple[str, ...] = ()
    later: Callable[[], Awaitable[Gathered]] | None = None

    def beside_search(self, mode: Mode) -> bool:
        """Whether there are tools beside the model's own search; what a server may bring counts."""
        worth = without_spare(self.tools)
        return bool(self.waits) or any(tool.spec.effect in ALLOWED[mode] for tool in worth)


NONE = Gathered()


async def gathered(
    tools: Sequence[Tool], sources: Sequence[ToolSource], session: Session
) -> Gathered:
    """What can be had at once; nothing yet when a server has to be waited for."""
    states = _states(sources, session)
    waits = tuple(name for name, state in states.items() if state == "waiting")
    whole = partial(_gathered, tools, sources, session)
    return Gathered(waits=waits, later=whole) if waits else await whole()


async def waited(known: Gathered, tell: Tell) -> Gathered:
    """The same with its tools; which servers are waited for is told as events of the run."""
    if known.later is None:
        return known
    await tell("servers_awaited", {"servers": list(known.waits)})
    there = await known.later()
    missing = [name for name in known.waits if name in there.waits]
    await tell("servers_ready", {"servers": list(known.waits), "missing": missing})
    for kind, data in there.notices:
        await tell(kind, dict(data))
    return there


async def _gathered(
    tools: Sequence[Tool], sources: Sequence[ToolSource], session: Session
) -> Gathered:
    """In this order. What its agent may not use is not there at all."""
    found = [*tools, *[t for source in sources for t in await source.tools(session)]]
    preset = preset_in(session.settings)
    states = _states(sources, session)
    return Gathered(
        tuple(tool for tool in found if allowed(preset, tool)),
        tuple(("notice", dict(n)) for source in sources for n in source.notices(session)),
        tuple(name for name, state in states.items() if state != "ready"),
    )


def _states(sources: Sequence[ToolSource], session: Session) -> dict[str, str]:
    return {name: s for source in sources for name, s in source.servers(session).items()}


def check_plan(files: Sequence[str], tools: Sequence[Tool], session: Session) -> None:
    """Raises ConfigError for a plan that touches files when the session's agent leaves no tool
    that could change one."""
    preset = preset_in(session.settings)
    if preset and files and not any(tool.spec.effect in CHANGING for tool in tools):
        raise ConfigError(
            "agent_cannot_run",
            f"The agent {preset.name} has no tool that changes anything, and the plan touches "
            f"{', '.join(files[:3])}.",
            "Choose another agent for this chat, or none, and run the plan again.",
        )
