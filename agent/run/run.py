"""Answers one question: from the stored question to `run_finished`, whatever happens in between."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple, cast

from searchloop.agent.calls.caller import NOBODY, Caller, HookedModel
from searchloop.agent.calls.schema import closed
from searchloop.agent.errors import AgentError, IncompleteError, NativeSearchRejected, StoreError
from searchloop.agent.guard.approvals import UserQuestions
from searchloop.agent.guard.guard import (
    DEFAULT_POLICY,
    Guard,
    GuardedProvider,
    GuardFactory,
    Policy,
)
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.events import citation_data, day_of, first_day, messages_from, source_data
from searchloop.agent.log.leases import Lease
from searchloop.agent.log.session import Session
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.observe import current
from searchloop.agent.providers import Provider, abilities_of
from searchloop.agent.run.prompts import agent_in, system_text
from searchloop.agent.run.question import (
    DEFAULT_TURN,
    NONE,
    Gathered,
    TurnOptions,
    waited,
    without_spare,
)
from searchloop.agent.run.question.attached import AttachingProvider, read_into
from searchloop.agent.run.question.structured import StructuredProvider, unfit
from searchloop.agent.run.recorder import BatchWriter, Recorder
from searchloop.agent.run.resume import Past, ResumedRun
from searchloop.agent.run.summary import Summariser, SummarisingProvider
from searchloop.agent.run.takeover import partial_message
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.switch import OFFLINE, SearchPath, fallback, tools_beside
from searchloop.agent.tools import Tool
from searchloop.agent.tools.backend import Backend, ChatBackend
from searchloop.agent.tools.dispatcher import Fence, Overflow, Toolset
from searchloop.agent.tools.open_page import open_page
from searchloop.agent.tools.web_search import web_search
from searchloop.agent.types import Emit, Message, Price, Request, RunReason, Streams, Toolbox, Usage

_log = logging.getLogger(__name__)


class HandedOver(Exception):
    """The run is not over: another process goes on with it."""


class Question(NamedTuple):
    """The question of a run, with all that is decided before it starts."""

    run_id: str
    session: Session
    provider: Provider
    model: str
    path: SearchPath
    turn: TurnOptions = DEFAULT_TURN
    price: Price | None = None
    gathered: Gathered = NONE
    policy: Policy = DEFAULT_POLICY


class Means(NamedTuple):
    """What all runs of a process work with."""

    batches: BatchWriter
    backend: Backend
    guards: GuardFactory
    unseen: set[tuple[str, str]]  # see `AttachingProvider.refused`


@dataclass(slots=True)
class Run:
    """One run: answers a question. `messages` is the transcript, which grows."""

    question: Question
    lease: Lease
    means: Means
    messages: list[Message]
    past: Past | None = None
    caller: Caller = NOBODY
    table: SourceTable | None = None  # of the messages before the question
    began: float = field(default_factory=time.monotonic)
    clean: bool = False
    leaving: bool = False
    over: bool = False  # only its end is still to be stored, which no stop may break off
    rejected: bool = False  # the provider has refused its own search
    ended: int = 0  # the number of its `run_finished`
    asked: int = 0  # how many messages there were when the question was asked

    async def answer(self) -> None:
        """Answers; appends `run_finished` last. Raises StoreError, HandedOver while `leaving`."""
        question = self.question
        current.set(question.run_id)
        self.asked = len(self.messages)
        log, session_id = self.means.batches.log, question.session.id
        recorder = Recorder(self.means.batches, session_id, question.path.name, self.lease.fence)
        table = self._source_table()
        if self.past:
            recorder.remember(self.past.written, self.past.usage)
        outcome: Outcome | None = None
        error: dict[str, str] | None = None
        reason: RunReason = "error"
        try:
            await asyncio.sleep(0)  # a stop that came before the task ends it here
            outcome = await self._attempt(recorder, table)
            reason, lack = outcome.reason, outcome.error
            schema = question.turn.instructions.schema
            if reason == "stop" and schema and (wrong := await unfit(outcome.message, schema)):
                reason, lack = "incomplete", wrong
            error = lack.as_dict() if lack else None
            self.clean = True
        except asyncio.CancelledError:
            if self.leaving:
                await recorder.stop()
                raise HandedOver from None
            reason = "cancelled"
        except IncompleteError as problem:
            reason, error = "incomplete", problem.as_dict()
        except AgentError as problem:
            error = problem.as_dict()
        except Exception as problem:
            _log.exception("run %s failed", question.run_id)
            error = {
                "code": "internal",
                "message": f"searchloop failed: {type(problem).__name__}.",
                "remedy": "The log has the details; the question is kept, send it again.",
            }
        self.over = True
        stored = self.past.started["search_path"] if self.past else question.path.name
        if (taken := recorder.path_taken()) != stored:
            with suppress(StoreError):  # the end may still find room
                await log.aside(log.update_session, session_id, search_path=taken)
        await recorder.finish(self._ending(recorder, table, outcome, reason, error))
        self.ended = recorder.last

    def _source_table(self) -> SourceTable:
        """Returns the table of all messages so far; one that is known gains the question alone."""
        if self.table is None:
            self.table = SourceTable.of(self.messages)
        else:
            self.table.begin_turn(self.messages[-1])
        for message in self._replayed():
            self.table.remember(message)
        with_files = [message for message in self.messages if message.attachments]
        if with_files:
            read_into(self.table, self.means.batches.log, self.question.session.id, with_files)
        return self.table

    async def _attempt(self, recorder: Recorder, table: SourceTable) -> Outcome:
        question = self.question
        there = await waited(question.gathered, recorder.event)
        self.question = question._replace(gathered=there)
        try:
            return await self._loop(question.path, recorder, table)
        except NativeSearchRejected as problem:
            path = fallback(question.session.search, question.path, problem.message)
            if path is None:
                raise
            self.rejected = True
            recorder.path = path.name
            await recorder.event("notice", path.notice or {})
            return await self._loop(path, recorder, table)

    async def _loop(self, path: SearchPath, recorder: Recorder, table: SourceTable) -> Outcome:
        question, session = self.question, self.question.session
        fence, means = Fence(), self.means
        backend = ChatBackend(means.backend, session.id, session.settings, offline=path is OFFLINE)
        web: tuple[Tool, ...] = ()
        if path.local:
            search = web_search(backend, fence, question.turn.search_options)
            web = (search, open_page(backend, fence, question.turn.search_options))
        approve, decide = question.turn.approve, self.caller.approve
        guard = means.guards.guard(session, question.policy, approve, table, self.messages, decide)
        questions = UserQuestions(means.guards.approvals, session.id, decide)
        own = question.gathered.tools
        offered = {"all": own, "needed": without_spare(own), "none": ()}[
            tools_beside(path, question.provider.capabilities(question.model))
        ]
        overflow = Overflow.of([*self.messages, *self._replayed()])
        tools: Toolbox = Toolset(
            (*web, *offered),
            session.mode,
            table,
            guard=guard,
            fence=fence,
            overflow=overflow,
            caller=self.caller._replace(question=questions if approve == "ask" else None),
        )
        request, emit = self._request(path), cast("Emit", recorder)
        provider: Streams = question.provider
        for wrapped in self._wrappers(guard, recorder):
            provider = wrapped(provider)
        if self.past:
            provider = tools = emit = ResumedRun(self.past, provider, tools, emit)
        return await run_agent_loop(
            self.messages,
            request,
            provider=provider,
            tools=tools,
            emit=emit,
            sources=table,
            limits=question.turn.limits,
            price=question.price,
        )

    def _wrappers(self, guard: Guard, emit: Emit) -> Iterator[Callable[[Streams], Streams]]:
        """Yields what stands around the provider, from the inside out."""
        question, log, session = self.question, self.means.batches.log, self.question.session.id
        others = any(tool.origin != "ours" for tool in question.gathered.tools)
        if others or any(message.attachments for message in self.messages):  # see ToolResult
            yield lambda _: AttachingProvider(
                question.provider, question.model, log, session, self.means.unseen
            )
        if hooks := self.caller.hooks:
            yield lambda inner: HookedModel(inner, hooks)
        yield lambda inner: GuardedProvider(inner, guard, emit)
        if schema := question.turn.instructions.schema:
            yield lambda inner: StructuredProvider(inner, schema)
        writer = Summariser(question.provider, question.model, log, session, question.price)
        yield lambda inner: SummarisingProvider(inner, writer, self.messages, emit)

    def _request(self, path: SearchPath) -> Request:
        """Returns the request of each step, without messages and tools."""
        question, session = self.question, self.question.session
        own = question.turn.instructions
        return Request(
            model=question.model,
            messages=(),
            system=system_text(
                date=first_day(self.messages) or day_of(time.time()),
                mode=session.mode,
                native_search=path.native is not None,
                local_search=path.local,
                agent=agent_in(session.settings),
                own=own,
            ),
            native_search=path.native,
            session_id=session.id,
            max_output_tokens=own.options.get("max_tokens"),
            options={k: v for k, v in own.options.items() if k != "max_tokens"},
            schema=own.schema and closed(own.schema),
        )

    def _replayed(self) -> tuple[Message, ...]:
        """Returns the messages of this run from before it was taken over."""
        return self.past.transcript if self.past else ()

    def _ending(
        self,
        recorder: Recorder,
        table: SourceTable,
        outcome: Outcome | None,
        reason: RunReason,
        error: dict[str, str] | None,
    ) -> list[Pending]:
        usage = self._usage(recorder, outcome)
        message = outcome.message if outcome else Message("assistant", recorder.partial())
        events: list[Pending] = [] if outcome else partial_message(message.content, usage)
        finished: dict[str, Any] = {
            "run_id": self.question.run_id,
            "reason": reason,
            "answer": message.content,
            "citations": [citation_data(c) for c in message.citations],
            "sources": [source_data(s) for s in table.touched()],
            "usage": usage.as_dict(),
            "search_path": recorder.path_taken(),
            "model": f"{self.question.provider.name}:{self.question.model}",
            "local": abilities_of(self.question.provider).local(self.question.model),
            "session_id": self.question.session.id,
        }
        numbers = performance(self.messages)
        thought, price = Usage(0, usage.reasoning_tokens), self.question.price
        if price and thought.output_tokens and (cost := price(thought)) is not None:
            numbers["thinking_usd"] = cost
        if numbers:
            finished["performance"] = numbers
        if outcome and outcome.limit:
            finished["limit"] = outcome.limit
            nothing = f"Stopped at {outcome.limit} before there was an answer."
            finished["answer"] = message.content or nothing
        if error:
            finished["error"] = error
        events.append(("run_finished", finished))
        return events

    def _usage(self, recorder: Recorder, outcome: Outcome | None) -> Usage:
        """Returns the provider's counts, and ours of searches and pages where it has none."""
        usage = outcome.usage if outcome else recorder.usage
        before = self.past.seconds if self.past else 0.0
        seconds = round(before + time.monotonic() - self.began, 3)
        searches, pages = usage.searches, usage.pages
        if outcome is None or searches is None:
            searches = max(searches or 0, recorder.searches)
        if outcome is None or pages is None:
            pages = max(pages or 0, recorder.pages)
        return usage._replace(searches=searches, pages=pages, seconds=seconds)


