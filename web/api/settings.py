"""Handlers for what a person sets on the page: settings, agents, policy, library.

The page changes config.toml only. A value from above that file wins and is shown with its origin.
Addresses to which keys are sent are not among these; see `providers`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.guard import DEFAULT_POLICY, Policy, load_policy, save_policy
from searchloop.agent.run.prompts import NamedAgents, Templates
from searchloop.agent.search.switch import Held, held_back
from searchloop.agent.settings import SHARED, Environment, Setting, read_config
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.settings.secrets import masked
from searchloop.agent.tools.workspace import is_below, is_system
from searchloop.agent.tools.workspace.paths import closed
from searchloop.analysis.secret_files import secret
from searchloop.compose import Services
from searchloop.web.api.calls import Call, Handlers, LoopBridge, Reply
from searchloop.web.api.openapi import route

_FILE = "config.toml"
# Needed before the file is read, or meaningful only at the start.
_FIXED = re.compile(
    r".*_(HOME|TOKEN|OFFLINE|URL|HOST|ENDPOINT|FIELDS|ALLOW_RANGES|HEADER|PROXIES|ADMINS)"
)
_MOST_SKIPPED = 200  # files that an answer names one by one; it counts the rest
_MOST_FOLDERS = 500  # that are shown of one folder
_MOST_NAMED = 8  # documents with some letters in their names
_READING_SECONDS = 3.0  # for which a request waits for a folder to be read


class SettingsApi(Handlers):
    """/api/settings: the settings that are no secrets."""

    @route("get", "/api/settings", "Settings")
    def read(self, call: Call) -> Reply:
        """Lists value (passwords in it masked), origin and default of every public setting."""
        env, public = self._services.settings.env, self._public()
        shown = [s for s in public if not s.name.endswith("_BASE_URL") or env.get(s.name)]
        return Reply({"settings": [shown_setting(s, env) for s in shown]})

    @route("patch", "/api/settings", "Settings", "SettingChanges")
    def change(self, call: Call) -> Reply:
        """Changes settings by name, all of them or none. null restores a default."""
        services, changes = self._services, call.body["settings"]
        env, known = services.settings.env, {s.name: s for s in self._public()}
        for name, value in changes.items():
            if name not in known or not _changeable(known[name], env):
                raise _cannot_change(name, env if name in known else None)
            if value is not None and (not isinstance(value, str) or len(value) > 2000):
                what = f"{name} is no text of up to 2,000 characters."
                raise ConfigError("bad_setting", what, "Correct it.")
        wanted = {name: value.strip() or None if value else None for name, value in changes.items()}
        if not all(name.startswith("SEARCH") for name in wanted):
            self._on_loop.do(lambda: services.runner.registry.check_settings(wanted))
        model = wanted.get("SEARCHLOOP_MODEL")
        if model:
            self._on_loop.do(lambda: services.runner.provider(model))
        save_settings(services, self._on_loop, wanted)
        return self.read(call)

    def _public(self) -> list[Setting]:
        return [setting for setting in self._services.declared() if not setting.secret]


def save_settings(
    services: Services, on_loop: LoopBridge, wanted: Mapping[str, str | None]
) -> None:
    """Writes settings into config.toml and puts them in force. Raises AgentError."""
    env, path = services.settings.env, services.settings.home / _FILE
    after = {k: v for k, v in {**read_config(path), **wanted}.items() if v is not None}
    services.check(env.with_layer(_FILE, after))
    change_config(path, wanted)

    def put_in_force() -> None:
        env.put(_FILE, after)
        services.use(services.check(env))

    on_loop.do(put_in_force)


def shown_setting(setting: Setting, env: Environment) -> dict[str, Any]:
    """Returns a setting as answers show it, passwords in its value masked."""
    value, common = shown_parts(setting, env)
    rest = {"default": setting.default, "changeable": _changeable(setting, env)}
    return {**common, "value": masked(value), **rest}


def shown_parts(setting: Setting, env: Environment) -> tuple[str, dict[str, Any]]:
    """Returns a setting's value ("" for none) and what answers say of every setting."""
    name = next((n for n in (setting.name, *setting.aliases) if env.get(n)), setting.name)
    shown = {"name": setting.name, "help": setting.help, "origin": env.origin(name)}
    return env.get(name) or "", shown


