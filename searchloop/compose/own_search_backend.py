"""The search backend as this process uses it.

`searchloop.compose` loads this module on first use.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment, Setting, Settings
from searchloop.agent.tools.backend import Wsgi
from searchloop.agent.transport import pool as _pool  # noqa: F401 - imports aiohttp fast, so first
from searchloop.analysis.plugins import Plugin
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.engines import Engine, engine_plugins, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.library.file_text import MOST_BYTES, Found, load
from searchloop.search_backend.library.roots import PAGES
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.readers import find_services, reader_plugins
from searchloop.search_backend.settings import SETTINGS, SearchSettings
from searchloop.search_backend.types import SearchBackendError


def make_app(settings: Settings, engines: Sequence[Engine | str] = ()) -> Wsgi:
    """Builds the search backend's WSGI application; `engines` replace those of the settings."""
    own = {each.name: each for each in engines if isinstance(each, Engine)}
    with _config_errors():
        held = SearchSettings.from_mapping(settings.env, home=settings.home, own=own)
        names = tuple(each if isinstance(each, str) else each.name for each in engines)
        if names:
            held = held.with_engines(names, own)
        return create_app(held, engines={**find_engines(), **own})


def check(env: Environment, home: Path) -> None:
    """Raises ConfigError naming a setting that the search backend cannot use."""
    with _config_errors():
        SearchSettings.from_mapping(env, home=home)


_PAGE = re.compile(rb"[\s\xef\xbb\xbf]*<(?:!doctype html|html)[\s>]", re.IGNORECASE)


def file_text(path: Path) -> str:
    """Returns a file, or stdin for `-`, as the library reads it. Raises ConfigError naming it."""
    name = path if path.name != "-" else "stdin"
    most = f"{name} is larger than {MOST_BYTES // 2**20} MB."
    try:
        with path.open("rb") if name is path else nullcontext(sys.stdin.buffer) as file:
            body = file.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise ConfigError("no_source", most, "Give the part that matters.")
        if name is not path and _PAGE.match(body):  # piped, so that no name says it
            path = Path("stdin.html")
        return load(Found(path.name, path.absolute()), body, WORKERS.read).text
    except (OSError, ValueError) as error:
        said = f"{name} could not be read: {getattr(error, 'strerror', error)}."
        raise ConfigError("no_source", said, "Check the path, or begin with https://.") from error
    except SearchBackendError as error:
        said = f"{name} could not be read: {error.message}"
        raise ConfigError("no_source", said, error.remedy or "Give another source.") from error


def forget_pages(home: Path) -> None:
    """Removes the opened pages from the library of a data folder."""
    with library(home) as index, suppress(SearchBackendError):  # there are none
        index.remove(PAGES)


@contextmanager
def library(home: Path) -> Iterator[Library]:
    """Opens the library's index in this data folder. Its errors become ConfigErrors."""
    with _config_errors():
        yield Library(home, read=WORKERS.read)


def backend_settings() -> list[Setting]:
    """Returns the search backend's own settings."""
    return [Setting(name, help, default) for name, default, help in SETTINGS]


def plugins() -> dict[str, tuple[Plugin, ...]]:
    """Returns the engines and readers that other packages bring, broken ones included."""
    return {"engines": engine_plugins(), "readers": reader_plugins()}


def settings_by_owner() -> Iterator[list[Setting]]:
    """Yields the settings of each engine and each reader."""
    engines, readers = find_engines().values(), find_services().values()
    for settings in (*(engine.settings for engine in engines), *(r.settings for r in readers)):
        yield [Setting(**asdict(setting)) for setting in settings]


@contextmanager
def _config_errors() -> Iterator[None]:
    """Turns the search backend's errors into the agent's ConfigError."""
    try:
        yield
    except SearchBackendError as error:
        raise ConfigError(error.code, error.message, error.remedy) from error
