"""Search engines: one file each, found by name. A new file is a new engine; nothing else changes.

`keyed` holds those of vendors with a key, `keyless` the official searches of single sites; the
rest stands here, among it what runs on the user's own machines. Others bring engines by the entry
point `searchloop.engines`.

An engine module ends in `ENGINE = Engine(...)`. Most engines speak JSON over HTTP: such a file has
two pure functions, one that makes the request and one that reads the answer; `wire` holds both and
the chain sends. An engine over a package with its own networking, or over a local index, has
`search` instead. Either raises `EngineError` if it failed; an empty list means that the engine
answered and found nothing.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from searchloop.analysis.plugins import Plugin
from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.plugin import (
    HttpRequest,
    HttpResponse,
    Keys,
    Setting,
    secrets_in,
    without_keys,
)
from searchloop.search_backend.plugin.entry_points import find_parts, own_parts
from searchloop.search_backend.plugin.markup import Markup
from searchloop.search_backend.types import Query, SearchBackendError, SearchResult

OPEN_SECONDS = 20.0  # in which an engine may open one of its addresses


@dataclass(frozen=True, slots=True)
class Access:
    """The values of settings and the local index, for engines with `search`."""

    keys: Keys
    library: Library


@dataclass(frozen=True, slots=True)
class Wire:
    """The pure functions of an engine that speaks HTTP.

    `request` raises EngineError(config) for settings it cannot use; `parse` raises EngineError for
    any answer that does not hold results. Where a search takes two requests, `then` makes the
    second of the first answer; without one, `parse` gets the first answer. An answer in HTML or XML
    has `markup`: its selectors run in a process that may be killed, and `parse` reads `rows`.
    """

    request: Callable[[Query, Keys], HttpRequest]
    parse: Callable[[HttpResponse, Keys], list[SearchResult]]
    then: Callable[[HttpResponse, Keys], HttpRequest | None] | None = None
    markup: Markup | None = None


class Apart(Protocol):
    """Processes that may be killed, for markup."""

    def rows(self, body: bytes, markup: Markup, /) -> list[dict[str, str]] | None:
        """Returns what `markup.rows_in` does. Raises EngineError."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One search engine, with either `search` or `wire`.

    `needs` are the required settings, `settings` all that it reads. `applies` are the options of a
    query ("domains", "time_range", "country", "language", "safe_search") that it respects by
    itself; `cannot` returns those that it must leave out of `applies` for a certain query. `remote`
    engines are not asked when offline. `rate` is the requests a second that it allows (0 = no limit
    known), `slow` an engine that may take seconds, `off_by` a setting that switches it off,
    `package` a module that an extra with the engine's name installs. `untested` engines have been
    checked against documentation only, never against a recorded answer.

    The official search of a single site has `kinds`, the best first: the kinds of questions
    (search/kinds.toml) for which it is asked when the chain has failed, by keywords. `sites` are
    the hosts of its results, if they are few.

    An engine whose results have addresses of its own `scheme`, or stand on `sites` that only it can
    read, has `open`. That returns the text of an address, plain or HTML, or a `Fetched` as if a
    server at its `plugin.web_form` had answered. Without it marks of such pages stay `unread`.
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
    slow: bool = False
    off_by: str = ""
    scheme: str = ""
    open: Callable[[str, Access], Fetched | str] | None = None
    package: str = ""
    cannot: Callable[[Query], frozenset[str]] | None = None
    kinds: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    untested: bool = False

    def __post_init__(self) -> None:
        if any(map(inspect.iscoroutinefunction, (self.search, self.open))):
            what = "write `search` and `open` as plain functions; they run in threads"
            raise ValueError(f"The engine {self.name} has an `async def`: {what}.")
        if self.scheme and self.open is None:
            what = f"The engine {self.name} has a `scheme` and no `open`: nothing reads its pages."
            raise ValueError(what)
        if self.open and not (self.scheme or self.sites):
            what = "give it a `scheme` or `sites`, whose pages it reads"
            raise ValueError(f"The engine {self.name} has an `open` that nothing calls: {what}.")

    def respects(self, query: Query) -> frozenset[str]:
        """Returns the options of this query that the engine respects by itself."""
        return self.applies - self.cannot(query) if self.cannot else self.applies

    def missing(self, keys: Keys) -> tuple[str, ...]:
        """Returns the names of required settings without a value."""
        return tuple(name for name in self.needs if not keys.get(name))

    def uninstalled(self) -> bool:
        """True if its package is not installed; imports nothing."""
        return bool(self.package) and importlib.util.find_spec(self.package) is None

    def switched_off(self, keys: Keys) -> bool:
        """True if the setting `off_by` switches it off."""
        return keys.get(self.off_by, "").lower() not in ("", "0", "false", "no", "off")


@cache
def find_engines() -> Mapping[str, Engine]:
    """Returns every engine, those of plugins included, by name, sorted."""
    brought = {part.value.name: part.value for part in engine_plugins() if part.value}
    return dict(sorted({**brought, **own_engines()}.items()))


@cache
def titles() -> Mapping[str, str]:
    """Returns the name of each engine by its title: people write `duckduckgo`, too."""
    return {engine.title.lower(): name for name, engine in find_engines().items()}


@cache
def own_engines() -> Mapping[str, Engine]:
    """Returns the engines of this package, by name."""
    folders = (__name__, f"{__name__}.keyed", f"{__name__}.keyless")
    found = [one for folder in folders for one in own_parts(folder, "ENGINE", Engine)]
    return {engine.name: engine for engine in found}


def engine_plugins() -> tuple[Plugin, ...]:
    """Returns what other packages bring as engines, broken ones included."""
    return find_parts("engines", (Engine,), ("ENGINE",), frozenset(own_engines()))


def find_shelves(
    access: Access, engines: Iterable[Engine], seconds: float = OPEN_SECONDS
) -> Mapping[str, Callable[[str], Fetched]]:
    """Returns, by scheme or host, the functions that open addresses of engines within `seconds`."""
    return {
        place: partial(_opened, engine, access, seconds)
        for engine in engines
        if engine.open is not None
        for place in (engine.scheme, *engine.sites)
    }


def _opened(engine: Engine, access: Access, seconds: float, url: str) -> Fetched:
    opened = engine.open
    assert opened is not None
    call = in_thread(lambda: opened(url, access))
    try:
        found = call.result(seconds)
    except TimeoutError as error:
        what = f"{engine.title} had not opened {url} after {seconds:g} s."
        raise SearchBackendError("timeout", what, "Use another source.") from error
    except Exception as error:
        code, remedy = "page_failed", "Use another source."
        what = f"{engine.title} could not open {url}: {type(error).__name__}: {error}"
        if isinstance(error, SearchBackendError):
            code, what, remedy = error.code, error.message, error.remedy
        secrets = secrets_in(access.keys, engine.settings)  # its words may quote them
        told = (without_keys(words, secrets) for words in (what, remedy))
        raise SearchBackendError(code, *told) from None
    if isinstance(found, Fetched):
        return found
    kind = "text/html" if found.lstrip().startswith("<") else "text/plain"
    return Fetched(url, url, 200, kind, "utf-8", found.encode())


def default_chain(engines: Mapping[str, Engine], keys: Keys) -> tuple[str, ...]:
    """Returns the engines with keys first, then those that need none, then the local ones; not
    those of single sites, which the router adds."""
    ready = [e for e in engines.values() if not e.missing(keys) and not e.switched_off(keys)]
    ready = [engine for engine in ready if not engine.kinds]
    ready.sort(key=lambda engine: (not engine.remote, not engine.needs))
    return tuple(engine.name for engine in ready)
