"""Agents: named presets of a session - what it is told, which model, mode and tools it has.

A session that is given an agent keeps a copy of it: what it runs with changes when the user
chooses again, not when somebody edits the agent. Agents are files of SEARCHLOOP_HOME/agents, one
`NAME.json` each; a file with the name of a built-in one stands in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from agent.errors import ConfigError, StoreError
from agent.private_file import replace_private
from agent.providers import split_model
from agent.search_path import SEARCHES
from agent.text import well_formed
from agent.tools import ALLOWED, Tool
from agent.types import Mode, Search

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONGEST = {"description": 300, "system": 20_000, "model": 200}
_MOST = 100  # patterns
_ALWAYS = frozenset({"read_more", "find_tool", "present_plan"})  # they do nothing by themselves


@dataclass(frozen=True, slots=True)
class Preset:
    """An agent. None leaves the choice to the session.

    `tools` are patterns of the tools it may use (None: all) and `servers` of the MCP servers. What
    the search switch allows is not theirs to say.
    """

    name: str
    description: str = ""
    system: str = ""
    model: str | None = None
    mode: Mode | None = None
    search: Search = "off"
    tools: tuple[str, ...] | None = None
    servers: tuple[str, ...] | None = None
    builtin: bool = field(default=False, compare=False)
    changed: bool = field(default=False, compare=False)  # a built-in one, in the user's own words

    def as_dict(self) -> dict[str, Any]:
        """The agent object of every surface."""
        return asdict(self)


_FIELDS = tuple(f.name for f in fields(Preset) if f.compare and f.name != "name")
_FILES = ("read_file", "list_directory", "search_files", "current_time")

BUILT_IN: Mapping[str, Preset] = {
    preset.name: replace(preset, builtin=True)
    for preset in (
        Preset(
            "researcher",
            "Looks things up from several sides and says how sure it is",
            "You are a careful researcher. Look at a question from several sides, prefer primary "
            "sources, compare what they say, and name disagreements. Say how sure you are and what "
            "would change your mind. If web search is off and the answer needs it, ask for it.",
            mode="ask",
        ),
        Preset(
            "coder",
            "Reads and changes the code of a workspace in small, checked steps",
            "You are a careful programmer. Read the code that is there before you change it and "
            "keep to its style. Make the smallest change that solves the task. Say which files you "
            "changed and how the user can check it.",
            mode="agent",
        ),
        Preset(
            "planner",
            "Turns a task into steps, and changes nothing",
            "You plan work for others. Find out what is there, name what you do not know, and "
            "write steps that can each be checked.",
            mode="plan",
            tools=_FILES,
        ),
        Preset(
            "editor",
            "Improves a text without changing what it says",
            "You are an editor. Keep meaning, facts and the author's voice; make sentences shorter "
            "and plainer. Give the edited text first, then the changes that matter, as a list.",
            mode="ask",
            tools=_FILES,
            servers=(),
        ),
        Preset(
            "translator",
            "Translates, and says where two readings are possible",
            "You are a translator. Translate into the language the user names, else into English. "
            "Keep names, numbers and layout. Give only the translation, and below it a note where "
            "the original can be read in two ways.",
            mode="ask",
            tools=(),
            servers=(),
        ),
    )
}


class Presets:
    """The agents of one user; every method reads or writes their files."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "agents"

    def all(self) -> list[Preset]:
        """The built-in ones and the user's, by name. Raises ConfigError for a broken file."""
        names = {path.stem for path in self._folder.glob("*.json") if _NAME.fullmatch(path.stem)}
        return [self.get(name) for name in sorted(names | BUILT_IN.keys())]

    def get(self, name: str) -> Preset:
        """Raises ConfigError('no_agent') when there is none of this name."""
        path = self._folder / f"{name}.json"
        try:
            data = json.loads(path.read_text("utf-8")) if _NAME.fullmatch(name) else None
        except (FileNotFoundError, NotADirectoryError):
            data = None
        except (OSError, ValueError, RecursionError) as error:
            what = f"The agent {name} cannot be read: {error}."
            raise ConfigError("bad_agent", what, f"Correct {path}, or remove it.") from error
        if data is not None:
            return replace(preset_of(name, data), changed=name in BUILT_IN)
        if name not in BUILT_IN:
            what = f"There is no agent {name[:60]!r}."
            raise ConfigError("no_agent", what, "`searchloop agents` lists those there are.")
        return BUILT_IN[name]

    def create(self, name: str, data: Mapping[str, Any]) -> Preset:
        """A new agent. Raises ConfigError for a name that is taken or data that is wrong."""
        preset = preset_of(name, data)
        if name in BUILT_IN or (self._folder / f"{name}.json").exists():
            what = f"There is an agent {name} already."
            raise ConfigError("agent_exists", what, "Edit it, or take another name.")
        return self._save(preset)

    def change(self, name: str, changes: Mapping[str, Any]) -> Preset:
        """The agent with these changes; a built-in one becomes the user's own."""
        now = self.get(name).as_dict()
        preset = preset_of(name, {**{f: now[f] for f in _FIELDS}, **changes})
        return self._save(replace(preset, changed=name in BUILT_IN))

    def delete(self, name: str) -> None:
        """Removes the user's file; a built-in agent is as it was then."""
        found = self.get(name)
        if found.builtin:
            what = f"{name} comes with searchloop and cannot be deleted."
            raise ConfigError("builtin_agent", what, "Edit it to change what it does.")
        with suppress(FileNotFoundError):
            (self._folder / f"{name}.json").unlink()

    def _save(self, preset: Preset) -> Preset:
        data = {name: getattr(preset, name) for name in _FIELDS}
        try:
            text = json.dumps(data, indent=1, ensure_ascii=False)
            replace_private(self._folder / f"{preset.name}.json", text)
        except OSError as error:
            what = f"The agent {preset.name} could not be saved: {error}."
            raise StoreError("not_saved", what, "Check the data folder and its disk.") from error
        return preset


