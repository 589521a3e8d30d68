"""Runs: started, cancelled, recovered, on one asyncio loop.

A run answers one message of a session. It lives on the server's loop (or on a loop of its own when
the agent is used as a library) and writes to the log; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agent.approvals import Approve
from agent.backend import Backend
from agent.catalogue import Catalogue
from agent.closing import close_run
from agent.dates import dated_question, day_of
from agent.errors import AgentError, ConfigError, UnsureError
from agent.events import Event, question_text
from agent.first_engine import FirstEngine
from agent.gathering import gathered
from agent.keeper import Keeper
from agent.leases import Lease
from agent.limits import Limits
from agent.log import EventLog
from agent.models import ModelInfo
from agent.parcel import Pending
from agent.prices import PriceTable, load_prices, pricer
from agent.protection import Protection, reviewable
from agent.providers import Provider
from agent.question import (
    UNDONE,
    asked_data,
    changed,
    checked,
    gave_up,
    run_started,
    title_of,
    turn_data,
    turn_from,
)
from agent.resume import Past
from agent.run import HandedOver, Question, Run
from agent.search_options import search_options
from agent.search_path import OFF, SearchPath, choose_path, local_path
from agent.session import Session
from agent.settings import Settings
from agent.together import Together
from agent.tools import Tool, ToolSource
from agent.transcripts import Transcripts
from agent.transport import Transport
from agent.types import Message, NativeSearch

_log = logging.getLogger(__name__)
_TAKEOVERS = 3  # how often a run may outlive its process: more, and it is what kills them


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
        self._settings, self._log = settings, log
        self._together, self._backend = Together(log), backend
        self._tools, self._bring = tuple(tools), tuple(bring)
        self._protection = Protection(settings, log, self._bring)
        self.approvals = self._protection.approvals
        self._transport = transport or Transport(offline=settings.offline)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self._catalogue = Catalogue(settings.env, self._transport, providers)
        self._transcripts = Transcripts(log)
        self._engine = FirstEngine(backend)
        self._keeper = Keeper(log, self._stop, self._resume)
        self._prices: tuple[PriceTable, ...] | None = None

    def use(self, settings: Settings) -> None:
        """From now on these settings hold; a turn under way ends with those it began with."""
        self._settings, self._prices = settings, None
        self._engine = FirstEngine(self._backend)
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
        plan: Mapping[str, Any] | None = None,
    ) -> str:
        """Stores the question, starts answering it and returns the run's id at once.

        `model`, `mode` and `search` are kept for the session; `limits` and `options` (what a search
        is held to) are this turn's, by default those of the settings. `approve` says what becomes
        of a call that needs the user; `replaces` is the question beside which this one stands,
        `plan` the plan that it has carried out.
        Raises ConfigError for a question that cannot be sent and Conflict when the session is busy
        or gone; nothing is stored then.
        """
        text = checked(text)
        asked = {"model": model, "mode": mode, "search": search}
        changes = {name: value for name, value in asked.items() if value is not None}
        session = changed(self._log.session(session_id), changes)
        limits = limits or self._settings.limits
        held = options or search_options(self._settings.env, max_searches=limits.searches)
        run_id = secrets.token_hex(8)
        question = await self._question(run_id, session, limits, held, approve)
        lease = await self._keeper.claim(session_id, run_id, turn_data(limits, held, approve))
        try:
            before = self._transcripts.take(session_id, replaces)
            said = asked_data(text, session, replaces, plan)
            question = await self._stored(question, lease, changes, before, said)
        except BaseException as error:
            self._keeper.forget(lease)
            if not isinstance(error, UnsureError):  # else `recover` goes on with what is there
                await self._keeper.release(lease)
            raise
        question = replace(question, touches=tuple(plan["files"]) if plan else ())
        await self._begin(
            Run(question, lease, self._together, self._backend, before, self._protection)
        )
        return run_id

    async def _question(
        self, run_id: str, session: Session, limits: Limits, held: NativeSearch, approve: Approve
    ) -> Question:
        """What is asked of whom, and with which tools; the path is not chosen yet."""
        provider, name = self.provider(session.model)
        provider.check(name)
        price = pricer(f"{provider.name}:{name}", self._price_tables())
        tools = await gathered(self._tools, self._bring, session)
        start = (run_id, session, provider, name, OFF, limits, price, held)
        return Question(*start, tools, approve, self._protection.policy())

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
        events += question.gathered.notices
        stored = await log.aside(log.append, session.id, events, durable=True, fence=lease.fence)
        before.append(dated_question(question_text(asked), day_of(stored[0].at), before))
        return replace(question, path=path)

    async def _path(self, question: Question) -> SearchPath:
        """Which way this turn searches; a local one is named after the engine asked first."""
        session, provider = question.session, question.provider
        path = choose_path(
            session.search,
            provider.name,
            provider.capabilities(question.model),
            options=question.options,
            tools=question.gathered.beside_search(session.mode),
            offline=self._settings.offline,
        )
        return local_path(await self._engine.name(), path.notice) if path.local else path

    async def _begin(self, run: Run) -> None:
        session_id = run.question.session.id
        task = asyncio.create_task(self._answer(run), name=f"run {run.question.run_id}")
        self._tasks[session_id] = task
        self._runs[session_id] = run
        await asyncio.sleep(0)  # lets the run begin: a task cancelled before that would say nothing

    async def _answer(self, run: Run) -> None:
        session_id = run.question.session.id
        try:
            await run.answer()
            if run.clean:
                self._transcripts.keep(session_id, run.messages)
            await self._keeper.release(run.lease)
        except HandedOver:
            await self._keeper.hand_over(run.lease)
        except Exception as error:  # the log failed: `recover` goes on once it works again
            words = error.remedy if isinstance(error, AgentError) else "See the log."
            _log.error("searchloop: the end of an answer may not be saved: %s %s", error, words)
        finally:
            self._keeper.forget(run.lease)
            self._tasks.pop(session_id, None)
            self._runs.pop(session_id, None)

    async def cancel(self, session_id: str) -> bool:
        """Stops the session's run, wherever it is, and waits for that; False if there is none."""
        ours = await self._end(session_id)  # another may have taken it over unnoticed
        return await self._keeper.cancel(session_id) or ours

    async def _end(self, session_id: str) -> bool:
        """Stops a run of ours; False when there is none."""
        if found := session_id in self._tasks:
            self._stop(session_id)
            await self.wait(session_id)
        return found

    def _stop(self, session_id: str) -> None:
        if session_id in self._tasks:
            self._tasks[session_id].cancel()

    async def wait(self, session_id: str) -> None:
        """Until the session's run is over."""
        if task := self._tasks.get(session_id):
            await asyncio.wait([task])

    async def models(self) -> list[ModelInfo]:
        """What every provider offers, in the providers' order."""
        return await self._catalogue.models()

    async def recover(self) -> int:
        """Goes on with the runs whose process is gone, from now on too. Returns how many."""
        return await self._keeper.recover()

    async def _resume(self, lease: Lease) -> None:
        """Goes on with a run that we have taken over; one that cannot go on is closed."""
        log = self._log
        await self._end(lease.session)  # one of ours that was relieved and has not noticed
        try:
            events = await log.aside(log.read, lease.session)
            past = Past.of(events, lease.run_id)
            if past is None or past.finished or lease.takeovers > _TAKEOVERS:
                raise gave_up(lease.takeovers)
            resumed = {"run_id": lease.run_id, "takeovers": lease.takeovers}
            write = partial(log.append, durable=True, fence=lease.fence)
            await log.aside(write, lease.session, [("run_resumed", resumed)])
            await self._begin(await self._run_of(lease, past, events))
        except ConfigError as error:
            await asyncio.to_thread(close_run, log, lease, "incomplete", error)
            self._keeper.forget(lease)
        except AgentError as error:
            _log.warning("a run cannot go on yet: %s", error)
            self._keeper.forget(lease)

    async def _run_of(self, lease: Lease, past: Past, events: Sequence[Event]) -> Run:
        """The run as it was asked for, with what it came to."""
        limits, held, approve = turn_from(lease.turn)
        started = {name: past.started[name] for name in ("model", "mode", "search")}
        session = changed(self._log.session(lease.session), started)
        question = await self._question(lease.run_id, session, limits, held, approve)
        before, asked = past.before(events)
        path, _ = reviewable(await self._path(question), question.policy, before)
        question = replace(question, path=path)
        messages = [*before, asked]
        return Run(question, lease, self._together, self._backend, messages, self._protection, past)

    async def aclose(self, *, hand_over: bool = False) -> None:
        """Stops all runs: with `hand_over` others go on with them, else the log says they ended."""
        await self._keeper.aclose()
        for session_id in list(self._tasks):
            self._runs[session_id].leaving = hand_over
            await self._end(session_id)
        for source in self._bring:
            await source.aclose()
        await self._transport.aclose()

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
