"""The composition root: builds settings, log, search backend, MCP servers and runner of a process.

The search backend is imported on first use, so that a question without a search does not pay.

Others may import: check.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.mcp import McpServers
from searchloop.agent.observe.logs import Instrumentation, secrets_in
from searchloop.agent.observe.metrics import Metrics
from searchloop.agent.providers import names, provider_plugins, settings_of
from searchloop.agent.run.question import PluginTools, StandardTools, tool_plugins
from searchloop.agent.run.runner import Runner
from searchloop.agent.search.switch import SETTINGS as SEARCH_OPTIONS
from searchloop.agent.search.switch import search_options
from searchloop.agent.settings import LOWEST, SETTINGS, Environment, Setting, Settings, read_config
from searchloop.agent.settings.config_file import SavedFiles
from searchloop.agent.settings.keys import Address
from searchloop.agent.settings.private_files import replace_private
from searchloop.agent.tools import ToolSource
from searchloop.agent.tools.backend import Backend, Wsgi, backend_for
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.transport.transport import Transport

_log = logging.getLogger(__name__)
_ADDRESSES = ("_URL", "_ENDPOINT")


class LazyApp:
    """A WSGI application that is built at its first request."""

    def __init__(self, make: Callable[[], Wsgi]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._app: Wsgi | None = None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answers a request. See PEP 3333."""
        with self._lock:
            app = self._app = self._app or self._make()
        return app(environ, start_response)

    def renew(self) -> None:
        """Builds the application anew at the next request. Live requests end in the old one."""
        with self._lock:
            self._app = None


def search_app(settings: Settings, engines: Sequence[Any] = ()) -> LazyApp:
    """Returns this process's search backend, which is built at its first request.

    `engines` are the ones to ask in place of those in the settings: `Engine`s, or their names.
    """
    return LazyApp(lambda: _backend().make_app(settings, engines))


def file_text(path: Path) -> str:
    """Returns a file as the library reads it. Raises ConfigError that names it."""
    read: str = _backend().file_text(path)
    return read


def tool_sources(settings: Settings, mcp: McpServers) -> tuple[ToolSource, ...]:
    """Returns what gives tools to a session, apart from the search."""
    return (StandardTools(), Workspace.of(settings), mcp, PluginTools())


def find_plugins() -> dict[str, list[dict[str, str]]]:
    """Returns the plugins of other packages by kind: {name, package, problem} each."""
    parts = {**_backend().plugins(), "providers": provider_plugins(), "tools": tool_plugins()}
    names = ("name", "package", "problem")
    return {k: [{n: getattr(p, n) for n in names} for p in found] for k, found in parts.items()}


def check_settings(env: Environment) -> Settings:
    """Parses the settings of every part. Raises ConfigError naming one that cannot be used."""
    settings = Settings.load(env)
    search_options(env)
    _backend().check(env, settings.home)
    return settings


def every_setting() -> list[Setting]:
    """Returns the settings of all parts: agent, search backend, providers, engines, readers."""
    found = {s.name: s for s in (*SETTINGS, *SEARCH_OPTIONS)}
    for owned in (*_by_owner(), _backend().backend_settings()):
        for setting in owned:
            found.setdefault(setting.name, setting)
    return list(found.values())


def unknown_settings(env: Environment) -> list[str]:
    """Returns names like ours that are set and mean nothing: misspelled, or of another version."""
    known = {name for each in every_setting() for name in (each.name, *each.aliases)}
    return sorted(name for name in env if name.startswith("SEARCHLOOP_") and name not in known)


def listed_settings(env: Environment) -> list[Setting]:
    """Returns the settings that a list shows: of the ..._BASE_URL only those that are set."""
    return [s for s in every_setting() if not s.name.endswith("_BASE_URL") or env.get(s.name)]


def sent_to(name: str) -> tuple[Address, ...]:
    """Returns the address settings beside which this key is declared: where the key is sent."""
    found: dict[str, Address] = {}
    for owned in _by_owner():
        if name not in {setting.name for setting in owned}:
            continue
        for setting in (s for s in owned if s.name.endswith(_ADDRESSES)):
            found[setting.name] = Address((setting.name, *setting.aliases), setting.default)
    return tuple(found.values())