def _changeable(setting: Setting, env: Environment) -> bool:
    origins = {env.origin(name) for name in (setting.name, *setting.aliases)}
    files = env.person and setting.name.endswith("_FILES")  # of the machine
    fixed = files or _FIXED.fullmatch(setting.name)
    return not fixed and origins <= {"default", _FILE, SHARED}


def _cannot_change(name: str, env: Environment | None) -> ConfigError:
    if env is None:
        return ConfigError("unknown_setting", f"There is no setting {name[:80]!r}.", "Check it.")
    where = env.origin(name)
    how = "Change it there" if where not in ("default", _FILE) else "Set it in .env"
    what = f"{name} cannot be changed here" + (f": it is set by {where}." if where else ".")
    return ConfigError("not_changeable", what, f"{how}, then start searchloop again.")


class AgentsApi(Handlers):
    """/api/agents: named presets. See `agent.run.prompts`."""

    @property
    def _presets(self) -> NamedAgents:
        return NamedAgents(self._services.settings.home)

    @route("get", "/api/agents", "Agents")
    def list(self, call: Call) -> Reply:
        """Lists all agents by name, with the built-in ones."""
        return Reply({"agents": [preset.as_dict() for preset in self._presets.all()]})

    @route("post", "/api/agents", "Agent", "NewAgent", 201)
    def create(self, call: Call) -> Reply:
        """Creates an agent."""
        body = dict(call.body)
        return Reply(self._presets.create(body.pop("name"), body).as_dict(), 201)

    @route("patch", "/api/agents/{name}", "Agent", "AgentChanges")
    def change(self, call: Call) -> Reply:
        """Changes an agent. Sessions that have it already keep the old one."""
        return Reply(self._presets.change(call.path["name"], call.body).as_dict())

    @route("delete", "/api/agents/{name}", None)
    def delete(self, call: Call) -> Reply:
        """Deletes an agent that the user made; restores a built-in one."""
        self._presets.delete(call.path["name"])
        return Reply(status=204)


class TemplatesApi(Handlers):
    """/api/templates: questions with fields."""

    @property
    def _templates(self) -> Templates:
        return Templates(self._services.settings.home)

    @route("get", "/api/templates", "Templates")
    def list(self, call: Call) -> Reply:
        """Lists the templates by name."""
        return Reply({"templates": self._templates.all()})

    @route("post", "/api/templates", "Templates", "NewTemplates")
    def keep(self, call: Call) -> Reply:
        """Keeps all of these, in place of those of the same names, and returns all there are."""
        return Reply({"templates": self._templates.keep(call.body["templates"])})

    @route("delete", "/api/templates/{name}", "Templates")
    def remove(self, call: Call) -> Reply:
        """Removes a template, and returns those that are left."""
        return Reply({"templates": self._templates.remove(call.path["name"])})


class PolicyApi(Handlers):
    """/api/policy: the user's rules for calls that need approval."""

    @route("get", "/api/policy", "Policy")
    def read(self, call: Call) -> Reply:
        """Returns the rules in force."""
        return Reply(load_policy(self._services.settings.home).as_dict())

    @route("put", "/api/policy", "Policy", "Policy")
    def write(self, call: Call) -> Reply:
        """Replaces all rules. An error names the faulty rule and changes nothing."""
        policy = Policy.of(call.body)
        save_policy(self._services.settings.home, policy)
        return Reply(policy.as_dict())


def why_held_back(home: Path) -> dict[str, Held | None]:
    """Returns why a model may not search by itself: always (`now`), and with private data."""
    try:
        policy = load_policy(home)
    except ConfigError:  # the next question reports rules that cannot be read
        policy = DEFAULT_POLICY
    cases = {"now": False, "private": True}
    return {name: held_back(policy.review(private=private)) for name, private in cases.items()}


