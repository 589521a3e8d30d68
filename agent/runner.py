"""Runs: started, cancelled, recovered, on one asyncio loop.

A run answers one message of a session. It lives on the server's loop (or on a loop of its own when
the agent is used as a library) and writes to the log; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.approvals import Approve
from agent.backend import Backend
from agent.catalogue import Catalogue
from agent.dates import dated_question, day_of
from agent.errors import AgentError, Conflict, ToolError
from agent.events import messages_from, question_text
from agent.gathering import gathered
from agent.leases import BEAT, LEASE, Lease, gone, holder
from agent.limits import Limits
from agent.log import EventLog, Pending
from agent.prices import PriceTable, load_prices, pricer
from agent.protection import Protection, reviewable
from agent.providers import Provider
from agent.question import UNDONE, asked_data, changed, checked, run_started, title_of
from agent.run import Question, Run, interrupted
from agent.search_options import search_options
from agent.search_path import OFF, SearchPath, choose_path, local_path
from agent.settings import Settings
from agent.standard_tools import without_spare
from agent.tools import ALLOWED, Tool, ToolSource
from agent.transport import Transport
from agent.types import Message, ModelInfo, NativeSearch

_log = logging.getLogger(__name__)
_KEPT = 32  # transcripts kept in memory, so that a turn costs nothing for the turns before it
_ENGINE_SECONDS = 30.0


class Runner:
    """Starts and stops runs. Its coroutines belong to one loop; see `agent.library` for threads."""

    def __init__(
        self,
        settings: Settings,
        log: EventLog,
        backend: Backend,
        tools: Iterable[Tool] = (),
        transport: Transport | None = None,
        providers: Iterable[Provider] = (),
        bring: Iterable[ToolSource] = (),
    ) -> None:
        self._settings = settings
        self._log = log
        self._backend = backend
        self._tools = tuple(tools)
        self._bring = tuple(bring)
        self._protection = Protection(settings, log, self._bring)
        self.approvals = self._protection.approvals
        self._transport = transport or Transport(offline=settings.offline)
        self._owner = holder()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._catalogue = Catalogue(settings.env, self._transport, providers)
        self._kept: OrderedDict[str, tuple[int, list[Message]]] = OrderedDict()
        self._engine: tuple[float, str | None] = (0.0, None)
        self._beating: asyncio.Task[None] | None = None
        self._prices: tuple[PriceTable, ...] | None = None

    def use(self, settings: Settings) -> None:
        """From now on these settings hold; a turn under way ends with those it began with."""
        self._settings, self._engine, self._prices = settings, (0.0, None), None
        self._catalogue.renew()
        self._protection.use(settings)

    async def start(
        self,
        session_id: str,
        text: str,
        *,
        model: str | None = None,
        mode: str | None = None,
        search: str | None = None,
        limits: Limits | None = None,
        options: NativeSearch | None = None,
        approve: Approve = "ask",
        replaces: int | None = None,
    ) -> str:
        """Stores the question, starts answering it and returns the run's id at once.

        `model`, `mode` and `search` are kept for the session; `limits` and `options` (what a search
        is held to) are this turn's, by default those of the settings. `approve` says what becomes
        of a call that needs the user; `replaces` is the question beside which this one stands.
        Raises ConfigError for a question that cannot be sent and Conflict when the session is busy
        or gone; nothing is stored then.
        """
        text = checked(text)
        asked = {"model": model, "mode": mode, "search": search}
        changes = {name: value for name, value in asked.items() if value is not None}
        session = changed(self._log.session(session_id), changes)
        provider, name = self.provider(session.model)
        provider.check(name)
        price = pricer(f"{provider.name}:{name}", self._price_tables())
        limits = limits or self._settings.limits
        held = options or search_options(self._settings.env, max_searches=limits.searches)
        run_id = secrets.token_hex(8)
        tools = await gathered(self._tools, self._bring, session)
        question = Question(
            *(run_id, session, provider, name, OFF, limits, price, held),
            *(tools, approve, self._protection.policy()),
        )
        lease = await self._claim(session_id, run_id)
        try:
            before = self._transcript(session_id, replaces)
            said = asked_data(text, session, replaces)
            question = await self._stored(question, lease, changes, before, said)
        except BaseException:
            self._log.leases.release(lease)
            raise
        before.append(dated_question(question_text(said), day_of(time.time()), before))
        run = Run(question, lease, self._log, self._backend, before, self._protection)
        task = asyncio.create_task(self._answer(run), name=f"run {run_id}")
        self._tasks[session_id] = task
        await asyncio.sleep(0)  # lets the run begin: a task cancelled before that would say nothing
        return run_id

    async def _stored(
        self,
        question: Question,
        lease: Lease,
        changes: dict[str, str],
        before: list[Message],
        asked: Mapping[str, Any],
    ) -> Question:
        """The question with its search path, once it and the start of its run are in the log."""
        session = question.session
        path, notice = reviewable(await self._path(question), question.policy, before)
        changes["title"] = session.title or title_of(asked["text"])
        log, taken = self._log, path.name
        await log.aside(
            log.update_session, session.id, {UNDONE: None}, search_path=taken, **changes
        )
        started = run_started(question.run_id, session, path)
        events: list[Pending] = [("user_message", asked), ("run_started", started)]
        events += [("notice", notice)] if notice else []
        await log.aside(log.append, session.id, events, durable=True, fence=lease.fence)
        return replace(question, path=path)

    async def _path(self, question: Question) -> SearchPath:
        """Which way this turn searches; a local one is named after the engine asked first."""
        session, provider = question.session, question.provider
        tools = without_spare(question.tools)
        path = choose_path(
            session.search,
            provider.name,
            provider.capabilities(question.model),
            options=question.options,
            tools=any(t.spec.effect in ALLOWED[session.mode] for t in tools),
            offline=self._settings.offline,
        )
        return local_path(await self._first_engine()) if path.local else path

    async def _answer(self, run: Run) -> None:
        session_id = run.question.session.id
        try:
            await run.answer()
            if run.clean:
                self._keep(session_id, run.messages)
            await self._log.aside(self._log.leases.release, run.lease)
        except Exception as error:  # the log failed: `recover` writes the end once it works again
            words = error.remedy if isinstance(error, AgentError) else "See the log."
            _log.error("searchloop: the end of an answer was not saved: %s %s", error, words)
        finally:
            self._tasks.pop(session_id, None)

    async def cancel(self, session_id: str) -> bool:
        """Stops the session's run and waits until it has said so; False when there is none."""
        task = self._tasks.get(session_id)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def wait(self, session_id: str) -> None:
        """Until the session's run is over."""
        task = self._tasks.get(session_id)
        if task:
            await asyncio.wait([task])

    async def models(self) -> list[ModelInfo]:
        """What every provider offers, in the providers' order."""
        return await self._catalogue.models()

    async def recover(self) -> int:
        """Closes the runs whose process is gone; what they said is kept. Returns how many."""
        self._keep_beating()
        leases, done = self._log.leases, 0
        for lost in await self._log.aside(leases.held):
            ours = lost.owner == self._owner
            if lost.session in self._tasks if ours else lost.silent < LEASE and not gone(lost):
                continue
            lease = await self._log.aside(leases.take_over, lost, self._owner)
            if lease:
                await asyncio.to_thread(self._close, lease)
                done += 1
        return done

    def _close(self, lease: Lease) -> None:
        """Says that the run ended with its process, as its holder."""
        path = self._log.session(lease.session).search_path
        ending = interrupted(lease.run_id, path, self._log.read(lease.session))
        if ending:
            self._log.append(lease.session, ending, durable=True, fence=lease.fence)
        self._log.leases.release(lease)

    async def aclose(self) -> None:
        """Stops every run, says so in the log, and closes the connections."""
        if self._beating:
            self._beating.cancel()
            await asyncio.wait([self._beating])
        for session_id in list(self._tasks):
            await self.cancel(session_id)
        for source in self._bring:
            await source.aclose()
        await self._transport.aclose()

    async def _claim(self, session_id: str, run_id: str) -> Lease:
        self._keep_beating()
        claim = self._log.leases.claim
        try:
            return await self._log.aside(claim, session_id, run_id, self._owner)
        except Conflict as conflict:
            if conflict.code != "busy" or not await self.recover():
                raise
            return await self._log.aside(claim, session_id, run_id, self._owner)

    def _price_tables(self) -> tuple[PriceTable, ...]:
        if self._prices is None:
            self._prices = load_prices(self._settings.home)
        return self._prices

    def window(self, model: str) -> int | None:
        """How many tokens a model takes, where its provider knows. Raises ConfigError."""
        provider, name = self.provider(model)
        return provider.capabilities(name).context

    def provider(self, model: str) -> tuple[Provider, str]:
        """The provider behind `provider:model`, and the model's own name."""
        return self._catalogue.provider(model)

    def _transcript(self, session_id: str, before: int | None) -> list[Message]:
        seq, messages = self._kept.pop(session_id, (-1, []))
        if before is None and seq == self._log.last_seq(session_id):
            return messages
        return messages_from(self._log.read(session_id), before=before)

    def _keep(self, session_id: str, messages: list[Message]) -> None:
        self._kept[session_id] = (self._log.last_seq(session_id) or 0, messages)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    async def _first_engine(self) -> str | None:
        """The local engine that would be asked first, as the backend tells it; None if unknown."""
        asked, engine = self._engine
        if asked and time.monotonic() - asked < _ENGINE_SECONDS:
            return engine
        with contextlib.suppress(ToolError, LookupError, TypeError):  # not ours, or newer
            answer = await self._backend.ask("/api/engines")
            usable = [e for e in answer["engines"] if e["available"] and e["position"]]
            first = min(usable, key=lambda e: e["position"], default={"name": None})
            self._engine = (time.monotonic(), first["name"])
        return self._engine[1]

    def _keep_beating(self) -> None:
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        """Tells other processes that our runs are alive, and closes those of dead ones."""
        while True:
            await asyncio.sleep(BEAT)
            try:
                if self._tasks:
                    await self._log.aside(self._log.leases.beat, self._owner)
                await self.recover()
            except AgentError as error:
                _log.warning("the session store does not answer: %s", error)
