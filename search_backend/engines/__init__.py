"""Search engines: one file each, found by name. A new file is a new engine, nothing is edited.

An engine module ends in `ENGINE = Engine(...)`. Its `search` gets the query and what it may use,
and returns results in the engine's own order. It raises `EngineError` when it failed; an empty
list means that the engine answered and knows nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from search_backend.library import Library
from search_backend.types import Query, SearchResult


@dataclass(frozen=True, slots=True)
class Access:
    """What an engine may use: the values of the settings it needs, and the local index."""

    keys: Mapping[str, str]
    library: Library


@dataclass(frozen=True, slots=True)
class Engine:
    """One search engine.

    `needs` are the settings it cannot work without, `applies` the parts of a query ("domains",
    "time_range") that it respects by itself. `remote` engines are left alone when offline.
    """

    name: str
    title: str
    search: Callable[[Query, Access], list[SearchResult]]
    needs: tuple[str, ...] = ()
    remote: bool = True
    applies: frozenset[str] = frozenset()

    def missing(self, keys: Mapping[str, str]) -> tuple[str, ...]:
        """Names of the needed settings that have no value."""
        return tuple(name for name in self.needs if not keys.get(name))


@cache
def find_engines() -> Mapping[str, Engine]:
    """Every engine of this package by name, in the order of the names."""
    found: dict[str, Engine] = {}
    for module in pkgutil.iter_modules(__path__):
        engine = getattr(importlib.import_module(f"{__name__}.{module.name}"), "ENGINE", None)
        if isinstance(engine, Engine):
            found[engine.name] = engine
    return dict(sorted(found.items()))


def default_chain(engines: Mapping[str, Engine], keys: Mapping[str, str]) -> tuple[str, ...]:
    """Engines the user set up first, then those that need nothing, then the local ones."""
    ready = [engine for engine in engines.values() if not engine.missing(keys)]
    ready.sort(key=lambda engine: (not engine.remote, not engine.needs))
    return tuple(engine.name for engine in ready)