@dataclass(slots=True, weakref_slot=True)
class Services:
    """The parts of a process: what the web side and the command line work with."""

    settings: Settings
    log: EventLog
    runner: Runner
    backend: Backend
    search_app: LazyApp
    mcp: McpServers
    metrics: Metrics
    files: SavedFiles
    watch: Instrumentation
    people: WeakValueDictionary[str, Services] = field(default_factory=WeakValueDictionary)
    key_addresses = staticmethod(sent_to)
    declared = staticmethod(every_setting)
    check = staticmethod(check_settings)

    def secrets(self) -> list[str]:
        """Returns the values of all settings with a secret's name: no log may hold them.

        Those of each person who is here are among them.
        """
        every = (self, *self.people.values())
        return [secret for services in every for secret in secrets_in(services.settings)]

    def close(self) -> None:
        """Closes the log and sends the telemetry that is still waiting."""
        self.log.close()
        self.watch.close()

    def of_person(self, name: str) -> Services:
        """Opens what a person works with: a home of their own, and their part of the log."""
        place = self.settings.home / "people" / hashlib.sha256(name.encode()).hexdigest()[:32]
        home = place / "data"
        for folder in (home, place / "files"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (place / "name").exists():
            replace_private(place / "name", f"{name}\n")
        settings = Settings.load(self.settings.env.of_person(name, home))
        log = self.log.of_person(name)
        made = self.people[name] = _assembled(settings, log, self.watch, self.metrics)
        return made

    def forget_pages(self) -> None:
        """Removes every page and answer of a search that was kept. Raises ConfigError."""
        _backend().forget_pages(self.settings.home)
        self.search_app.renew()

    def use(self, settings: Settings) -> None:
        """Puts settings in force, from the next turn and the next search on."""
        self.settings = settings
        self.runner.use(settings)
        self.mcp.use(settings)
        self.search_app.renew()

    def reload(self) -> None:
        """Puts in force what another process saved since the last call. Logs what is unusable."""
        if not self.files.changed():
            return
        env = self.settings.env
        try:
            values = read_config(self.settings.home / LOWEST)
            if env.key_store:
                env.key_store.reload()
            self.check(env.with_layer(LOWEST, values))
            env.put(LOWEST, values)
            self.use(self.check(env))
        except ConfigError as error:
            _log.warning("what was saved is not used: %s %s", error.message, error.remedy)

    def library(self) -> AbstractContextManager[Any]:
        """Opens the library's index, a `search_backend.library.Library`. Raises ConfigError."""
        opened: AbstractContextManager[Any] = _backend().library(self.settings.home)
        return opened


def open_services(env: Environment | None = None) -> Services:
    """Raises ConfigError for a bad setting and StoreError when the data folder cannot be used."""
    settings = Settings.load(env)
    metrics = Metrics()
    watch = Instrumentation(settings, metrics)
    return _assembled(settings, watch.log(), watch, metrics)


def _assembled(
    settings: Settings, log: EventLog, watch: Instrumentation, metrics: Metrics
) -> Services:
    transport, app = Transport(offline=settings.offline), search_app(settings)
    mcp = McpServers(settings)
    backend, bring = backend_for(settings, transport, app), tool_sources(settings, mcp)
    runner = Runner(settings, log, backend, transport=transport, bring=bring)
    runner.afterwards.on = True
    mcp.window = runner.window
    files = SavedFiles(settings.home)
    return Services(settings, log, runner, backend, app, mcp, metrics, files, watch)


def _by_owner() -> Iterator[list[Setting]]:
    """Yields the settings of each provider, engine and reader."""
    for provider in names():
        yield settings_of(provider)
    yield from _backend().settings_by_owner()


def _backend() -> Any:
    """Imports the search backend when it is first needed: it takes as long as half of our start."""
    return import_module("searchloop.compose.own_search_backend")
