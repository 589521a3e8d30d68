"""Asks the engines for one search, one after the other.

The next engine is asked when the one before has failed, has found nothing, or has not answered
within its patience; the first good answer ends the search. Engines still running then are
cancelled, so one that hangs delays a search only once.

Official sites that the router has chosen are asked, all together, when no engine of the web has
answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any, TypeVar

from searchloop.analysis.told import ended
from searchloop.search_backend.engines import Access, Apart, Engine, own_engines
from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.fetch.ip_addresses import parse_ranges
from searchloop.search_backend.plugin import HttpResponse, secrets_in, without_keys
from searchloop.search_backend.plugin.markup import rows_in
from searchloop.search_backend.search.limits import LONGEST_WAIT, CircuitBreakers, TokenBuckets
from searchloop.search_backend.search.merge import Checked, keep, listed
from searchloop.search_backend.search.router import Routed, keywords
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import (
    Attempt,
    AttemptStatus,
    EngineError,
    Problem,
    Query,
    SearchBackendError,
    SearchResult,
)

# Shares of the seconds of a search without an answer after which an engine is late: an API, and one
# that is `slow` or has a search of its own.
PATIENCE, PATIENCE_WITH_SLOW = 0.1, 0.3
PATIENCE_WITH_SITES = 0.3  # the same for official sites; whose turn is later is left out
MOST_WORDS = 800  # characters of what an engine says of its failure
MOST_STUCK = 8  # calls of an engine that were given up and have not ended
Ended = Checked | Exception  # how a call ends
T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one engine's part in a search: results that passed the rules, and the numbers of
    those outside the domains (`dropped`) and too old (`stale`)."""

    attempt: Attempt
    results: tuple[SearchResult, ...] = ()
    dropped: int = 0
    stale: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    """An engine at work: asked at `sent`, after `waited` seconds for its turn, late at `late`;
    `why` the router chose it."""

    engine: Engine
    sent: float
    waited: float
    late: float
    why: str = ""


