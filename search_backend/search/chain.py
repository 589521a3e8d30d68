"""The chain: asks engines for a query and records every attempt.

A failed engine is not one that found nothing. A failure, an empty answer and an answer that the
domain rules emptied all lead to the next engine. `schedule` decides which engine is asked when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchloop.analysis.told import one_of
from searchloop.search_backend.cache.kept import Cache, SingleFlight
from searchloop.search_backend.engines import Access, Apart, Engine, find_engines, titles
from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.merge import filtered, ranked
from searchloop.search_backend.search.router import choose
from searchloop.search_backend.search.schedule import OneSearch, Schedule, lacks
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import (
    NOBODY,
    Attempt,
    Filtered,
    Owner,
    Query,
    SearchAnswer,
    SearchBackendError,
    SearchStatus,
)

_OPTIONS = ("time_range", "country", "language", "safe_search")
# Wishes that narrow a search; domains and safe search are rules.
_LOOSENED = ("time_range", "country", "language")


class Chain:
    """Searches with the engines of these settings, in their order."""

    def __init__(
        self,
        settings: SearchSettings,
        library: Library,
        engines: Mapping[str, Engine] | None = None,
        clock: Callable[[], float] = time.monotonic,
        cache: Cache | None = None,
        apart: Apart | None = None,
        http: EngineHttp | None = None,
    ) -> None:
        """`clock` gives monotonic seconds; `cache` keeps answers, one in memory if it is None;
        `apart` reads markup, this process if it is None."""
        self._settings = settings
        self._clock = clock
        known = find_engines() if engines is None else engines
        self._schedule = Schedule(settings, known, clock, apart)
        self._access = Access(settings.keys, library)
        self._http = http or EngineHttp()
        self._cache = cache or Cache(clock=clock)
        self._joined = SingleFlight[SearchAnswer]()

    def search(self, query: Query, engine: str | None = None, chat: Owner = NOBODY) -> SearchAnswer:
        """Asks the chain, or only the engine named, even if that rests, for a chat.

        Raises SearchBackendError for an unknown engine or one that lacks its key, and for domains
        that the settings do not allow.
        """
        if engine is not None and self._named(engine).remote and query.offline:
            what = f"{engine} is not on this machine, and the search is to stay on it."
            raise SearchBackendError("offline", what, "Leave out engine, or offline.")
        query = self._settings.held(query)
        if engine is not None:  # whoever names one wants it asked now
            return self._search(query, engine)
        key = repr(query)

        def work() -> SearchAnswer:
            if known := self._known(key, chat):
                return known
            answer = self._search(query, None)
            if answer.status == "ok":  # after a failure the next search may work
                self._cache.put(key, answer, self._fresh_for(answer), chat)
            return answer

        answer = self._joined.run(key, work, self._settings.seconds + 1)
        if chat.id:  # it may be the answer of another chat's search, which ran at the same time
            self._known(key, chat)
        return answer

    def _known(self, key: str, chat: Owner) -> SearchAnswer | None:
        """Returns a kept answer, which is the chat's, too, from now on."""
        if found := self._cache.get(SearchAnswer, key, chat):
            return replace(found[0], cached=True, age=int(found[1]))
        return None

    def describe(self) -> dict[str, Any]:
        """Returns all engines, their capabilities and missing settings (GET /api/engines)."""
        order = self._schedule.order()
        rows = []
        for engine in self._schedule.engines.values():
            missing = engine.missing(self._settings.keys)
            why = self._schedule.unavailable(engine)
            resting = self._schedule.circuits.resting(engine.name)
            rows.append(
                {
                    "name": engine.name,
                    "title": engine.title,
                    "remote": engine.remote,
                    "needs": list(engine.needs),
                    "missing": list(missing),
                    "capabilities": sorted(engine.applies),
                    "available": why is None,
                    "reason": why.message if why else None,
                    "problem": why.as_json() if why else None,
                    "resting": {"seconds": round(resting[0]), "cause": resting[1]}
                    if resting
                    else None,
                    "untested": engine.untested,
                    "routed": self._routed(engine),
                    "position": order.index(engine.name) + 1 if engine.name in order else None,
                }
            )
        return {"engines": rows, "offline": self._settings.offline}

    def _routed(self, engine: Engine) -> bool:
        """True if the router may ask the engine, which is not in the chain."""
        settings = self._settings
        return bool(engine.kinds) and settings.routed and engine.name not in settings.engines

    def close(self) -> None:
        """Closes the connections that are kept for the next search."""
        self._http.close()

    def _fresh_for(self, answer: SearchAnswer) -> float:
        """Returns the seconds for which an answer counts as fresh.

        Engines on this machine cost nothing and may change at any moment, so it is 0 for them.
        """
        engines = self._schedule.engines
        answered = [engines[a.engine] for a in answer.attempts if a.status == "ok"]
        return self._settings.cache_seconds if all(one.remote for one in answered) else 0.0

    def _named(self, name: str) -> Engine:
        engine = self._schedule.engines.get(name)
        if engine is None:
            what = f"There is no engine named {name[:60]!r}."
            known = self._schedule.engines
            raise SearchBackendError("unknown_engine", what, one_of(name, known, titles()))
        if missing := engine.missing(self._settings.keys):
            raise SearchBackendError("missing_key", *lacks(engine, missing))
        return engine

    def _search(self, query: Query, engine: str | None) -> SearchAnswer:
        until = self._clock() + self._settings.seconds
        answer = self._ask(query, engine, self._settings.seconds)
        wishes = {name: value for name in _LOOSENED if (value := getattr(query, name))}
        left = until - self._clock()
        if answer.status != "empty" or not wishes or left <= 0:
            return answer
        # Nothing matches these options; results without them are better than none.
        loose = replace(query, time_range=None, country=None, language=None)
        again = self._ask(loose, engine, left)
        rule = "; ".join(f"{name}={value}" for name, value in wishes.items())
        lifted = Filtered(rule, dropped=0, lifted=True)
        return replace(again, attempts=answer.attempts + again.attempts, filtered=lifted)

    def _ask(self, query: Query, name: str | None, seconds: float) -> SearchAnswer:
        names = [name] if name else self._schedule.order()
        chain = [self._schedule.engines[one] for one in names]
        if query.offline and not name:
            held = [engine for engine in chain if not engine.remote]
            chain = held or [self._schedule.engines["library"]]
        alone = name or query.offline
        sites = [] if alone else list(filter(self._free, self._schedule.engines.values()))
        one = OneSearch(
            *(self._schedule, self._http, self._access, query),
            by_name=name is not None,
            sites=choose(query, sites),
        )
        outcomes = run(one.run(chain, seconds), timeout=None)
        attempts = tuple(outcome.attempt for outcome in outcomes)
        dropped = filtered(query, sum(o.dropped for o in outcomes), sum(o.stale for o in outcomes))
        found = [outcome for outcome in outcomes if outcome.results]
        if not found:
            mine = [attempt for attempt in attempts if not attempt.why]
            status = _status(mine, {engine.name for engine in chain if engine.remote})
            return SearchAnswer(query.text, None, status, (), attempts, dropped)
        engines = [self._schedule.engines[outcome.attempt.engine] for outcome in found]
        respected = frozenset.intersection(*(engine.respects(query) for engine in engines))
        return SearchAnswer(
            query=query.text,
            engine=found[0].attempt.engine,
            status="ok",
            results=ranked((one.results for one in found), query.max_results),
            attempts=attempts,
            filtered=dropped,
            not_applied=tuple(o for o in _OPTIONS if getattr(query, o) and o not in respected),
        )

    def _free(self, engine: Engine) -> bool:
        return self._routed(engine) and not self._schedule.rests(engine)


def _status(attempts: Sequence[Attempt], remote: set[str]) -> SearchStatus:
    """Returns the status of a search without results.

    It is "empty" if an engine of the web said so: an empty local library does not make up for a web
    search that failed.
    """
    failed: list[SearchStatus] = []
    for attempt in attempts:
        if attempt.status == "empty" and attempt.engine in remote:
            return "empty"
        if attempt.status == "blocked":
            failed.append("blocked")
        elif attempt.status == "error" or (attempt.error and attempt.error.code == "resting"):
            failed.append("error")
    empty = any(attempt.status == "empty" for attempt in attempts)
    return failed[0] if failed else "empty" if empty else "error"
