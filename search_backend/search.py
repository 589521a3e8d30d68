"""The chain: what a search asks, what it answers, and what it tells about the way there.

An engine that failed is not an engine that found nothing. A failure, an empty answer and an answer
that the domain rules emptied all lead to the next engine, and every attempt is on record. How
engines are asked is the relay's business, whether one may be asked the lineup's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from search_backend.disk_cache import Disk
from search_backend.engine_http import Connections
from search_backend.engines import Access, Engine, find_engines
from search_backend.errors import SearchBackendError
from search_backend.library import Library
from search_backend.lineup import Lineup, Outcome, lacks, setting_up
from search_backend.merge import filtered, fuse
from search_backend.race import Race
from search_backend.relay import Relay
from search_backend.result_cache import Kept, OnDisk, Shared
from search_backend.settings import Settings
from search_backend.types import Attempt, Filtered, Query, SearchAnswer, SearchStatus

_OPTIONS = ("time_range", "country", "language", "safe_search")
# Wishes that narrow a search; domains and safe search are rules.
_LOOSENED = ("time_range", "country", "language")


class Chain:
    """The engines of these settings, in their order."""

    def __init__(
        self,
        settings: Settings,
        library: Library,
        engines: Mapping[str, Engine] | None = None,
        clock: Callable[[], float] = time.monotonic,
        disk: Disk | None = None,
    ) -> None:
        """`clock` gives monotonic seconds; answers are kept in memory, and on `disk` if given."""
        self._settings = settings
        self._lineup = Lineup(settings, find_engines() if engines is None else engines, clock)
        self._access = Access(settings.keys, library)
        self._connections = Connections()
        front = Kept(clock)
        self._disk = disk
        behind = OnDisk(front, disk, self._scope(), time.time) if disk else None
        self._shared = Shared(front, behind, self._fresh_for)

    def search(self, query: Query, engine: str | None = None) -> SearchAnswer:
        """Ask the chain, or only the engine named, which is asked even if it rests.

        Raises SearchBackendError for an unknown engine or one that lacks its key, and for domains
        that the settings do not allow.
        """
        if engine is not None:
            self._named(engine)
        query = self._settings.held(query)
        return self._shared.answer(
            (query, engine),
            lambda: self._search(query, engine),
            fresh=engine is not None,
            seconds=self._settings.seconds + 1,
        )

    def kept(self, query: Query, engine: str | None = None) -> SearchAnswer | None:
        """The answer that is in memory, if there is one; an engine asked by name is asked.

        Raises what `search` raises.
        """
        return None if engine else self._shared.known((self._settings.held(query), engine))

    def describe(self) -> dict[str, Any]:
        """The answer of GET /api/engines: every engine, what it can do, and what it lacks."""
        order = self._lineup.order()
        rows = []
        for engine in self._lineup.engines.values():
            missing = engine.missing(self._settings.keys)
            why = self._lineup.unavailable(engine)
            resting = self._lineup.circuits.resting(engine.name)
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
                    "position": order.index(engine.name) + 1 if engine.name in order else None,
                }
            )
        return {"engines": rows, "offline": self._settings.offline}

    def close(self) -> None:
        """Hang up the connections that are kept for the next search, and write down answers."""
        self._connections.close()
        if self._disk is not None:
            self._disk.flush()

    def _fresh_for(self, answer: SearchAnswer) -> float:
        """Seconds for which an answer counts as fresh: the least of those whose results are in it.

        Engines on this machine cost nothing, and what they know may change at any moment.
        """
        engines = self._lineup.engines
        sources = {result.source for result in answer.results} & engines.keys()
        if any(not engines[name].remote for name in sources):
            return 0.0
        usual, own = self._settings.cache_seconds, self._settings.fresh
        return min((own.get(name, usual) for name in sources), default=usual)

    def _scope(self) -> str:
        """What an answer depends on beside the query. Secrets stay out."""
        settings, chain = self._settings, self._lineup.order()
        known = [s for name in chain for s in self._lineup.engines[name].settings if not s.secret]
        values = [f"{s.name}={settings.keys.get(s.name, '')}" for s in known]
        return "\n".join([",".join(chain), str(settings.fanout), *values])

    def _named(self, name: str) -> Engine:
        engine = self._lineup.engines.get(name)
        if engine is None:
            raise SearchBackendError(
                "unknown_engine",
                f"There is no engine named {name[:60]!r}.",
                f"Use one of: {', '.join(self._lineup.engines)}.",
            )
        if missing := engine.missing(self._settings.keys):
            raise SearchBackendError(
                "missing_key", lacks(engine, missing), setting_up(engine, missing)
            )
        return engine

    def _search(self, query: Query, engine: str | None) -> SearchAnswer:
        until = time.monotonic() + self._settings.seconds
        answer = self._ask(query, engine, self._settings.seconds)
        wishes = {name: value for name in _LOOSENED if (value := getattr(query, name))}
        left = until - time.monotonic()
        if answer.status != "empty" or not wishes or left <= 0:
            return answer
        # Nothing within these wishes is worth knowing, and so is what there is without them.
        loose = replace(query, time_range=None, country=None, language=None)
        again = self._ask(loose, engine, left)
        rule = "; ".join(f"{name}={value}" for name, value in wishes.items())
        lifted = Filtered(rule, dropped=0, lifted=True)
        return replace(again, attempts=answer.attempts + again.attempts, filtered=lifted)

    def _ask(self, query: Query, name: str | None, seconds: float) -> SearchAnswer:
        names = [name] if name else self._lineup.order()
        chain = [self._lineup.engines[one] for one in names]
        width = 1 if name else self._settings.fanout
        race = Race(self._connections)
        relay = Relay(self._lineup, race, self._access, query, by_name=name is not None)
        outcomes = relay.run(chain, width, seconds)
        found = [outcome for outcome in outcomes if outcome.results]
        if width == 1:
            found = found[:1]
        attempts = tuple(outcome.attempt for outcome in outcomes)
        dropped = filtered(query, sum(o.dropped for o in outcomes), sum(o.stale for o in outcomes))
        if not found:
            status = _status(attempts, {engine.name for engine in chain if engine.remote})
            return SearchAnswer(query.text, None, status, (), attempts, dropped)
        results = fuse([outcome.results for outcome in found], query.max_results)
        return SearchAnswer(
            query=query.text,
            engine=_main(results, found),
            status="ok",
            results=results,
            attempts=attempts,
            filtered=dropped,
            not_applied=self._not_applied(query, found),
        )

    def _not_applied(self, query: Query, found: Sequence[Outcome]) -> tuple[str, ...]:
        """Wishes that at least one of the engines with results cannot respect."""
        engines = [self._lineup.engines[outcome.attempt.engine] for outcome in found]
        return tuple(
            option
            for option in _OPTIONS
            if getattr(query, option)
            and any(option not in engine.respects(query) for engine in engines)
        )


def _main(results: Sequence[Any], found: Sequence[Outcome]) -> str:
    """The engine that gave the most of what is shown; of equals the one asked first."""
    counts = {outcome.attempt.engine: 0 for outcome in found}
    for result in results:
        if result.source in counts:
            counts[result.source] += 1
    return max(counts, key=lambda name: counts[name])


def _status(attempts: Sequence[Attempt], remote: set[str]) -> SearchStatus:
    """Of a search without results. "empty" is said only by an engine that could know.

    The local library knowing nothing does not make up for a web search that failed.
    """
    failed: list[SearchStatus] = []
    for attempt in attempts:
        if attempt.status == "empty" and attempt.engine in remote:
            return "empty"
        if attempt.status == "blocked":
            failed.append("blocked")
        elif attempt.status == "error" or (attempt.error and attempt.error.code == "resting"):
            failed.append("error")
    if failed:
        return failed[0]
    return "empty" if any(attempt.status == "empty" for attempt in attempts) else "error"
