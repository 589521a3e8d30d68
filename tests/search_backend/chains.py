"""Chains over engines of a test: a search each, without a network, at a time that stands still."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.engines import Access, Engine, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Attempt, EngineError, Query, SearchAnswer, SearchResult

LOCAL = ("local", "library")  # the names of engines that need no network
DOWN = EngineError("network", "The network is down.", "Plug it in.")
BLOCKED = EngineError("blocked", "It wants a CAPTCHA.", "Wait.")
Search = Callable[[Query, Access], Any]


class Clock:
    """Seconds that pass when told."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Script:
    """A search that plays answers one after the other, then repeats the last; addresses stand for
    results. It remembers what it was asked."""

    def __init__(self, *answers: list[str] | list[SearchResult] | Exception) -> None:
        self.answers, self.queries = list(answers), list[Query]()

    @property
    def asked(self) -> list[str]:
        """The words of the questions."""
        return [query.text for query in self.queries]

    def __call__(self, query: Query, _access: Access) -> list[SearchResult]:
        self.queries.append(query)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [
            SearchResult(f"Title of {one}", one, "Words.", "fake") if isinstance(one, str) else one
            for one in answer
        ]


def chain_of(
    home: Path,
    searches: Mapping[str, Search | Engine],
    clock: Callable[[], float] | None = None,
    cache: Cache | None = None,
    **settings: Any,
) -> Chain:
    """A chain of these engines in their order; those with the name of an official site have its
    kinds, hosts and rate, and are no part of the chain."""
    sites = {name: one for name, one in find_engines().items() if one.kinds}
    known = {
        name: one if isinstance(one, Engine) else _engine(name, one, sites.get(name))
        for name, one in searches.items()
    }
    chain = tuple(name for name in known if name not in sites)
    own = SearchSettings(home, **({"engines": chain, "routed": True} | settings))
    return Chain(own, Library(home, dict), known, clock or Clock(), cache)


def _engine(name: str, search: Search, site: Engine | None) -> Engine:
    traits = {} if site is None else {n: getattr(site, n) for n in ("kinds", "sites", "rate")}
    return Engine(name, name.title(), search, remote=name not in LOCAL, **traits)


def trail(answer: SearchAnswer) -> list[tuple[str, str]]:
    """(engine, status) of each attempt."""
    return [(a.engine, a.status) for a in answer.attempts]


def attempt_of(answer: SearchAnswer, engine: str) -> Attempt:
    """The attempt of an engine."""
    return next(a for a in answer.attempts if a.engine == engine)


def codes(answer: SearchAnswer) -> dict[str, str]:
    """Why engines gave nothing."""
    return {a.engine: a.error.code for a in answer.attempts if a.error}
