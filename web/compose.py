"""Everything put together: settings, log, search backend, runner. The composition root.

The search backend is a WSGI application of its own; here it is made on first use, so that a
question that needs no search never pays for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent.backend import Wsgi, backend_for
from agent.errors import ConfigError
from agent.keys import Address
from agent.log import EventLog
from agent.mcp import McpServers
from agent.metrics import Metrics
from agent.process import GAUGES
from agent.providers import names, settings_of
from agent.runner import Runner
from agent.saved_files import SavedFiles
from agent.search_options import SETTINGS as SEARCH_OPTIONS
from agent.search_options import search_options
from agent.settings import (
    LOWEST,
    SETTINGS,
    Environment,
    Setting,
    Settings,
    read_config,
)
from agent.standard_tools import StandardTools
from agent.tools import ToolSource
from agent.watch import Watch, secrets_in
from agent.workspace import Workspace
from web.wsgi import LazyApp

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class House:
    """The parts a surface needs."""

    settings: Settings
    log: EventLog
    runner: Runner
    search_app: LazyApp
    mcp: McpServers
    metrics: Metrics
    files: SavedFiles
    watch: Watch

    def secrets(self) -> list[str]:
        """What no log may hold: every value whose name is that of a secret."""
        return secrets_in(self.settings)

    def close(self) -> None:
        """Closes the log, and sends what is waiting to be told."""
        self.log.close()
        self.watch.close()

    def sent_to(self, name: str) -> tuple[Address, ...]:
        """Where the key of this setting goes."""
        return sent_to(name)

    def declared(self) -> list[Setting]:
        """Every setting there is."""
        return every_setting()

    def check(self, env: Environment) -> Settings:
        """What these settings come to. Raises ConfigError naming one that cannot be used."""
        return check_settings(env)

    def use(self, settings: Settings) -> None:
        """From now on these settings hold."""
        self.settings = settings
        self.runner.use(settings)
        self.mcp.use(settings)
        self.search_app.renew()

    def look_again(self) -> None:
        """Puts in force what another process has saved meanwhile; what cannot be used is logged."""
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

    @contextmanager
    def library(self) -> Iterator[Any]:
        """The library's index: `search_backend.library.Library`. Its errors become ConfigErrors."""
        with _told():
            yield import_module("search_backend.library").Library(self.settings.home)


def search_app(settings: Settings) -> LazyApp:
    """The search backend of this process, not yet made."""

    def make() -> Wsgi:
        module = import_module("search_backend.settings")
        own = module.Settings.from_mapping(settings.env, home=settings.home)
        app: Wsgi = import_module("search_backend.app").create_app(own)
        return app

    return LazyApp(make)


def tool_sources(settings: Settings, mcp: McpServers) -> tuple[ToolSource, ...]:
    """What brings tools to a session beside the search."""
    return (StandardTools(), Workspace.of(settings), mcp)


def open_house(env: Environment | None = None) -> House:
    """Raises ConfigError for a bad setting and StoreError when the data folder cannot be used."""
    settings = Settings.load(env)
    metrics = Metrics()
    metrics.gauges.update(GAUGES)
    watch = Watch(settings, metrics)
    log, transport = watch.log(), watch.transport()
    app = search_app(settings)
    mcp = McpServers(settings)
    runner = Runner(
        settings,
        log,
        backend_for(settings, transport, app),
        transport=transport,
        bring=tool_sources(settings, mcp),
    )
    mcp.window = runner.window
    return House(settings, log, runner, app, mcp, metrics, SavedFiles(settings.home), watch)


def check_settings(env: Environment) -> Settings:
    """What these settings come to, in every part. Raises ConfigError naming one that cannot be
    used."""
    settings = Settings.load(env)
    search_options(env)
    with _told():
        own = import_module("search_backend.settings").Settings
        own.from_mapping(env, home=settings.home)
    return settings


@contextmanager
def _told() -> Iterator[None]:
    """What the search backend refuses, in the words of the agent's own errors."""
    try:
        yield
    except import_module("search_backend.errors").SearchBackendError as error:
        raise ConfigError(error.code, error.message, error.remedy) from error


def every_setting() -> list[Setting]:
    """The settings of the agent, of each provider, of the search backend, of each engine
    and of each reader."""
    found = {s.name: s for s in (*SETTINGS, *SEARCH_OPTIONS)}
    backend = import_module("search_backend.settings")
    for owned in _by_owner():
        for setting in owned:
            found.setdefault(setting.name, setting)
    for name, default, help in backend.SETTINGS:
        found.setdefault(name, Setting(name, help, default))
    return list(found.values())


def sent_to(name: str) -> tuple[Address, ...]:
    """The addresses that the key in this setting is sent to: those that its owners declare beside
    it. A setting KEY_HOST names the only one of KEY."""
    found: dict[str, Address] = {}
    for owned in _by_owner():
        if name not in {setting.name for setting in owned}:
            continue
        only = [setting for setting in owned if setting.name == f"{name}_HOST"]
        for setting in only or [s for s in owned if s.name.endswith(_ADDRESSES)]:
            names = (setting.name, *setting.aliases)
            found[setting.name] = Address(names, setting.default)
    return tuple(found.values())


_ADDRESSES = ("_URL", "_HOST", "_ENDPOINT")


def _by_owner() -> Iterator[list[Setting]]:
    """What each provider, engine and reader elsewhere declares."""
    for provider in names():
        yield settings_of(provider)
    engines = import_module("search_backend.engines").find_engines()
    readers = import_module("search_backend.readers").find_services()
    for part in (*engines.values(), *readers.values()):
        yield [Setting(s.name, s.help, s.default, s.aliases, s.secret) for s in part.settings]
