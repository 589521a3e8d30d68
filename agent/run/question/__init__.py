"""Checks questions and sessions, as users make them, before anything is stored, and gathers the
tools of a turn; a run, not its question, waits for servers that must connect.

Others may import: afterwards, attached, files, structured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from searchloop.agent.calls.caller import Caller
from searchloop.agent.calls.instructions import PLAIN, Instructions
from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.projects import Project
from searchloop.agent.log.session import PROVISIONAL, Session
from searchloop.agent.run.prompts import NamedAgent, NamedAgents, agent_in, allowed, settings_of
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.search.switch import SearchPath
from searchloop.agent.settings import Settings
from searchloop.agent.text import one_line, well_formed
from searchloop.agent.tools import ALLOWED, Tool, ToolSource, tool
from searchloop.agent.tools.present_plan import present_plan
from searchloop.agent.tools.workspace import checked_folder
from searchloop.agent.types import ANYWHERE, DEFAULT_LIMITS, SEARCHES, Limits, Mode, NativeSearch
from searchloop.agent.types.attachments import Attachment
from searchloop.analysis.characters import visible
from searchloop.analysis.plugins import Plugin, find_plugins
from searchloop.analysis.told import one_of

MAX_QUESTION = 1_000_000  # characters
_TAGS, _TAG = 12, 40  # of a chat, and characters of one
UNDONE = "undone"  # in a session's settings: files whose changes the user has taken back
_TAKEN_BACK = "The user has undone your changes to these files; they are as they were before:"


def run_started(
    run_id: str, session: Session, path: SearchPath, local: bool, turn: TurnOptions
) -> dict[str, Any]:
    """Returns the data of `run_started`."""
    effort = turn.instructions.options.get("effort")
    return {
        "run_id": run_id,
        "session_id": session.id,
        "model": session.model,
        "mode": session.mode,
        "search": session.search,
        "search_path": path.name,
        "local": local,
        **({"effort": effort} if effort else {}),
    }


def asked_data(
    text: str, session: Session, asked: Asked, files: Sequence[Attachment] = ()
) -> dict[str, Any]:
    """Returns the data of `user_message`, with a note for the model on files that were undone."""
    data: dict[str, Any] = {"text": text}
    undone = session.settings.get(UNDONE)
    if replaces := asked.get("replaces"):
        data["replaces"] = replaces
    if plan := asked.get("plan"):
        data["plan"] = plan["plan_id"]
    if files:
        data["attachments"] = [file.as_dict() for file in files]
    if folders := asked.get("folders"):
        data["folders"] = list(folders)
    if undone:
        data["note"] = f"[{_TAKEN_BACK} {', '.join(undone)}]"
    return data


def title_of(text: str) -> str:
    """Makes a title of a chat's first question: its first line."""
    return one_line(next((line for line in visible(text).splitlines() if line.strip()), ""))


def changed(session: Session, changes: dict[str, str]) -> Session:
    """Returns the session with these settings. Raises ConfigError that names the choices."""
    session = replace(session, **changes)  # type: ignore[arg-type]
    choices: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("mode", session.mode, ALLOWED),
        ("search", session.search, SEARCHES),
    )
    for name, value, known in choices:
        if value not in known:
            what = f"There is no {name} {value!r}."
            raise ConfigError(f"bad_{name}", what, one_of(value, known))
    return session


def checked(text: str) -> str:
    """Returns the text of a question. Raises ConfigError if it is empty or too long."""
    if not text.strip():
        raise ConfigError("empty_question", "The question is empty.", "Write something to ask.")
    if len(text) > MAX_QUESTION:
        what = f"The question has {len(text):,} characters; {MAX_QUESTION:,} is the most."
        remedy = "Shorten it, or put the text in a file and add that with `searchloop library add`."
        raise ConfigError("question_too_long", what, remedy)
    return well_formed(text)


class TurnOptions(NamedTuple):
    """The options of one turn."""

    limits: Limits = DEFAULT_LIMITS
    search_options: NativeSearch = ANYWHERE
    approve: Approve = "ask"
    instructions: Instructions = PLAIN

    def as_data(self) -> dict[str, Any]:
        """Returns it as JSON; the lease of a run stores it for a takeover."""
        limits, options = self.limits._asdict(), self.search_options._asdict()
        kept = {"limits": limits, "options": options, "approve": self.approve}
        return {**kept, "instructions": self.instructions._asdict()}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> TurnOptions:
        """Reads `as_data` back; missing values get their defaults."""
        given: Mapping[str, Any] = data.get("options", {})
        held: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v
            for k, v in given.items()
            if k in NativeSearch._fields
        }
        approve: Approve = data.get("approve", "ask")
        own = Instructions(**data.get("instructions", {}))
        return cls(Limits(**data.get("limits", {})), NativeSearch(**held), approve, own)


DEFAULT_TURN = TurnOptions()