class LibraryApi(Handlers):
    """/api/library: the folders of the library."""

    @route("get", "/api/library", "Library", query=("q",))
    def list(self, call: Call) -> Reply:
        """Lists the folders that can be searched without a network.

        With `q` the files, and the pages read, that have these letters in their title or address.
        """
        with self._services.library() as library:
            if (part := call.query.get("q")) is not None:
                return Reply({"documents": library.named(part, _MOST_NAMED)})
            collections = [asdict(c) for c in library.list()]
        return Reply({"collections": collections})

    @route("post", "/api/library", "LibraryAdded", "LibraryPath")
    def add(self, call: Call) -> Reply:
        """Reads a folder or file of this machine, or what changed in it.

        After some seconds it answers with the state `reading`; the list then has the progress.
        """
        path = Path(call.body["path"]).expanduser()
        files = self._services.settings.files
        if files and not is_below(path, files):
            what = f"{call.body['path'][:200]!r} is not among your folders."
            raise ConfigError("bad_path", what, f"Yours are those in {files}.")
        with self._services.library() as library:
            known = any(each.path == str(path) for each in library.list())
            if "\0" in call.body["path"] or not path.is_absolute() or not (known or path.exists()):
                what = f"There is no folder or file {call.body['path'][:200]!r}."
                remedy = "Give the full path of a folder or file on this machine."
                raise ConfigError("bad_path", what, remedy)
            name, reading = library.start(path, call.body.get("exclude"))
            try:
                added = asdict(reading.result(_READING_SECONDS))
            except TimeoutError:
                return Reply({"collection": name, "state": "reading"})
        for kind in ("skipped", "kept"):
            files = added[kind]
            shown = [{"path": path, "why": why} for path, why in files[:_MOST_SKIPPED]]
            added |= {kind: len(files), f"{kind}_files": shown}
        return Reply(added)

    @route("get", "/api/folders", "Folders", query=("path",), whose="operator")
    def folders(self, call: Call) -> Reply:
        """Lists the folders inside one of this machine, the home folder if none is named.

        Hidden folders, those with the name of a secret and those of the system are left out; the
        one that leads to the home folder comes first.
        """
        home = Path.home()
        wanted = Path(call.query.get("path") or home).expanduser()
        what, remedy = f"{str(wanted)[:200]!r} cannot be looked into.", "Choose another folder."
        try:
            if "\0" in str(wanted) or not wanted.is_absolute():
                raise ConfigError("bad_path", what, "Give the full path of a folder.")
            path = wanted.resolve(strict=True)
            if is_system(path) or _kept_back(path.parts[1:]):
                raise ConfigError("closed_path", what, remedy)
            with os.scandir(path) as entries:
                found = sorted(e.name for e in entries if _offered(path, e))
            found.sort(key=lambda name: not home.is_relative_to(path / name))
        except OSError as error:
            raise ConfigError("bad_path", what, remedy) from error
        shown = [{"name": name, "path": str(path / name)} for name in found[:_MOST_FOLDERS]]
        above = None if path.parent == path else str(path.parent)
        rest = {"parent": above, "home": str(home), "more": len(found) > _MOST_FOLDERS}
        return Reply({"path": str(path), "folders": shown, **rest})

    @route("patch", "/api/library", "LibraryPath", "LibraryPause")
    def pause(self, call: Call) -> Reply:
        """Stops the reading of a folder after its current batch; adding it again goes on."""
        with self._services.library() as library:
            library.pause(call.body["path"])
        return Reply({"path": call.body["path"]})

    @route("delete", "/api/library", "LibraryRemoved", "LibraryPath")
    def remove(self, call: Call) -> Reply:
        """Removes a folder from the index. Its files stay where they are."""
        with self._services.library() as library:
            return Reply({"removed": library.remove(call.body["path"])})


def _kept_back(parts: Sequence[str]) -> bool:
    return secret(parts) or closed(parts)


def _offered(folder: Path, entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".") or _kept_back((entry.name,))
    if hidden or not entry.is_dir() or is_system(folder / entry.name):
        return False
    return os.access(entry.path, os.R_OK | os.X_OK)
