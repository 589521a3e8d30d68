"""Everything put together: settings, log, search backend, runner. The composition root.

The search backend is a WSGI application of its own; here it is made on first use, so that a
question that needs no search never pays for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent.backend import Wsgi, backend_for
from agent.log import EventLog
from agent.runner import Runner
from agent.settings import Environment, Settings
from agent.transport import Transport


@dataclass(frozen=True, slots=True)
class House:
    """The parts a surface needs."""

    settings: Settings
    log: EventLog
    runner: Runner
    search_app: Wsgi


class LazyApp:
    """A WSGI application that is made at its first request."""

    def __init__(self, make: Callable[[], Wsgi]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._app: Wsgi | None = None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        with self._lock:
            app = self._app = self._app or self._make()
        return app(environ, start_response)


def search_app(settings: Settings) -> Wsgi:
    """The search backend of this process, not yet made."""

    def make() -> Wsgi:
        module = import_module("search_backend.settings")
        own = module.Settings.from_mapping(settings.env, home=settings.home)
        app: Wsgi = import_module("search_backend.app").create_app(own)
        return app

    return LazyApp(make)


def open_house(env: Environment | None = None) -> House:
    """Raises ConfigError for a bad setting and StoreError when the data folder cannot be used."""
    settings = Settings.load(env)
    log = EventLog(settings.home / "sessions.sqlite3")
    app = search_app(settings)
    transport = Transport(offline=settings.offline)
    runner = Runner(settings, log, backend_for(settings, transport, app), transport=transport)
    return House(settings, log, runner, app)
