"""One search over several engines: one after the other, with a reserve, or together.

As a chain, the next engine is asked when the one before has failed, found nothing, or takes longer
than 95 of 100 of its healthy answers did; such extra requests are at most one in twenty. Together
(fan-out), the first few engines are asked at once, and once one has results the others are waited
for only as long as they usually need. An engine that has just rested is asked beside the others
and never waited for: it ends in the background, and the next search knows whether it is back.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from search_backend.engines import Access, Engine
from search_backend.lineup import Admitted, Lineup, Outcome
from search_backend.race import Race
from search_backend.types import Query

# Seconds without an answer after which an engine is called slow, while others could be asked: for
# engines that we know by their protocol, and for packages that ask several sites by themselves.
PATIENCE, PATIENCE_WITH_PACKAGES = 1.0, 3.0
LEAST_PATIENCE = 0.25
PROBE_HEAD_START = 0.3
PROBE_SECONDS = 8.0


@dataclass(slots=True)
class _Asked:
    engine: Engine
    admitted: Admitted
    began: float
    sent: float
    hedged: bool = False
    overdue: bool = False


class Relay:
    """The search for `query`. `race` is where calls run; it is closed by the relay."""

    def __init__(
        self, lineup: Lineup, race: Race, access: Access, query: Query, *, by_name: bool
    ) -> None:
        self._lineup = lineup
        self._race = race
        self._access = access
        self._query = query
        self._by_name = by_name
        self._asked: dict[str, _Asked] = {}
        self._queued: list[_Asked] = []
        self._outcomes: list[Outcome] = []
        self._late = 0

    def run(self, chain: Sequence[Engine], width: int, seconds: float) -> list[Outcome]:
        """How each engine that had a part in it ended, within `seconds`."""
        deadline = time.monotonic() + seconds
        waiting = deque(chain)
        self._lineup.hedges.earn()
        handed_on = False
        try:
            self._fill(waiting, width)
            while self._asked:
                if self._enough(width):
                    break
                now = time.monotonic()
                if now >= deadline:
                    self._give_up(now)
                    self._ask_here(waiting)
                    break
                self._send_due(now)
                next_moment = min(deadline, self._next_moment(waiting, width, now))
                for finish in self._race.wait(max(next_moment - time.monotonic(), 0.0)):
                    self._end(finish.name, finish.outcome)
                if not self._enough(width):
                    self._reinforce(waiting, width)
            told, self._outcomes = self._leave(), []
            if self._asked:
                threading.Thread(target=self._finish_probes, name="probe", daemon=True).start()
                handed_on = True
        finally:
            if not handed_on:
                self._race.close()
        order = {engine.name: at for at, engine in enumerate(chain)}
        return sorted(told, key=lambda outcome: order[outcome.attempt.engine])

    def _fill(self, waiting: deque[Engine], width: int) -> None:
        """Ask engines until `width` are at work. Local ones only when nobody else is left."""
        while waiting and len(self._asked) < width:
            if not waiting[0].remote and (self._asked or self._has_results()):
                return
            self._begin(waiting.popleft())
            if self._has_results() and width == 1:
                return

    def _begin(self, engine: Engine) -> bool:
        """Whether the engine was asked and its answer is still to come."""
        admitted = self._lineup.admit(engine, by_name=self._by_name)
        if isinstance(admitted, Outcome):
            self._outcomes.append(admitted)
            return False
        now = time.monotonic()
        asked = _Asked(engine, admitted, now, now + admitted.wait)
        if not engine.remote and engine.search is not None:
            self._local(asked)
            return False
        self._asked[engine.name] = asked
        if admitted.wait > 0:
            self._queued.append(asked)
        else:
            self._send(asked)
        return True

    def _local(self, asked: _Asked) -> None:
        """An engine on this machine answers at once, so it needs no thread."""
        ended: object
        try:
            assert asked.engine.search is not None
            ended = asked.engine.search(self._query, self._access)
        except Exception as error:  # judged like that of any engine
            ended = error
        spent = time.monotonic() - asked.began
        self._outcomes.append(self._lineup.judge(asked.engine, self._query, ended, spent))

    def _send(self, asked: _Asked) -> None:
        engine, query, access = asked.engine, self._query, self._access
        if engine.search is not None:
            search = engine.search
            self._race.run(engine.name, lambda: search(query, access))
            return
        try:
            if engine.wire is None:
                raise TypeError(f"{engine.name} has neither search nor wire")
            request = engine.wire.request(query, access.keys)
        except Exception as error:
            self._end(engine.name, error)
            return
        self._race.send(engine.name, request)

    def _send_due(self, now: float) -> None:
        for asked in [asked for asked in self._queued if asked.sent <= now]:
            self._queued.remove(asked)
            self._send(asked)

    def _end(self, name: str, ended: object) -> None:
        asked = self._asked.pop(name, None)
        if asked is None:
            return
        spent = time.monotonic() - asked.sent
        self._outcomes.append(
            self._lineup.judge(asked.engine, self._query, ended, spent, asked.sent - asked.began)
        )

    def _reinforce(self, waiting: deque[Engine], width: int) -> None:
        """Ask the next engine when nobody is left, or when the one at work is late."""
        if not self._asked:
            if not self._has_results():
                self._fill(waiting, 1)
            return
        now = time.monotonic()
        if width > 1:
            for asked in list(self._asked.values()):
                if self._has_results() and now >= asked.sent + self._patience(asked):
                    self._drop_slow(asked, now)
            return
        for asked in list(self._asked.values()):
            if asked.hedged or not (waiting and waiting[0].remote):
                continue
            spent = now - asked.sent
            asked.overdue = spent >= self._patience(asked)
            if asked.overdue or (spent >= self._head_start(asked) and self._may_hedge(asked)):
                asked.hedged = True
                self._late += 1
                self._begin_remote(waiting)
        # When the reserve of a late one failed, the next one takes its place.
        if not self._has_results() and all(asked.hedged for asked in self._asked.values()):
            self._begin_remote(waiting)

    def _begin_remote(self, waiting: deque[Engine]) -> None:
        """Ask the next engine of the web that may be asked."""
        while waiting and waiting[0].remote:
            if self._begin(waiting.popleft()):
                return

    def _may_hedge(self, asked: _Asked) -> bool:
        # Two late ones in a row are no accident any more: then the reserve costs what it costs.
        return asked.admitted.probe or self._late > 0 or self._lineup.hedges.spend()

    def _next_moment(self, waiting: deque[Engine], width: int, now: float) -> float:
        """When something is to be done though no answer has come."""
        moments = [asked.sent for asked in self._queued]
        for asked in self._asked.values():
            if width > 1 and self._has_results():
                if not asked.admitted.probe:
                    moments.append(asked.sent + self._patience(asked))
            elif width == 1 and not asked.hedged and waiting and waiting[0].remote:
                start = asked.sent + self._head_start(asked)
                # Past it without permission: the next chance is when patience ends.
                late = asked.sent + self._patience(asked)
                moments.append(start if start > now else late)
        return min(moments, default=float("inf"))

    def _head_start(self, asked: _Asked) -> float:
        known = self._lineup.latencies.p95(asked.engine.name)
        if asked.admitted.probe:
            return min(known or PROBE_HEAD_START, PROBE_HEAD_START)
        return self._patience(asked) if known is None else float(known / 2**self._late)

    def _patience(self, asked: _Asked) -> float:
        """Halved for each engine that was late in this search, so that many cost like two."""
        most = PATIENCE if asked.engine.wire else PATIENCE_WITH_PACKAGES
        known = self._lineup.latencies.p95(asked.engine.name)
        if known is None and asked.engine.wire:
            known = self._lineup.latencies.usual()  # one like the others, as far as we know
        usual = most if known is None else min(max(3 * known, LEAST_PATIENCE), most)
        return float(usual / 2**self._late)

    def _enough(self, width: int) -> bool:
        if not self._has_results():
            return False
        return width == 1 or all(asked.admitted.probe for asked in self._asked.values())

    def _has_results(self) -> bool:
        return any(outcome.results for outcome in self._outcomes)

    def _drop_slow(self, asked: _Asked, now: float) -> None:
        if asked.admitted.probe:
            return
        del self._asked[asked.engine.name]
        self._race.drop(asked.engine.name)
        self._outcomes.append(self._lineup.too_slow(asked.engine, now - asked.sent))

    def _give_up(self, now: float) -> None:
        for asked in self._asked.values():
            self._race.drop(asked.engine.name)
            self._outcomes.append(self._lineup.too_slow(asked.engine, max(now - asked.sent, 0)))
        self._asked.clear()

    def _ask_here(self, waiting: deque[Engine]) -> None:
        """The web did not answer in time; what this machine knows takes none."""
        for engine in waiting:
            if not engine.remote and not self._has_results():
                self._begin(engine)

    def _leave(self) -> list[Outcome]:
        """What there is. Calls at work are hung up, but for probes: they end in the background."""
        now = time.monotonic()
        for asked in list(self._asked.values()):
            if asked.admitted.probe and asked not in self._queued:
                self._outcomes.append(self._lineup.overtaken(asked.engine, now - asked.sent))
                continue
            spent = max(now - asked.sent, 0.0)
            if asked.overdue or spent >= self._patience(asked):
                self._outcomes.append(self._lineup.too_slow(asked.engine, spent))
            else:
                told = self._lineup.overtaken(asked.engine, spent, late=asked.hedged)
                self._outcomes.append(told)
            self._race.drop(asked.engine.name)
            del self._asked[asked.engine.name]
        return self._outcomes

    def _finish_probes(self) -> None:
        """Goes on alone after the answer was given; what comes is for the circuits only."""
        until = time.monotonic() + PROBE_SECONDS
        with self._race:
            while self._asked and (left := until - time.monotonic()) > 0:
                for finish in self._race.wait(left):
                    self._end(finish.name, finish.outcome)
            for asked in self._asked.values():
                self._lineup.too_slow(asked.engine, PROBE_SECONDS)
