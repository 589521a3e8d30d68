"""Which engines may be asked now, and what the way they ended means for the next search."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from search_backend.addresses import parse_ranges
from search_backend.circuit import Circuits
from search_backend.engine_http import explain
from search_backend.engines import Engine
from search_backend.errors import EngineError, SearchBackendError
from search_backend.framing import BadAnswer
from search_backend.http_values import HttpResponse
from search_backend.keys import secrets_in, without_keys
from search_backend.merge import Kept, keep
from search_backend.pace import LONGEST_WAIT, Buckets, HedgeBudget, Latencies
from search_backend.settings import Settings
from search_backend.types import Attempt, AttemptStatus, Problem, Query, SearchResult

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one engine's part in a search ended: results that passed the rules, how many were
    outside the domains, how many too old."""

    attempt: Attempt
    results: tuple[SearchResult, ...] = ()
    dropped: int = 0
    stale: int = 0


@dataclass(frozen=True, slots=True)
class Admitted:
    """The engine may be asked in `wait` seconds; `probe` when it has just rested."""

    wait: float = 0.0
    probe: bool = False


# Of our own: threads that draw from the one of the whole program disturb whoever has seeded that.
_LUCK = random.Random()


class Lineup:
    """The engines of these settings and what is known of their health. Safe for several threads."""

    def __init__(
        self, settings: Settings, engines: Mapping[str, Engine], clock: Callable[[], float]
    ) -> None:
        self.engines = engines
        self.settings = settings
        self.circuits = Circuits(clock, lambda: _LUCK.uniform(0.9, 1.1))
        self.buckets = Buckets(clock)
        self.latencies = Latencies()
        self.hedges = HedgeBudget()
        self._allow = parse_ranges(settings.allow_ranges)
        self._secrets = secrets_in(settings.keys)

    def order(self) -> tuple[str, ...]:
        """Names of the engines of the chain."""
        return tuple(name for name in self.settings.engines if name in self.engines)

    def unavailable(self, engine: Engine) -> Problem | None:
        """Why the user's settings keep the engine from being asked at all, if they do."""
        if engine.remote and self.settings.offline:
            return Problem(
                "offline",
                f"{engine.title} was not asked: SEARCHLOOP_OFFLINE is set.",
                "Unset SEARCHLOOP_OFFLINE to search the web.",
            )
        if engine.switched_off(self.settings.keys):
            return Problem(
                "switched_off",
                f"{engine.title} was not asked: {engine.off_by} is set.",
                f"Unset {engine.off_by} to use it.",
            )
        if missing := engine.missing(self.settings.keys):
            return Problem("missing_key", lacks(engine, missing), setting_up(engine, missing))
        if engine.uninstalled():
            return Problem(
                "missing_package",
                f"{engine.title} needs the package {engine.package}, which is not installed.",
                f"Install it: pip install 'searchloop[{engine.name}]'.",
            )
        return None

    def admit(self, engine: Engine, *, by_name: bool) -> Admitted | Outcome:
        """Permission to ask the engine, or the attempt that says why not."""
        problem = self.unavailable(engine)
        admission = None if problem else self.circuits.admit(engine.name)
        if problem is None and admission is None and not by_name:
            problem = self._resting(engine)
        if problem is None:
            rate = self.settings.rates.get(engine.name, engine.rate)
            wait = self.buckets.reserve(engine.name, rate)
            if wait is not None:
                return Admitted(wait, admission == "probe")
            problem = Problem(
                "busy",
                f"{engine.title} allows {rate:g} requests a second, and more than "
                f"{LONGEST_WAIT:g} s of them are waiting.",
                "Ask fewer questions at once, or set SEARCH_RATES to what your plan allows.",
            )
        return Outcome(Attempt(engine.name, "skipped", 0, problem))

    def judge(
        self, engine: Engine, query: Query, ended: object, seconds: float, waited: float = 0.0
    ) -> Outcome:
        """What came of asking the engine: an answer, results, or an exception as `ended`."""
        status: AttemptStatus = "error"
        kept = Kept()
        problem: Problem | None = None
        try:
            kept = self._kept(engine, query, self._results(engine, ended))
        except EngineError as error:
            status = "blocked" if error.kind in ("blocked", "rate") else "error"
            problem = self._problem(error)
            self.circuits.failed(engine.name, error.kind, error.retry_after)
        except SearchBackendError as error:
            problem = self._problem(error)
        except Exception as error:
            # An engine with a fault must not take the other ones down with it.
            _log.error("engine %s failed", engine.name, exc_info=error)
            problem = Problem("internal", f"{engine.title} failed inside.", "Use another engine.")
            self.circuits.failed(engine.name, "parse")
        else:
            self.circuits.succeeded(engine.name)
            self.latencies.note(engine.name, seconds)
        if problem is None:
            status = "ok" if kept.results else "empty"
            if not kept.results and (kept.outside or kept.stale):
                problem = Problem(
                    "filtered",
                    f"All {kept.outside + kept.stale} results are outside the domains or the time "
                    "asked for.",
                    "Loosen these wishes.",
                )
        ms, waited_ms = round((seconds + waited) * 1000), round(waited * 1000)
        attempt = Attempt(engine.name, status, ms, problem, waited_ms)
        return Outcome(attempt, kept.results, kept.outside, kept.stale)

    def too_slow(self, engine: Engine, seconds: float) -> Outcome:
        """The engine was given up after `seconds`; the next searches leave it alone."""
        self.circuits.failed(engine.name, "network")
        problem = Problem(
            "timeout",
            f"{engine.title} had not answered after {seconds:.1f} s.",
            "Try again later, or use another engine.",
        )
        return Outcome(Attempt(engine.name, "error", round(seconds * 1000), problem))

    def overtaken(self, engine: Engine, seconds: float, *, late: bool = False) -> Outcome:
        """Another engine answered while this one was still at it; `late`: for longer than usual."""
        if late:
            self.circuits.failed(engine.name, "slow")
        problem = Problem(
            "overtaken", f"Another engine answered before {engine.title} did.", "Nothing to do."
        )
        return Outcome(Attempt(engine.name, "skipped", round(seconds * 1000), problem))

    def _results(self, engine: Engine, ended: object) -> list[SearchResult]:
        if isinstance(ended, OSError | BadAnswer):
            raise explain(ended, engine.title) from ended
        if isinstance(ended, Exception):
            raise ended
        if isinstance(ended, HttpResponse) and engine.wire is not None:
            return engine.wire.parse(ended, self.settings.keys)
        if not isinstance(ended, list):
            raise TypeError(f"{engine.name} gave {type(ended).__name__}")
        return ended

    def _kept(self, engine: Engine, query: Query, found: list[SearchResult]) -> Kept:
        kept = keep(found, query, engine.respects(query), allow=self._allow)
        if found and kept.unusable == len(found):
            raise EngineError(
                "parse",
                f"None of the {len(found)} addresses that {engine.title} gave can be opened.",
                "Use another engine.",
            )
        return kept

    def _resting(self, engine: Engine) -> Problem:
        seconds, reason = self.circuits.resting(engine.name) or (0.0, "")
        told = f"{engine.title} failed a moment ago ({reason}); it is being tried again just now."
        if seconds:
            told = (
                f"{engine.title} failed a moment ago ({reason}); "
                f"it is asked again in {ceil(seconds)} s."
            )
        return Problem("resting", told, "Wait, or name the engine to ask it now.")

    def _problem(self, error: SearchBackendError) -> Problem:
        """Engines quote what they were sent; a key must not travel on in their words."""
        words = [without_keys(text, self._secrets) for text in (error.message, error.remedy)]
        return Problem(error.code, *words)


def lacks(engine: Engine, missing: tuple[str, ...]) -> str:
    """The sentence that names the settings an engine lacks."""
    return f"The engine {engine.name} lacks {', '.join(missing)}."


def setting_up(engine: Engine, missing: tuple[str, ...]) -> str:
    """The sentence that says how to do so."""
    names = ", ".join(missing)
    return f"Set {names} (or run: searchloop setup --engine {engine.name}), or use another engine."