class Schedule:
    """The engines of these settings and what is known of their health. Safe for several threads."""

    def __init__(
        self,
        settings: SearchSettings,
        engines: Mapping[str, Engine],
        clock: Callable[[], float],
        apart: Apart | None = None,
    ) -> None:
        """`clock` gives monotonic seconds for rates, rests and patience; `apart` reads markup."""
        self.engines, self.apart = engines, apart
        self.settings = settings
        self.clock = clock
        self.circuits = CircuitBreakers(clock)
        self.buckets = TokenBuckets(clock)
        self._allow = parse_ranges(settings.allow_ranges)
        every = (setting for engine in engines.values() for setting in engine.settings)
        self._secrets = secrets_in(settings.keys, every)
        self._stuck = defaultdict[str, list[Future[Any]]](list)

    def order(self) -> tuple[str, ...]:
        """Names of the engines of the chain."""
        return tuple(name for name in self.settings.engines if name in self.engines)

    def unavailable(self, engine: Engine) -> Problem | None:
        """Names the setting that keeps the engine from being asked; None if there is none."""
        if engine.remote and self.settings.offline:
            what = f"{engine.title} was not asked: SEARCHLOOP_OFFLINE is set."
            return Problem("offline", what, "Unset SEARCHLOOP_OFFLINE to search the web.")
        if engine.switched_off(self.settings.keys):
            what = f"{engine.title} was not asked: {engine.off_by} is set."
            return Problem("switched_off", what, f"Unset {engine.off_by} to use it.")
        if missing := engine.missing(self.settings.keys):
            return Problem("missing_key", *lacks(engine, missing))
        if engine.uninstalled():
            what = f"{engine.title} needs the package {engine.package}, which is not installed."
            remedy = f"Install it: pip install 'searchloop[{engine.name}]'."
            return Problem("missing_package", what, remedy)
        return None

    def rests(self, engine: Engine) -> bool:
        """True if the engine cannot be asked now."""
        return self.unavailable(engine) is not None or bool(self.circuits.resting(engine.name))

    def admit(
        self, engine: Engine, *, by_name: bool, most: float = LONGEST_WAIT
    ) -> float | Outcome:
        """Seconds until the engine may be asked, at `most`, or the attempt that says why not."""
        problem = self.unavailable(engine) or self._is_stuck(engine)
        if problem is None and not by_name:
            problem = self._resting(engine)
        if problem is None:
            rate = engine.rate
            wait = self.buckets.reserve(engine.name, rate, most)
            if wait is not None:
                return wait
            problem = Problem(
                "busy",
                f"{engine.title} allows {rate:g} requests a second, and more than "
                f"{most:g} s of them are waiting.",
                "Ask fewer questions at once.",
            )
        return Outcome(Attempt(engine.name, "skipped", 0, problem))

    def given_up(self, engine: Engine, call: Future[Any]) -> None:
        """Notes that nobody waits any more for what runs in a thread, which nothing can stop."""
        self._stuck[engine.name].append(call)

    def _is_stuck(self, engine: Engine) -> Problem | None:
        """Says so if too many calls that were given up have not ended."""
        self._stuck[engine.name] = [one for one in self._stuck[engine.name] if not one.done()]
        if (count := len(self._stuck[engine.name])) < MOST_STUCK:
            return None
        what = f"{engine.title} is still busy with {count} searches that were given up."
        remedy = "Restart this program; if it happens again, leave this engine out."
        return Problem("busy", what, remedy)

    def judge(self, engine: Engine, ended: Ended, seconds: float, waited: float = 0.0) -> Outcome:
        """Turns the end of a call into an attempt."""
        status: AttemptStatus = "error"
        kept, problem = Checked(), None
        if isinstance(ended, Checked):
            kept, status = ended, "ok" if ended.results else "empty"
            self.circuits.succeeded(engine.name)
            if not kept.results and (count := kept.outside + kept.stale):
                what = f"Every result ({count}) is outside the domains or the time asked for."
                problem = Problem("filtered", what, "Loosen these wishes.")
        elif isinstance(ended, SearchBackendError):
            problem = self._problem(engine, ended)
            if isinstance(ended, EngineError):
                status = "blocked" if ended.kind in ("blocked", "rate") else "error"
                self.circuits.failed(engine.name, ended.kind, ended.retry_after)
        else:  # an engine with a fault must not take the other ones down with it
            _log.error("engine %s failed", engine.name, exc_info=ended)
            problem = Problem("internal", f"{engine.title} failed inside.", "Use another engine.")
            self.circuits.failed(engine.name, "parse")
        attempt = Attempt(engine.name, status, round((seconds + waited) * 1000), problem)
        return Outcome(attempt, kept.results, kept.outside, kept.stale)

    def cancelled(self, engine: Engine, seconds: float, *, late: bool) -> Outcome:
        """The engine was given up after `seconds`: as a failure if it was `late`, else without
        blame because another engine has answered."""
        ms = max(round(seconds * 1000), 0)  # below 0 where its rate has not let it begin
        if not late:
            message = f"Another engine answered before {engine.title} did."
            problem = Problem("overtaken", message, "Nothing to do.")
            return Outcome(Attempt(engine.name, "skipped", ms, problem))
        self.circuits.failed(engine.name, "network")
        message = f"{engine.title} had not answered after {max(seconds, 0):.1f} s."
        problem = Problem("timeout", message, "Try again later, or use another engine.")
        return Outcome(Attempt(engine.name, "error", ms, problem))

    def checked(self, engine: Engine, query: Query, ended: object) -> Checked:
        """Returns the results in an HTTP answer, or those that an engine's own search returned, as
        far as they pass the rules. The engine's own code takes part: to be called in a thread.

        Raises EngineError, and whatever that code raises.
        """
        if isinstance(ended, HttpResponse) and engine.wire is not None:
            if engine.wire.markup and 200 <= ended.status < 300:
                read = self.apart.rows if self.apart else rows_in
                ended = replace(ended, rows=read(ended.body, engine.wire.markup))
            ended = engine.wire.parse(ended, self.settings.keys)
        found = listed(engine, ended)
        kept = keep(found, query, engine.respects(query), allow=self._allow)
        if found and kept.unusable == len(found):
            what = f"No address that {engine.title} gave can be opened."
            raise EngineError("parse", what, "Use another engine.")
        return kept

    def _resting(self, engine: Engine) -> Problem | None:
        if (rest := self.circuits.resting(engine.name)) is None:
            return None
        title, why, seconds = engine.title, rest[1], ceil(rest[0])
        message = f"{title} failed a moment ago ({why}); it is asked again in {seconds} s."
        return Problem("resting", message, "Wait, or name the engine to ask it now.")

    def _problem(self, engine: Engine, error: SearchBackendError) -> Problem:
        """Takes keys out of an engine's words: it may quote what it was sent."""
        said, remedy = error.message or f"{engine.title} failed.", error.remedy
        if error.code == "auth" and not any(setting.secret for setting in engine.settings):
            said = said.replace("does not accept the key", "refuses access")
            remedy = "Check the engine's address, or use another engine."
        words = (said[: 4 * MOST_WORDS], remedy[: 4 * MOST_WORDS])
        told = (ended(without_keys(text, self._secrets)[:MOST_WORDS]) for text in words)
        return Problem(error.code, *told)


