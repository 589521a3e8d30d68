"""One run: from a stored question to `run_finished`, whatever happens in between."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from typing import Any

from agent.approvals import Approve
from agent.backend import Backend
from agent.closing import partial_message
from agent.dates import asked, day_of, first_day
from agent.dispatcher import Toolset
from agent.errors import AgentError, IncompleteError, NativeSearchRejected
from agent.events import citation_data, source_data
from agent.fence import Fence
from agent.gathering import NONE, Gathered, check_plan, waited
from agent.guard import Watched
from agent.leases import Lease
from agent.limits import DEFAULT_LIMITS, Limits, Price
from agent.log import EventLog
from agent.loop import Outcome, run_agent_loop
from agent.overflow import Overflow
from agent.parcel import Pending
from agent.performance import performance
from agent.plans import offer
from agent.policy import DEFAULT_POLICY, Policy
from agent.presets import preset_in
from agent.prompts import system_text
from agent.protection import Protection
from agent.providers import Provider
from agent.recorder import Recorder
from agent.resume import REJECTED, Past, Remembering
from agent.running import Noted, Running, begin
from agent.seams import Calls, Emit, Streams
from agent.search_path import ANYWHERE, SearchPath, local_path
from agent.session import Session
from agent.sources import SourceTable
from agent.standard_tools import without_spare
from agent.together import Together
from agent.tools import Tool
from agent.tools.open_page import open_page
from agent.tools.web_search import web_search
from agent.types import Message, NativeSearch, Request, RunReason, Usage

_log = logging.getLogger(__name__)


class HandedOver(Exception):
    """The run is not over: another process goes on with it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a run is asked to do, settled before it starts."""

    run_id: str
    session: Session
    provider: Provider
    model: str
    path: SearchPath
    limits: Limits = DEFAULT_LIMITS
    price: Price | None = None
    options: NativeSearch = ANYWHERE
    gathered: Gathered = NONE
    approve: Approve = "ask"
    policy: Policy = DEFAULT_POLICY
    touches: tuple[str, ...] = ()  # files that the plan names which this question has carried out


@dataclass(slots=True)
class Run:
    """A question being answered. `messages` is the transcript, which grows."""

    question: Question
    lease: Lease
    together: Together
    backend: Backend
    messages: list[Message]
    protection: Protection
    past: Past | None = None
    began: float = field(default_factory=time.monotonic)
    clean: bool = False
    leaving: bool = False
    running: Running = field(init=False)
    asked: int = 0  # how many messages there were when the question was asked

    @property
    def log(self) -> EventLog:
        """Where it is written down."""
        return self.together.log

    async def answer(self) -> None:
        """Answers, and writes `run_finished` last. Raises StoreError when the log cannot.

        Raises HandedOver instead when it was stopped because its process is `leaving`.
        """
        question = self.question
        self.running = begin(question.run_id, question.session.id)
        self.asked = len(self.messages)
        where, fence = question.session.id, self.lease.fence
        recorder = Recorder(self.log, where, question.path.name, fence, self.together)
        table = SourceTable.of(self.messages)
        for message in self._known():
            table.remember(message)
        if self.past:
            recorder.remember(self.past.written, self.past.usage)
        outcome: Outcome | None = None
        error: dict[str, str] | None = None
        reason: RunReason = "error"
        try:
            outcome = await self._attempt(recorder, table)
            reason = outcome.reason
            self.clean = True
        except asyncio.CancelledError:
            if self.leaving:
                recorder.stop()
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
        await recorder.finish(self._ending(recorder, table, outcome, reason, error))
        if recorder.path_taken() != question.path.name:
            await self.log.aside(
                self.log.update_session, question.session.id, search_path=recorder.path_taken()
            )

    async def _attempt(self, recorder: Recorder, table: SourceTable) -> Outcome:
        question = self.question
        there = await waited(question.gathered, recorder.event)
        check_plan(question.touches, there.tools, question.session)
        self.question = replace(question, gathered=there)
        path = question.path
        if self.past and self.past.fell_back:
            path = local_path()
            recorder.path = path.name
        try:
            return await self._loop(path, recorder, table)
        except NativeSearchRejected as problem:
            if self.question.session.search != "auto" or not path.native:
                raise
            fallback = local_path()
            recorder.path = fallback.name
            await recorder.event(
                "notice",
                {
                    "code": REJECTED,
                    "message": f"{problem.message} Using local search for this turn.",
                    "remedy": "Choose local search to avoid the extra request.",
                },
            )
            return await self._loop(fallback, recorder, table)

    async def _loop(self, path: SearchPath, recorder: Recorder, table: SourceTable) -> Outcome:
        question = self.question
        fence = Fence()
        web: tuple[Tool, ...] = ()
        if path.local:
            said = "\n".join(asked(m) for m in self.messages if m.role == "user")
            search = web_search(self.backend, fence, question.options, said)
            web = (search, open_page(self.backend, fence, question.options))
        known = [*self.messages, *self._known()]
        guard = self.protection.guard(
            question.session, question.policy, question.approve, table, known
        )
        toolset = Toolset(
            (*web, *self._own_tools(path)),
            question.session.mode,
            table,
            gate=guard,
            fence=fence,
            overflow=Overflow.of(known),
        )
        request = Request(
            model=question.model,
            messages=(),
            system=system_text(
                date=first_day(self.messages) or day_of(time.time()),
                mode=question.session.mode,
                native_search=path.native is not None,
                local_search=path.local,
                agent=preset_in(question.session.settings),
            ),
            native_search=path.native,
            session_id=question.session.id,
        )
        provider: Streams = Watched(Noted(question.provider, self.running), guard, recorder)
        tools: Calls = toolset
        emit: Emit = recorder
        if self.past:
            provider = tools = emit = Remembering(self.past, provider, tools, emit)
        return await run_agent_loop(
            self.messages,
            request,
            provider=provider,
            tools=tools,
            emit=emit,
            sources=table,
            limits=question.limits,
            price=question.price,
        )

    def _own_tools(self, path: SearchPath) -> tuple[Tool, ...]:
        """The question's tools, but for those that this model cannot have beside its own search."""
        question = self.question
        can = question.provider.capabilities(question.model)
        tools = question.gathered.tools
        if path.native is None or can.tools_with_native_search:
            return tools
        return without_spare(tools) if can.tools else ()

    def _known(self) -> tuple[Message, ...]:
        """What this run had come to before it was taken over."""
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
        events = self._offered(outcome) if outcome else partial_message(message.content, usage)
        finished: dict[str, Any] = {
            "run_id": self.question.run_id,
            "reason": reason,
            "answer": message.content or _nothing(outcome),
            "citations": [citation_data(c) for c in message.citations],
            "sources": [source_data(s) for s in table.touched()],
            "usage": usage.as_dict(),
            "search_path": recorder.path_taken(),
            "model": f"{self.question.provider.name}:{self.question.model}",
            "session_id": self.question.session.id,
        }
        numbers = performance(self.messages)
        if numbers:
            finished["performance"] = numbers
        if outcome and outcome.limit:
            finished["limit"] = outcome.limit
        if error:
            finished["error"] = error
        events.append(("run_finished", finished))
        return events

    def _offered(self, outcome: Outcome) -> list[Pending]:
        """The notice for a plan that came as text."""
        if self.question.session.mode != "plan" or outcome.reason != "stop":
            return []
        notice = offer(outcome.message.content, self.messages[self.asked :])
        return [("notice", notice)] if notice else []

    def _usage(self, recorder: Recorder, outcome: Outcome | None) -> Usage:
        """The provider's own counts where it gave them, what was seen where it did not."""
        usage = outcome.usage if outcome else recorder.usage
        seconds = round(time.monotonic() - self.began, 3)
        searches, pages = usage.searches, usage.pages
        if outcome is None or searches is None:
            searches = max(searches or 0, recorder.searches)
        if outcome is None or pages is None:
            pages = max(pages or 0, recorder.pages)
        return replace(usage, searches=searches, pages=pages, seconds=seconds)


def _nothing(outcome: Outcome | None) -> str:
    if outcome and outcome.limit:
        return f"Stopped at {outcome.limit} before there was an answer."
    return ""
