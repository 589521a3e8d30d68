"""Starts, cancels and recovers runs on one asyncio loop; readers follow the log."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, Unpack, cast

from searchloop.agent.calls.caller import NOBODY
from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import AgentError, ConfigError, UnsureError, busy
from searchloop.agent.guard.guard import GuardFactory, holds_private
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.events import Event, question_message
from searchloop.agent.log.leases import Lease
from searchloop.agent.log.session import Session
from searchloop.agent.providers import Provider, ProviderRegistry, abilities_of, check_options
from searchloop.agent.run.check_sources import Checks, ModelReader, reader_of
from searchloop.agent.run.prices import load_prices, pricer
from searchloop.agent.run.prompts import lent_files, with_folders, with_standing
from searchloop.agent.run.question import (
    NONE,
    UNDONE,
    Asked,
    TurnOptions,
    asked_data,
    changed,
    checked,
    gathered,
    gave_up,
    run_started,
    title_of,
)
from searchloop.agent.run.question.afterwards import Afterwards
from searchloop.agent.run.question.files import AttachedTo, attach, check_takes
from searchloop.agent.run.recorder import BatchWriter, Recorder
from searchloop.agent.run.resume import Past
from searchloop.agent.run.run import HandedOver, Means, Question, Run, TranscriptCache
from searchloop.agent.run.summary import Summariser
from searchloop.agent.run.takeover import LeaseRenewal, close_run
from searchloop.agent.search.switch import (
    OFF,
    OFFLINE,
    Facts,
    SearchPath,
    choose_path,
    local_path,
    search_options,
)
from searchloop.agent.settings import Settings
from searchloop.agent.settings.usual_model import UsualModel
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import Backend, first_engine
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ANYWHERE, Message, Price
from searchloop.agent.types.attachments import Attachment

T = TypeVar("T")
_log = logging.getLogger(__name__)
_TAKEOVERS = 3  # how often a run may outlive its process: more, and it is what kills them
_REJECTED_S = 3600.0  # a model that rejects its provider's own search is asked again later


class Runner:
    """Starts and stops runs. Its coroutines belong to one loop; `agent.bare_agent` has threads."""

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
        self._settings, self._log, self._backend = settings, log, backend
        self._tools, self._bring = tuple(tools), tuple(bring)
        self._guards = GuardFactory(settings, log, self._bring)
        self._means = Means(BatchWriter(log), backend, self._guards, set())
        self.approvals = self._guards.approvals
        self._transport = transport or Transport(offline=settings.offline)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self.registry = ProviderRegistry(settings.env, self._transport, providers)
        self.usual = UsualModel(settings, self.registry.check, self.registry.own_models)
        self._transcripts = TranscriptCache(log)
        self._leases = LeaseRenewal(log, self._stop, self._resume)
        self._prices: dict[str, Price] = {}  # by model
        self._starting: dict[str, Start] = {}  # sessions whose run has no task yet
        self._leaving = False  # another process is to go on with what is under way
        self.afterwards = Afterwards(log, settings)
        self.checks = Checks(log, backend, self._guards)
        self._rejecting: dict[str, float] = {}  # models that reject their provider's search: until

    def use(self, settings: Settings) -> None:
        """Applies new settings; a turn under way ends with those that it began with."""
        self._settings, self.usual.settings, self._prices = settings, settings, {}
        self.afterwards.settings = settings
        self._rejecting.clear()
        self.registry.renew()
        self._guards.use(settings)

    async def start(self, session_id: str, text: str, **asked: Unpack[Asked]) -> str:
        """Stores the question, starts answering it and returns the run's id at once.

        Raises ConfigError and Conflict, with nothing stored.
        """
        text, session = checked(text), self._log.session(session_id)
        given = {name: cast(Any, asked).get(name) for name in ("model", "mode", "search")}
        changes = {k: v for k, v in given.items() if v not in (None, getattr(session, k))}
        offline = {"search": "offline"} if asked.get("folders") else {}
        session = changed(session, changes | offline)
        changes = {} if asked.get("aside") else changes
        turn, run_id = await self._turn(session, asked), secrets.token_hex(8)
        with self._being_started(session_id):
            lease = await self._leases.claim(session_id, run_id, turn.as_data())
            await self._let_go(session_id)
            try:
                question = await self._question(run_id, session, turn)
                before, table = self._transcripts.take(session_id, asked.get("replaces"))
                question, data = await self._with_files(question, text, asked, before)
                question = await self._stored(question, lease, changes, before, data)
            except BaseException as error:
                self._leases.forget(lease)
                if not isinstance(error, UnsureError):  # else `recover` goes on with what is there
                    await asyncio.to_thread(close_run, self._log, lease, "cancelled")
                raise
            caller = asked.get("caller", NOBODY)
            run = Run(question, lease, self._means, before, caller=caller, table=table)
            await self._begin(run)
        return run_id

    async def _turn(self, session: Session, asked: Asked) -> TurnOptions:
        """Returns the options of a turn. Raises ConfigError that names what is wrong."""
        limits = asked.get("limits") or self._settings.limits
        searching = asked.get("search_options")
        if searching is None and session.search != "off":
            searching = search_options(self._settings.env, max_searches=limits.searches)
        which = searching or ANYWHERE, asked.get("folders", ())
        options = await self._log.aside(with_folders, self._log, session, *which)
        own = Instructions.of(asked.get("system"), asked.get("options"), asked.get("schema"))
        return TurnOptions(limits, options, asked.get("approve", "ask"), own)

    async def _with_files(
        self, question: Question, text: str, asked: Asked, before: Sequence[Message]
    ) -> tuple[Question, dict[str, Any]]:
        """Stores the files of a question; returns it with notices, and its `user_message`."""
        session, files, replaces = question.session, asked.get("files", ()), asked.get("replaces")
        lent = await self._log.aside(lent_files, self._log, session)
        attached = list[Attachment]()
        if files or replaces or lent:
            takes = partial(check_takes, question.provider, question.model)
            held = AttachedTo(self._log, session.id, lent)
            attached, left = await attach(files, replaces, before, takes, self._backend, held)
            question = question._replace(gathered=question.gathered.telling(left))
        return question, asked_data(text, session, asked, attached)

    @contextmanager
    def _being_started(self, session_id: str) -> Iterator[None]:
        """Marks a session whose run has no task yet; afterwards cancels the task if it was stopped.

        Raises Conflict when it is marked already.
        """
        if session_id in self._starting:
            raise busy()
        start = self._starting[session_id] = Start(self._tasks.get(session_id))
        try:
            yield
        finally:
            del self._starting[session_id]
            start.over.set_result(None)
            if start.stopped.done():
                self._stop(session_id)

    async def _question(self, run_id: str, session: Session, turn: TurnOptions) -> Question:
        """Finds the model and the tools of a question; chooses no search path yet."""
        provider, name = self.provider(session.model)
        provider.check(name)
        check_options(provider, turn.instructions, name)
        log, own, chat = self._log, turn.instructions, session.settings
        own = await log.aside(with_standing, own, (provider, name), chat, log, self._settings.home)
        turn = turn._replace(instructions=own)
        price = self.price_of(f"{provider.name}:{name}")
        gathering = gathered(self._tools, self._bring, session)
        tools = await self._starting[session.id].unless_stopped(gathering, NONE)
        policy = self._guards.policy()
        return Question(run_id, session, provider, name, OFF, turn, price, tools, policy)

    async def _stored(
        self,
        question: Question,
        lease: Lease,
        changes: dict[str, str],
        before: list[Message],
        asked: Mapping[str, Any],
    ) -> Question:
        """Stores the question and the start of its run; returns it with its search path."""
        session = question.session
        private = bool(asked.get("attachments")) or holds_private(before)
        path = await self._path(question, private=private)
        title = session.title or title_of(asked["text"])
        kept = self.afterwards.first(session, question.provider) if self.afterwards.on else {}
        now = {"title": title, "search_path": path.name}
        changes |= {name: value for name, value in now.items() if getattr(session, name) != value}
        log, kept = self._log, {UNDONE: None, **kept}
        if changes or any(session.settings.get(name) != kept[name] for name in kept):
            await log.aside(log.update_session, session.id, kept, **changes)
        local = abilities_of(question.provider).local(question.model)
        started = run_started(question.run_id, session, path, local, question.turn)
        events: list[Pending] = [("user_message", asked), ("run_started", started)]
        events += [("notice", path.notice)] if path.notice else []
        events += question.gathered.notices
        first = Recorder(self._means.batches, session.id, path.name, lease.fence)
        try:
            await first.finish(events)
        finally:
            await first.drop()
        before.append(question_message(asked, first.at, before))
        return question._replace(path=path)

    async def _path(
        self, question: Question, *, private: bool, rejected: bool = False
    ) -> SearchPath:
        """Asks the switch; names a local path after the first engine."""
        session, provider = question.session, question.provider
        facts = Facts(
            session.search,
            provider.name,
            provider.capabilities(question.model),
            tools=question.gathered.beside_search(session.mode),
            offline=self._settings.offline,
            rejected=rejected or time.monotonic() < self._rejecting.get(session.model, 0),
            review=question.policy.review(private=private),
        )
        path = choose_path(facts, question.turn.search_options)
        if not path.local or path is OFFLINE:
            return path
        engine = await self._starting[session.id].unless_stopped(first_engine(self._backend), None)
        return local_path(engine, path.notice)

    async def check(
        self,
        session_id: str,
        turn: int | None = None,
        model: str | None = None,
        *,
        pressed: bool = True,
    ) -> dict[str, Any] | None:
        """Begins to check the sources of an answer; see `Checks.start`."""
        session, env = self._log.session(session_id), self._settings.env
        reader = self.reader(model or env.get("SEARCHLOOP_CHECK_WITH") or "words", session.model)
        options = search_options(env, max_searches=None)
        return await self.checks.start(session, turn, reader, options, pressed=pressed)

    def price_of(self, model: str) -> Price:
        """Returns what `provider:model` costs, as the tables said when it was first asked."""
        if model not in self._prices:
            self._prices[model] = pricer(model, load_prices(self._settings.home))
        return self._prices[model]

    def reader(self, model: str, chats: str) -> ModelReader | None:
        """Returns who checks: a model, `chats` for `chat`, None for `words`. Raises ConfigError."""
        model = chats if model == "chat" else model
        if not model or model == "words":
            return None
        provider, name = self.provider(model)
        return reader_of(model, provider, name, self.price_of(model))

    async def compact(self, session_id: str) -> None:
        """Starts to summarise all turns but the last two. Raises ConfigError and Conflict."""
        session = self._log.session(session_id)
        provider, name = self.provider(session.model)
        provider.check(name)
        price = self.price_of(session.model)
        writer = Summariser(provider, name, self._log, session_id, price)
        with self._being_started(session_id):
            lease = await self._leases.claim(session_id, secrets.token_hex(8), {})
            self._tasks[session_id] = asyncio.create_task(self._compact(writer, lease))
            await asyncio.sleep(0)  # as in `_begin`

    async def _compact(self, writer: Summariser, lease: Lease) -> None:
        try:
            await writer.by_hand(lease.fence)
        except AgentError as error:
            _log.warning("searchloop: the summary is not saved: %s", error)
        finally:
            self._tasks.pop(lease.session, None)
            await self._leases.release(lease)

    async def _begin(self, run: Run) -> None:
        session_id = run.question.session.id
        task = asyncio.create_task(self._answer(run), name=f"run {run.question.run_id}")
        self._tasks[session_id] = task
        self._runs[session_id] = run
        run.leaving = self._leaving
        await asyncio.sleep(0)  # a task cancelled before it begins would write no `run_finished`

    async def _answer(self, run: Run) -> None:
        session_id = run.question.session.id
        try:
            await run.answer()
            if run.rejected:
                self._rejecting[run.question.session.model] = time.monotonic() + _REJECTED_S
            if run.clean:
                self._transcripts.keep(run)
                self.usual.remember(run.question.session.model)
            if run.clean and self.afterwards.on:
                self.afterwards.begin(run)
                if self._settings.env.get("SEARCHLOOP_CHECK") == "always":
                    await self.check(session_id, pressed=False)
        except HandedOver:
            await self._log.aside(self._log.leases.hand_over, run.lease)
        except Exception as error:  # the log failed: `recover` resumes the run once it works
            words = error.remedy if isinstance(error, AgentError) else "See the log."
            _log.error("searchloop: the end of an answer may not be saved: %s %s", error, words)
        finally:
            self._leases.forget(run.lease)
            self._tasks.pop(session_id, None)
            self._runs.pop(session_id, None)

    async def cancel(self, session_id: str) -> bool:
        """Stops the session's run in any process and waits for its end; False if there is none."""
        start = self._starting.get(session_id)
        if start:
            self._stop(session_id)
            await asyncio.wait([start.over])
        ours = await self._end(session_id)  # another may have taken it over unnoticed
        return await self._leases.cancel(session_id) or ours or start is not None

    async def _end(self, session_id: str) -> bool:
        """Stops a run of ours; False when there is none."""
        if found := session_id in self._tasks:
            self._stop(session_id)
            await self.wait(session_id)
        return found

    def _stop(self, session_id: str) -> None:
        task, start = self._tasks.get(session_id), self._starting.get(session_id)
        run = self._runs.get(session_id)
        if start:
            start.stop()
            task = start.earlier  # a task that has not begun is stopped when it has
        if task and not task.cancelling() and not (run and run.over):  # it stores its end
            task.cancel()

    async def _let_go(self, session_id: str) -> None:
        """Waits for the task of a run that is over, or stops one whose run another process has."""
        run, task = self._runs.get(session_id), self._tasks.get(session_id)
        if task and not (run and run.over):
            task.cancel()
        await self.wait(session_id)

    async def wait(self, session_id: str) -> None:
        """Waits for the end of the session's run."""
        if task := self._tasks.get(session_id):
            await asyncio.wait([task])

    async def recover(self) -> int:
        """Resumes runs whose process is gone, now and from now on. Returns their number now."""
        return await self._leases.recover()

    async def _resume(self, lease: Lease) -> None:
        """Resumes a run that we have taken over, or closes it if that is impossible."""
        log = self._log
        await self._end(lease.session)  # our own task may not know yet that it lost its lease
        try:
            events = await log.aside(log.read, lease.session)
            past = Past.of(events, lease.run_id)
            if past is None or past.finished or lease.takeovers > _TAKEOVERS:
                raise gave_up(lease.takeovers)
            resumed = {"run_id": lease.run_id, "takeovers": lease.takeovers}
            write = partial(log.append, durable=True, fence=lease.fence)
            with self._being_started(lease.session):
                await log.aside(write, lease.session, [("run_resumed", resumed)])
                await self._begin(await self._run_of(lease, past, events))
        except ConfigError as error:
            await asyncio.to_thread(close_run, log, lease, "incomplete", error)
            self._leases.forget(lease)
        except AgentError as error:
            _log.warning("a run cannot go on yet: %s", error)
            self._leases.forget(lease)

    async def _run_of(self, lease: Lease, past: Past, events: Sequence[Event]) -> Run:
        """Builds the run from its lease and its events."""
        started = {name: past.started[name] for name in ("model", "mode", "search")}
        session = changed(self._log.session(lease.session), started)
        question = await self._question(lease.run_id, session, TurnOptions.of(lease.turn))
        before, asked = past.before(events)
        private = holds_private([*before, asked])
        path = await self._path(question, private=private, rejected=past.fell_back)
        question = question._replace(path=path)
        return Run(question, lease, self._means, [*before, asked], past)

    async def aclose(self, *, hand_over: bool = False) -> None:
        """Stops all runs. With `hand_over` another process resumes them later, else they end."""
        await self._leases.aclose()
        await self.checks.aclose()
        await self.afterwards.aclose()
        self._leaving = hand_over
        for session_id, start in list(self._starting.items()):
            self._stop(session_id)
            await asyncio.wait([start.over])
        for session_id in list(self._tasks):
            if run := self._runs.get(session_id):
                run.leaving = hand_over
            await self._end(session_id)
        for source in self._bring:
            await source.aclose()
        await self._transport.aclose()

    def window(self, model: str) -> int | None:
        """Returns the window of a model in tokens, where known. Raises ConfigError."""
        provider, name = self.provider(model)
        return provider.capabilities(name).context

    def provider(self, model: str) -> tuple[Provider, str]:
        """Returns the provider of `provider:model`, and the model's own name."""
        return self.registry.provider(model)


class Start:
    """A run that is being started; `earlier` is the task of the session's run before it, if any."""

    def __init__(self, earlier: asyncio.Task[None] | None) -> None:
        self.earlier = earlier
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self.stopped: asyncio.Future[None] = loop.create_future()

    def stop(self) -> None:
        """Lets the start go on without waiting for anybody, to a run that ends at once."""
        if not self.stopped.done():
            self.stopped.set_result(None)

    async def unless_stopped(self, work: Coroutine[Any, Any, T], instead: T) -> T:
        """Returns what `work` returns, or `instead` if the stop comes first."""
        task = asyncio.ensure_future(work)
        first: list[asyncio.Future[Any]] = [task, self.stopped]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else instead
        finally:
            task.cancel()