class OneSearch:
    """Asks engines for `query`. With `by_name`, engines are asked even if they rest.

    `sites` are asked when nothing of the web has answered.
    """

    def __init__(
        self,
        schedule: Schedule,
        http: EngineHttp,
        access: Access,
        query: Query,
        *,
        by_name: bool = False,
        sites: Sequence[Routed] = (),
    ) -> None:
        self._schedule = schedule
        self._seconds = schedule.settings.seconds
        self._clock = schedule.clock
        self._http = http
        self._access = access
        self._query = query
        self._by_name = by_name
        self._sites = self._waiting = sites
        self._calls: dict[asyncio.Task[Ended], _Call] = {}
        self._outcomes: list[Outcome] = []

    async def run(self, chain: Sequence[Engine], seconds: float) -> list[Outcome]:
        """Asks until one engine has results and, after `seconds`, gives up those still at work.

        Returns one outcome for each engine that had a part in it, in the order of `chain`, then
        those that the router chose.
        """
        end = self._clock() + seconds
        try:
            for engine in chain:
                if not engine.remote:  # asked when none of the web is at work
                    await self._fall_back(end)
                    await self._wait(end)
                if self._has_results():
                    break
                if not engine.remote:  # the web did not answer in time; this machine may know
                    self._give_up()
                elif self._clock() >= end:
                    continue
                if task := self._start(engine):
                    late = self._calls[task].late
                    await self._wait(min(late, end) if self._clock() < end else inf, task)
            await self._fall_back(end)
            await self._wait(end)
            self._give_up()
        finally:
            for task in self._calls:
                task.cancel()
        chosen = (choice.engine for choice in self._sites)
        order = {engine.name: at for at, engine in enumerate((*chain, *chosen))}
        return sorted(self._outcomes, key=lambda o: order[o.attempt.engine])

    def _note(self, outcome: Outcome, why: str) -> None:
        """Adds an outcome; of an engine that the router chose, also why, and what it was asked."""
        if why:
            asked = self._asked(self._schedule.engines[outcome.attempt.engine]).text
            outcome = replace(outcome, attempt=replace(outcome.attempt, why=why, query=asked))
        self._outcomes.append(outcome)

    def _asked(self, engine: Engine) -> Query:
        return keywords(self._query, engine.kinds) if engine.kinds else self._query

    async def _fall_back(self, end: float) -> None:
        """Asks the sites that fit when no engine of the chain's web has answered, and waits until
        all of them have answered or are late."""
        sites, self._waiting = self._waiting, ()
        if not self._failed() or self._clock() >= end:
            return
        for choice in sites:
            self._start(choice.engine, choice.why, PATIENCE_WITH_SITES * self._seconds)
        while late := [call.late for call in self._calls.values() if call.why]:
            if (seconds := min(max(late), end) - self._clock()) <= 0:
                return
            await self._collect(seconds)

    def _failed(self) -> bool:
        """True unless an engine of the chain has answered, even if it has found nothing."""
        mine = [o.attempt for o in self._outcomes if not o.attempt.why]
        return all(attempt.status in ("error", "blocked", "skipped") for attempt in mine)

    def _start(
        self, engine: Engine, why: str = "", patience: float = inf
    ) -> asyncio.Task[Ended] | None:
        most = min(patience, LONGEST_WAIT)
        wait = self._schedule.admit(engine, by_name=self._by_name, most=most)
        if isinstance(wait, Outcome):
            self._note(wait, why)
            return None
        if not why:
            # Halved for each engine that is late, so that many cost like two.
            at_work = sum(not call.why for call in self._calls.values())
            slow = engine.slow or engine.wire is None
            patience = (PATIENCE_WITH_SLOW if slow else PATIENCE) * self._seconds / 2**at_work
        sent = self._clock() + wait
        task = asyncio.create_task(self._ask(engine, wait))
        self._calls[task] = _Call(engine, sent, wait, sent + patience, why)
        return task

    def _give_up(self) -> None:
        now, found = self._clock(), self._has_results()
        for task, call in self._calls.items():
            task.cancel()
            late = now >= call.late or not found
            ended = self._schedule.cancelled(call.engine, now - call.sent, late=late)
            self._note(ended, call.why)
        self._calls.clear()

    async def _ask(self, engine: Engine, wait: float) -> Ended:
        """Returns the checked results, or the exception: it is judged where all outcomes are."""
        try:
            if wait:
                await asyncio.sleep(wait)
            if (search := engine.search) is not None:
                return await self._checked(
                    engine, lambda: search(self._asked(engine), self._access)
                )
            if (wire := engine.wire) is None:
                raise TypeError(f"{engine.name} has neither search nor wire")
            keys = self._access.keys
            asked = await self._apart(engine, lambda: wire.request(self._asked(engine), keys))
            answer = await self._http.send(asked, engine.title)
            if (then := wire.then) is not None:
                first = answer
                second = await self._apart(engine, lambda: then(first, keys))
                answer = await self._http.send(second, engine.title) if second else first
            return await self._checked(engine, lambda: answer)
        except Exception as error:
            return error

    async def _checked(self, engine: Engine, search: Callable[[], object]) -> Checked:
        schedule = self._schedule
        return await self._apart(engine, lambda: schedule.checked(engine, self._query, search()))

    async def _apart(self, engine: Engine, work: Callable[[], T]) -> T:
        """Runs an engine's code, unless it is plain code of ours, in a thread: on the loop it could
        hold all other searches."""
        if engine.wire and not engine.wire.markup and own_engines().get(engine.name) is engine:
            return work()
        call = in_thread(work)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            self._schedule.given_up(engine, call)
            raise

    async def _wait(self, until: float, task: asyncio.Task[Ended] | None = None) -> None:
        """Waits until `task` or all of the chain have ended, one has results, or it is `until`."""
        while (task in self._calls if task else self._calls) and not self._has_results():
            if (seconds := until - self._clock()) <= 0:
                return
            await self._collect(seconds)

    async def _collect(self, seconds: float) -> None:
        """Waits at most so long for the next answers, and judges them."""
        timeout = None if seconds == inf else seconds
        ended, _ = await asyncio.wait(
            self._calls, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        for one in ended:
            call = self._calls.pop(one)
            spent = max(self._clock() - call.sent, 0.0)
            judged = self._schedule.judge(call.engine, one.result(), spent, call.waited)
            self._note(judged, call.why)

    def _has_results(self) -> bool:
        return any(o.results for o in self._outcomes)


def lacks(engine: Engine, missing: tuple[str, ...]) -> tuple[str, str]:
    """Returns the message and remedy for an engine that lacks the settings `missing`."""
    names = ", ".join(missing)
    how = f"Set {names} (or run: searchloop setup --engine {engine.name}), or use another engine."
    return f"The engine {engine.name} lacks {names}.", how
