"""The chain: engines are asked in order until one has results, and every attempt is on record.

An engine that failed is not an engine that found nothing. A failure, an empty answer and an
answer that the domain rules emptied all lead to the next engine, and the answer tells which it
was. An engine that failed rests for a while, unless it is asked for by name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from search_backend.canonical import canonical_key
from search_backend.circuit import Circuits
from search_backend.clean import one_line
from search_backend.domains import url_passes
from search_backend.engines import Access, Engine, find_engines
from search_backend.errors import EngineError, SearchBackendError
from search_backend.library import Library
from search_backend.settings import Settings
from search_backend.types import (
    Attempt,
    AttemptStatus,
    Filtered,
    Problem,
    Query,
    SearchAnswer,
    SearchResult,
    SearchStatus,
)

LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    attempt: Attempt
    results: tuple[SearchResult, ...] = ()
    dropped: int = 0


class Chain:
    """The engines of these settings, in their order."""

    def __init__(
        self,
        settings: Settings,
        library: Library,
        engines: Mapping[str, Engine] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._engines = find_engines() if engines is None else engines
        self._access = Access(settings.keys, library)
        self._circuits = Circuits(clock)
        self._clock = clock

    def search(self, query: Query, engine: str | None = None) -> SearchAnswer:
        """Ask the chain, or only the engine named.

        Raises SearchBackendError for an unknown engine or one that lacks its key.
        """
        chain = [self._named(engine)] if engine else [self._engines[e] for e in self._order()]
        answer = self._ask(chain, query, by_name=engine is not None)
        if answer.status != "empty" or query.time_range is None:
            return answer
        # Nothing in the time range is worth knowing, and so is what there is without it.
        again = self._ask(chain, replace(query, time_range=None), by_name=engine is not None)
        lifted = Filtered(f"time_range={query.time_range}", dropped=0, lifted=True)
        return replace(again, attempts=answer.attempts + again.attempts, filtered=lifted)

    def describe(self) -> dict[str, Any]:
        """The answer of GET /api/engines: every engine, what it can do, and what it lacks."""
        order = self._order()
        rows = []
        for engine in self._engines.values():
            missing, why = engine.missing(self._settings.keys), self._unavailable(engine)
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
                    "position": order.index(engine.name) + 1 if engine.name in order else None,
                }
            )
        return {"engines": rows, "offline": self._settings.offline}

    def _order(self) -> tuple[str, ...]:
        return tuple(name for name in self._settings.engines if name in self._engines)

    def _named(self, name: str) -> Engine:
        engine = self._engines.get(name)
        if engine is None:
            raise SearchBackendError(
                "unknown_engine",
                f"There is no engine named {name[:60]!r}.",
                f"Use one of: {', '.join(self._engines)}.",
            )
        if missing := engine.missing(self._settings.keys):
            raise SearchBackendError(
                "missing_key", _lacks(engine, missing), f"Set {', '.join(missing)}, or use another."
            )
        return engine

    def _ask(self, chain: Sequence[Engine], query: Query, *, by_name: bool) -> SearchAnswer:
        attempts: list[Attempt] = []
        dropped = 0
        for engine in chain:
            outcome = self._pass_over(engine, by_name=by_name) or self._attempt(engine, query)
            attempts.append(outcome.attempt)
            dropped += outcome.dropped
            if outcome.results:
                return self._answer(query, engine, outcome.results, attempts, dropped)
        status = _status(attempts, {engine.name for engine in chain if engine.remote})
        return SearchAnswer(
            query.text, None, status, (), tuple(attempts), _filtered(query, dropped)
        )

    def _pass_over(self, engine: Engine, *, by_name: bool) -> _Outcome | None:
        """Why the engine is not asked now, if it is not."""
        problem = self._unavailable(engine)
        if problem is None and not by_name and (resting := self._circuits.resting(engine.name)):
            seconds, reason = resting
            problem = Problem(
                "resting",
                f"{engine.title} failed a moment ago ({reason}); it is asked again in "
                f"{seconds:.0f} s.",
                "Wait, or name the engine to ask it now.",
            )
        return _Outcome(Attempt(engine.name, "skipped", 0, problem)) if problem else None

    def _unavailable(self, engine: Engine) -> Problem | None:
        if engine.remote and self._settings.offline:
            return Problem(
                "offline",
                f"{engine.title} was not asked: SEARCHLOOP_OFFLINE is set.",
                "Unset SEARCHLOOP_OFFLINE to search the web.",
            )
        if missing := engine.missing(self._settings.keys):
            return Problem("missing_key", _lacks(engine, missing), f"Set {', '.join(missing)}.")
        return None

    def _attempt(self, engine: Engine, query: Query) -> _Outcome:
        started = time.perf_counter()
        status: AttemptStatus = "error"
        problem: Problem | None = None
        found: list[SearchResult] = []
        try:
            found = engine.search(query, self._access)
        except EngineError as error:
            status = "blocked" if error.kind in ("blocked", "rate") else "error"
            problem = _problem(error)
            self._circuits.failed(engine.name, error.kind, doubtful=error.kind == "blocked")
        except SearchBackendError as error:
            problem = _problem(error)
        except Exception:
            # An engine with a fault must not take the other ones down with it.
            _log.exception("engine %s failed", engine.name)
            problem = Problem("internal", f"{engine.title} failed inside.", "Use another engine.")
        else:
            self._circuits.succeeded(engine.name)
        kept, dropped = _kept(found, query)
        if problem is None:
            status = "ok" if kept else "empty"
            if not kept and dropped:
                problem = Problem(
                    "filtered",
                    f"All {dropped} results are outside the domains asked for.",
                    "Loosen the domain rules.",
                )
        ms = round((time.perf_counter() - started) * 1000)
        return _Outcome(Attempt(engine.name, status, ms, problem), kept, dropped)

    def _answer(
        self,
        query: Query,
        engine: Engine,
        results: tuple[SearchResult, ...],
        attempts: Sequence[Attempt],
        dropped: int,
    ) -> SearchAnswer:
        ignored = ("time_range",) if query.time_range and "time_range" not in engine.applies else ()
        return SearchAnswer(
            query=query.text,
            engine=engine.name,
            status="ok",
            results=results,
            attempts=tuple(attempts),
            filtered=_filtered(query, dropped),
            not_applied=ignored,
        )


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


def _kept(found: Sequence[SearchResult], query: Query) -> tuple[tuple[SearchResult, ...], int]:
    """Results that pass the rules, each page once, cleaned; and how many the rules dropped."""
    kept: dict[str, SearchResult] = {}
    dropped = 0
    for result in found:
        if not url_passes(result.url, query.allowed_domains, query.blocked_domains):
            dropped += 1
            continue
        cleaned = replace(
            result,
            title=one_line(result.title, LONGEST_TITLE),
            snippet=one_line(result.snippet, LONGEST_SNIPPET),
        )
        kept.setdefault(canonical_key(result.url), cleaned)
    return tuple(kept.values())[: query.max_results], dropped


def _filtered(query: Query, dropped: int) -> Filtered | None:
    if not dropped:
        return None
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    return Filtered("; ".join(f"{name}={','.join(r)}" for name, r in rules if r), dropped)


def _problem(error: SearchBackendError) -> Problem:
    return Problem(error.code, error.message, error.remedy)


def _lacks(engine: Engine, missing: Sequence[str]) -> str:
    return f"The engine {engine.name} lacks {', '.join(missing)}."