class Asked(TypedDict, total=False):
    """What may come with a question; `model`, `mode` and `search` become the session's.

    With `aside` they are this turn's alone, as the rest is. `replaces` is the `seq` of an earlier
    question, `plan` the data of the plan that it carries out; `folders` of the library are all that
    is searched; `system`, `options` and `schema` are those of `Instructions.of`.
    """

    model: str | None
    mode: str | None
    search: str | None
    limits: Limits | None
    search_options: NativeSearch | None
    approve: Approve
    replaces: int | None
    plan: Mapping[str, Any] | None
    files: Sequence[NewFile]
    system: str | None
    options: Mapping[str, Any] | None
    schema: Mapping[str, Any] | None
    caller: Caller
    aside: bool
    folders: Sequence[str]


def gave_up(takeovers: int) -> ConfigError:
    """Returns the error of a run that is not resumed."""
    times = f", {takeovers} times." if takeovers > 1 else "."
    what = f"searchloop stopped before the answer was finished{times}"
    return ConfigError("interrupted", what, "What came is kept. Send the question again.")


def open_session(log: EventLog, settings: Settings, wanted: Mapping[str, Any]) -> Session:
    """Makes a session; a `temporary` one is in no list. Raises ConfigError for a wrong choice.

    `wanted` has model, mode, search, workspace, agent and temporary; `log` keeps it.

        open_session(agent.log, agent.settings, {"model": "ollama:qwen3:8b"}).id
    """
    chosen = {name: value for name, value in wanted.items() if value is not None}
    kept: dict[str, Any] = {"project": chosen.pop("project", None)}
    usual = {"model": settings.model, "search": settings.search}
    folder = log.projects.get(kept["project"]) if kept["project"] else None
    preset = _preset(settings.home, chosen.pop("agent", None) or _agent_of(folder, settings.home))
    if "workspace" in chosen:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home, settings.files)
    if "options" in chosen:
        kept["options"] = Instructions.of(options=chosen.pop("options")).options or None
    if chosen.pop("temporary", False):
        kept["temporary"] = True
    return log.create_session(
        **{**usual, **_said(preset), **_said(folder), **chosen},
        settings={**(settings_of(preset) if preset else {}), **kept},
    )


def _agent_of(folder: Project | None, home: Path) -> str | None:
    """Returns the agent that a project begins with, if that is still there."""
    if folder and folder.agent:
        with suppress(ConfigError):
            return NamedAgents(home).get(folder.agent).name
    return None


def change_session(
    log: EventLog, settings: Settings, session_id: str, wanted: Mapping[str, Any]
) -> Session:
    """Changes a session; None removes its agent or workspace. Raises ConfigError, Conflict."""
    log.session(session_id)
    chosen = dict(wanted)
    kept: dict[str, Any] = {}
    if "agent" in chosen:
        preset = _preset(settings.home, chosen.pop("agent"))
        kept = settings_of(preset)
        chosen = {**_said(preset), **chosen}
    if "title" in chosen:
        kept[PROVISIONAL] = None
    for name in ("pinned", "archived"):
        if name in chosen:
            kept[name] = chosen.pop(name) or None
    if "project" in chosen:
        project = chosen.pop("project")
        kept["project"] = log.projects.get(project).id if project else None
    if "tags" in chosen:
        words = dict.fromkeys(one_line(tag, _TAG) for tag in chosen.pop("tags")[:_TAGS])
        kept["tags"] = [tag for tag in words if tag] or None
    if "options" in chosen:
        kept["options"] = Instructions.of(options=chosen.pop("options")).options or None
    if chosen.get("workspace") is not None:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home, settings.files)
    return log.update_session(session_id, kept, **chosen)


def _preset(home: Path, name: str | None) -> NamedAgent | None:
    return NamedAgents(home).get(name) if name else None


def _said(preset: NamedAgent | Project | None) -> dict[str, str]:
    """Returns model, mode and search as an agent or a project sets them."""
    chosen = {name: getattr(preset, name, None) for name in ("model", "mode", "search")}
    return {name: value for name, value in chosen.items() if value is not None}


Tell = Callable[[str, dict[str, Any]], Awaitable[None]]


class Gathered(NamedTuple):
    """The tools of a session and notices for its user; `later` gathers them if it `waits`."""

    tools: tuple[Tool, ...] = ()
    notices: tuple[Pending, ...] = ()
    waits: tuple[str, ...] = ()
    later: Callable[[], Awaitable[Gathered]] | None = None

    def telling(self, notices: Iterable[Pending]) -> Gathered:
        """Returns the same with more notices."""
        return self._replace(notices=(*self.notices, *notices))

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


_SPARE = frozenset({"present_plan"})
_OURS = _SPARE | {"web_search", "open_page"}


class StandardTools(ToolSource):
    """The built-in tools that do not search the web.

    >>> Agent(bring=[StandardTools()])
    """

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Returns `present_plan` in plan mode."""
        return (present_plan(),) if session.mode == "plan" else ()


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
