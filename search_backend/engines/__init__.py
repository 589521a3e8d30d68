"""Search engines: one file each, found by name. A new file is a new engine, nothing is edited.

An engine module ends in `ENGINE = Engine(...)`. Most engines speak JSON over HTTP: such a file has
two pure functions, one that makes the request and one that reads the answer, and `wire` holds both;
the chain moves the bytes. An engine over a package that does its own networking, or over a local
index, has `search` instead. Either raises `EngineError` when it failed; an empty list means that
the engine answered and knows nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from search_backend.fetched import Fetched
from search_backend.http_values import HttpRequest, HttpResponse
from search_backend.keys import Keys, Setting
from search_backend.library import Library
from search_backend.types import Query, SearchResult


@dataclass(frozen=True, slots=True)
class Access:
    """What an engine with `search` may use: the values of settings, and the local index."""

    keys: Keys
    library: Library


@dataclass(frozen=True, slots=True)
class Wire:
    """The two halves of an engine that speaks HTTP. Pure: neither sends nor waits.

    `request` raises EngineError(config) for settings it cannot use; `parse` raises EngineError for
    any answer that does not hold results.
    """

    request: Callable[[Query, Keys], HttpRequest]
    parse: Callable[[HttpResponse, Keys], list[SearchResult]]


@dataclass(frozen=True, slots=True)
class Engine:
    """One search engine, with either `search` or `wire`.

    `needs` are the settings it cannot work without, `settings` all that it reads, `applies` the
    parts of a query ("domains", "time_range", "country", "language", "safe_search") that it
    respects by itself. `remote` engines are left alone when offline. `rate` is how many requests
    a second it allows (0 = no limit known), `off_by` a setting that switches it off, `package` a
    module that an extra of the same name as the engine installs. `cannot`: what it has to leave out
    of `applies` for a certain query, where it can do one thing or another but not both.

    An engine whose results have addresses of a `scheme` of its own has `open`, which gives the
    document at such an address as if a server at `shelf.web_form` of it had answered; it raises
    SearchBackendError.
    """

    name: str
    title: str
    search: Callable[[Query, Access], list[SearchResult]] | None = None
    needs: tuple[str, ...] = ()
    remote: bool = True
    applies: frozenset[str] = frozenset()
    wire: Wire | None = None
    settings: tuple[Setting, ...] = ()
    rate: float = 0.0
    off_by: str = ""
    scheme: str = ""
    open: Callable[[str, Access], Fetched] | None = None
    package: str = ""
    cannot: Callable[[Query], frozenset[str]] | None = None

    def respects(self, query: Query) -> frozenset[str]:
        """The parts of this query that the engine respects by itself."""
        return self.applies - self.cannot(query) if self.cannot else self.applies

    def missing(self, keys: Keys) -> tuple[str, ...]:
        """Names of the needed settings that have no value."""
        return tuple(name for name in self.needs if not keys.get(name))

    def uninstalled(self) -> bool:
        """Whether its package is not there. Looking costs little; nothing is imported."""
        return bool(self.package) and importlib.util.find_spec(self.package) is None

    def switched_off(self, keys: Keys) -> bool:
        """Whether the user forbade it by the setting `off_by`."""
        return keys.get(self.off_by, "").lower() not in ("", "0", "false", "no", "off")


@cache
def find_engines() -> Mapping[str, Engine]:
    """Every engine of this package by name, in the order of the names."""
    found: dict[str, Engine] = {}
    for module in pkgutil.iter_modules(__path__):
        engine = getattr(importlib.import_module(f"{__name__}.{module.name}"), "ENGINE", None)
        if isinstance(engine, Engine):
            found[engine.name] = engine
    return dict(sorted(found.items()))


def find_shelves(access: Access) -> Mapping[str, Callable[[str], Fetched]]:
    """By scheme, who opens the addresses that are an engine's own."""

    def opener(open_document: Callable[[str, Access], Fetched]) -> Callable[[str], Fetched]:
        return lambda url: open_document(url, access)

    return {e.scheme: opener(e.open) for e in find_engines().values() if e.open is not None}


def default_chain(engines: Mapping[str, Engine], keys: Keys) -> tuple[str, ...]:
    """Engines the user set up first, then those that need nothing, then the local ones."""
    ready = [e for e in engines.values() if not e.missing(keys) and not e.switched_off(keys)]
    ready.sort(key=lambda engine: (not engine.remote, not engine.needs))
    return tuple(engine.name for engine in ready)