_SUMS = ("load_ms", "prompt_ms", "eval_ms")
_LAST = ("calls", "window", "prompt_estimate", "shortened")


def performance(messages: Sequence[Message]) -> dict[str, Any]:
    """Sums up the numbers of the last turn's steps: times added, the last window, mean speed."""
    turn = takewhile(lambda message: message.role != "user", reversed(messages))
    steps = [message.details for message in turn if message.role == "assistant"][::-1]
    named = (*_SUMS, *_LAST)
    known = {name: [step[name] for step in steps if name in step] for name in named}
    numbers: dict[str, Any] = {n: round(sum(known[n]), 3) for n in _SUMS if known[n]}
    timed = [(s["tokens_per_second"], s["eval_ms"]) for s in steps if "tokens_per_second" in s]
    if timed:
        spent = sum(ms for _, ms in timed)
        numbers["tokens_per_second"] = round(sum(rate * ms for rate, ms in timed) / spent, 2)
    return numbers | {name: known[name][-1] for name in _LAST if known[name]}


_KEPT = 32


class TranscriptCache:
    """Caches the transcripts and source tables of the sessions used last."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._kept: OrderedDict[str, tuple[int, list[Message], SourceTable | None]] = OrderedDict()

    def take(self, session_id: str, before: int | None) -> tuple[list[Message], SourceTable | None]:
        """Returns the transcript, or the part `before` a turn, as a list that may grow.

        The source table comes with it if it is known.
        """
        seq, messages, table = self._kept.pop(session_id, (-1, [], None))
        if before is None and seq >= 0 and seq == self._log.last_seq(session_id):
            return messages, table
        return messages_from(self._log.read(session_id), before=before), None

    def keep(self, run: Run) -> None:
        """Caches the transcript up to the end of a run."""
        self._kept[run.question.session.id] = (run.ended, run.messages, run.table)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