def preset_of(name: str, data: Any) -> Preset:
    """An agent from JSON. Raises ConfigError that names what is wrong."""
    if not _NAME.fullmatch(name):
        what = f"{name[:60]!r} cannot be the name of an agent."
        raise ConfigError("bad_agent", what, "Use small letters, digits and hyphens.")
    if not isinstance(data, Mapping):
        raise _bad(name, "it is not an object")
    unknown = sorted(set(data) - set(_FIELDS))
    if unknown:
        raise _bad(name, f"it has no {unknown[0]!r}")
    given = {key: value for key, value in data.items() if value is not None}
    for key, most in _LONGEST.items():
        if not isinstance(given.get(key, ""), str) or len(given.get(key, "")) > most:
            raise _bad(name, f"{key} is not a text of at most {most:,} characters")
        if key in given:
            given[key] = well_formed(given[key])
    if "model" in given:
        split_model(given["model"])
    for key, choices in (("mode", tuple(ALLOWED)), ("search", SEARCHES)):
        if key in given and given[key] not in choices:
            raise _bad(name, f"{key} is not one of {', '.join(choices)}")
    for key in ("tools", "servers"):
        if key in given:
            given[key] = _patterns(name, key, given[key])
    return Preset(name, **cast(dict[str, Any], given))


def _patterns(name: str, key: str, given: Any) -> tuple[str, ...]:
    listed = isinstance(given, list | tuple) and len(given) <= _MOST
    if not listed or not all(isinstance(each, str) and 0 < len(each) <= 200 for each in given):
        raise _bad(name, f"{key} is not a list of at most {_MOST} names or patterns")
    return tuple(given)


def _bad(name: str, what: str) -> ConfigError:
    return ConfigError("bad_agent", f"The agent {name} is not valid: {what}.", "Correct it.")


def settings_of(preset: Preset | None) -> dict[str, Any]:
    """What a session remembers of its agent; None takes it away."""
    if preset is None:
        return {"agent": None, "preset": None}
    copied = {name: getattr(preset, name) for name in ("system", "tools", "servers")}
    return {"agent": preset.name, "preset": copied}


def preset_in(settings: Mapping[str, Any]) -> Preset | None:
    """The agent that a session with these settings runs as: the copy that it was given."""
    name, kept = settings.get("agent"), settings.get("preset")
    return preset_of(name, kept) if name and kept is not None else None


def allowed(preset: Preset | None, tool: Tool) -> bool:
    """Whether an agent may use a tool; what is refused here is neither offered nor run.

    Web search and page reading belong to the switch, which the user alone sets.
    """
    if preset is None or tool.web or (tool.origin == "ours" and tool.spec.name in _ALWAYS):
        return True
    if tool.server is not None:
        return may_ask(preset, tool.server)
    return _fits(tool.spec.name, preset.tools)


def may_ask(preset: Preset | None, server: str) -> bool:
    """Whether an agent may use this MCP server; one that it may not is not started for it."""
    return preset is None or _fits(server, preset.servers)


def _fits(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)
