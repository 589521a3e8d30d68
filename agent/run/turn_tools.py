"""Gathers the tools of a turn; a run, not its question, waits for servers that must connect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.session import Session
from searchloop.agent.run.prompts import agent_in, allowed
from searchloop.agent.settings.plugins import Plugin, find_plugins
from searchloop.agent.tools import ALLOWED, CHANGING, Tool, ToolSource, tool
from searchloop.agent.tools.current_time import current_time
from searchloop.agent.tools.present_plan import present_plan
from searchloop.agent.tools.search_chats import ChatLog, search_chats
from searchloop.agent.types import Mode

Tell = Callable[[str, dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The tools of a session and notices for its user; `later` gathers them if it `waits`."""

    tools: tuple[Tool, ...] = ()
    notices: tuple[Pending, ...] = ()
    waits: tuple[str, ...] = ()
    later: Callable[[], Awaitable[Gathered]] | None = None

    def telling(self, notices: Iterable[Pending]) -> Gathered:
        """Returns the same with more notices."""
        return replace(self, notices=(*self.notices, *notices))

    def beside_search(self, mode: Mode) -> bool:
        """Returns whether the turn has tools beside its search, or a server may bring some."""
        worth = without_spare(self.tools)
        return bool(self.waits) or any(tool.spec.effect in ALLOWED[mode] for tool in worth)


NONE = Gathered()


async def gathered(
    tools: Sequence[Tool], sources: Sequence[ToolSource], session: Session
) -> Gathered:
    """Returns the tools at once, or none and `later` while a server connects."""
    waits = tuple(name for name, state in _states(sources, session) if state == "waiting")
    whole = partial(_gathered, tools, sources, session)
    return Gathered(waits=waits, later=whole) if waits else await whole()


async def waited(known: Gathered, tell: Tell) -> Gathered:
    """Waits for the tools; reports the servers that it waits for as events of the run."""
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
    """Lists the tools that the session's agent may use: the caller's, then the sources'."""
    found = [*tools, *[t for source in sources for t in await source.tools(session)]]
    preset = agent_in(session.settings)
    return Gathered(
        tuple(tool for tool in found if allowed(preset, tool)),
        tuple(("notice", dict(n)) for source in sources for n in source.notices(session)),
        tuple(name for name, state in _states(sources, session) if state != "ready"),
    )


def _states(sources: Sequence[ToolSource], session: Session) -> list[tuple[str, str]]:
    return [state for source in sources for state in source.servers(session).items()]


def check_plan(files: Sequence[str], tools: Sequence[Tool], session: Session) -> None:
    """Raises ConfigError if a plan touches files and the session's agent has no tool for that."""
    preset = agent_in(session.settings)
    if preset and files and not any(tool.spec.effect in CHANGING for tool in tools):
        what = (
            f"The agent {preset.name} has no tool that changes anything, and the plan touches "
            f"{', '.join(files[:3])}."
        )
        remedy = "Choose another agent for this chat, or none, and run the plan again."
        raise ConfigError("agent_cannot_run", what, remedy)


_SPARE = frozenset({"current_time", "present_plan"})
_OURS = _SPARE | {"web_search", "open_page"}


class StandardTools(ToolSource):
    """The built-in tools that do not search the web.

    >>> Agent(bring=[StandardTools()])
    """

    def __init__(self, chats: Callable[[], ChatLog | None] = lambda: None) -> None:
        """`chats` returns the log of one person while that one lets models search it."""
        self._chats = chats

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Returns `present_plan` in plan mode; `current_time` only beside file tools."""
        log = None if session.settings.get("temporary") else self._chats()
        chats = (search_chats(log, session.id),) if log else ()
        plan = (present_plan(),) if session.mode == "plan" else ()
        return (*chats, current_time(), *plan) if session.workspace else (*chats, *plan)


@cache
def tool_plugins() -> tuple[Plugin, ...]:
    """Returns what other packages bring as tools, broken ones included."""
    return find_plugins("tools", lambda _name, value: _refused(value))


def _refused(value: Any) -> str:
    name = _as_tool(value).spec.name
    return f"There is another tool named {name}." if name in _OURS else ""


def _as_tool(value: Any) -> Tool:
    return value if isinstance(value, Tool) else tool(value)


class PluginTools(ToolSource):
    """The tools of other packages: a `Tool` or a function under `searchloop.tools`."""

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Returns those that could be loaded."""
        return tuple(_as_tool(plugin.value) for plugin in tool_plugins() if plugin.value)

    def notices(self, session: Session) -> Sequence[Mapping[str, str]]:
        """Names those that could not."""
        return tuple(plugin.notice() for plugin in tool_plugins() if plugin.problem)


def without_spare(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Drops tools not worth losing native search for, where a model cannot have both."""
    return tuple(t for t in tools if t.spec.name not in _SPARE or t.origin != "ours")
