"""The tools of a turn: the caller's and the sources', but for what its agent may not use."""

from __future__ import annotations

from collections.abc import Iterable

from agent.log import Pending
from agent.presets import allowed, preset_in
from agent.session import Session
from agent.tools import Tool, ToolSource


async def gathered(
    tools: Iterable[Tool], sources: Iterable[ToolSource], session: Session
) -> tuple[Tool, ...]:
    """What the session may use, in this order. What its agent may not is not there at all."""
    found = [*tools, *[t for source in sources for t in await source.tools(session)]]
    preset = preset_in(session.settings)
    return tuple(tool for tool in found if allowed(preset, tool))


def notices(sources: Iterable[ToolSource], session: Session) -> list[Pending]:
    """What the user should know of the session's tools, for its log."""
    return [("notice", dict(told)) for source in sources for told in source.notices(session)]
