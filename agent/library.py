"""The agent as a library, on a background loop: ask from any thread.

`searchloop.Agent` is this agent together with the search backend.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self, TypedDict, TypeVar, Unpack

from searchloop.agent.errors import AgentError, ConfigError, StoreError
from searchloop.agent.guard.approvals import Approve, Decision
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event, citation_from
from searchloop.agent.observe.watch import Instrumentation
from searchloop.agent.providers import Provider
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.run.runner import Runner
from searchloop.agent.run.undo import delete_session
from searchloop.agent.settings import Settings
from searchloop.agent.settings.usual_model import Choice
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import Wsgi, backend_for
from searchloop.agent.types import (
    Citation,
    Limits,
    ModelInfo,
    NativeSearch,
    RunReason,
    Source,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and how its run ended. `error` is {code, message, remedy} if it failed."""

    text: str
    reason: RunReason
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    usage: Usage
    search_path: str
    session_id: str
    error: dict[str, str] | None = None

    @classmethod
    def of(cls, event: Event) -> Answer:
        """Reads the data of a `run_finished` event."""
        data = event.data
        return cls(
            text=data["answer"],
            reason=data["reason"],
            citations=tuple(citation_from(c) for c in data["citations"]),
            sources=tuple(Source(**s) for s in data["sources"]),
            usage=Usage(**data["usage"]),
            search_path=data["search_path"],
            session_id=data["session_id"],
            error=data.get("error"),
        )


class Turn(TypedDict, total=False):
    """Options of one turn; those left out come from the session or the settings.

    `approve` decides about calls that need the user: `never` refuses them (the default), `auto`
    runs them unless something would leak, `ask` waits for `decide`. `plan` is the data of the plan
    that the question carries out. `files` come with the question: paths, or `NewFile`s.
    """

    model: str | None
    mode: str | None
    search: str | None
    limits: Limits | None
    options: NativeSearch | None
    approve: Approve
    plan: Mapping[str, Any] | None
    files: Sequence[NewFile | str | Path]


_UNATTENDED: Turn = {"approve": "never"}  # a program has no user to ask
T = TypeVar("T")
# A signal that comes just before a thread sleeps is not seen while it sleeps: Ctrl-C would be lost.
_LOOK = 0.5  # seconds
_LATE = 1.0  # seconds after the end of a run in which its last event must have come


class BareAgent:
    """Asks models on a background loop; safe to use from several threads.

    `search_backend` is a WSGI application with the contract of `agent.tools.backend`; without one,
    and without SEARCH_BACKEND_URL, local searches fail. `tools` and `providers` come beside those
    of searchloop; `bring` are sources of tools by session, such as a workspace or MCP servers.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        search_backend: Wsgi | None,
        tools: Iterable[Tool] = (),
        log: EventLog | None = None,
        providers: Iterable[Provider] = (),
        bring: Iterable[ToolSource] = (),
    ) -> None:
        self.settings = settings or Settings.load()
        self._watch = Instrumentation(self.settings)
        self._own_log = log is None
        self.log = log or self._watch.log()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agent", daemon=True)
        self._thread.start()
        transport = self._watch.transport()
        self._backend = backend = backend_for(self.settings, transport, search_backend)
        self.runner = Runner(self.settings, self.log, backend, tools, transport, providers, bring)

    def ask(self, question: str, *, session: str | None = None, **turn: Unpack[Turn]) -> Answer:
        """Returns the whole answer. Raises AgentError when the question cannot be sent."""
        fresh = None if session else self._new_session(turn.get("model"))
        known = session or fresh or ""

        async def answered() -> Event:
            try:
                await self._starting(known, question, turn)
            except BaseException:
                self._discard(fresh)
                raise
            await self.runner.wait(known)
            return self.log.last_event(known)

        event = self._wait(answered())
        if event.type != "run_finished":
            raise _unwritten()
        return Answer.of(event)

    def stream(
        self, question: str, *, session: str | None = None, **turn: Unpack[Turn]
    ) -> Iterator[Event]:
        """Yields the run's events as they happen; the last is `run_finished`.

        Without `session` it makes a new one. Closing the iterator early stops the run.
        Raises AgentError when the question cannot be sent.
        """
        fresh = None if session else self._new_session(turn.get("model"))
        known = session or fresh or ""
        after = self.log.last_seq(known) or 0
        starting = self._starting(known, question, turn)
        batches: SimpleQueue[list[Event] | None] = SimpleQueue()
        begun: Future[str] = Future()
        feeding = self._submit(self._feed(known, after, starting, begun, batches))
        feeding.add_done_callback(lambda done: _over(done, begun))
        try:
            _result(begun)
        except BaseException:
            feeding.cancel()
            self._discard(fresh)
            raise
        return self._handed_over(known, batches, feeding)

    async def _starting(self, session: str, question: str, turn: Turn) -> str:
        """Starts the run, with its files read from their paths."""
        given = turn.get("files", ())
        files = [await asyncio.to_thread(NewFile.of, each) for each in given]
        options: Any = {**_UNATTENDED, **turn, "files": files}
        return await self.runner.start(session, question, **options)

    async def _feed(
        self,
        session: str,
        after: int,
        starting: Coroutine[Any, Any, str],
        begun: Future[str],
        batches: SimpleQueue[list[Event] | None],
    ) -> None:
        """Starts the run once the follower listens, so that it misses nothing of a quick answer."""
        over = False

        async def answered() -> None:
            try:
                begun.set_result(await starting)
            except BaseException as error:
                begun.set_exception(error)
                return
            await self.runner.wait(session)

        def expect_end(_: object) -> None:
            if not over:
                patience.reschedule(self._loop.time() + _LATE)

        run = asyncio.ensure_future(answered())
        try:
            async with (
                asyncio.timeout(None) as patience,
                aclosing(self.log.follow(session, after)) as follower,
            ):
                run.add_done_callback(expect_end)
                async for batch in follower:
                    ends = [i for i, e in enumerate(batch, 1) if e.type == "run_finished"]
                    batches.put(batch[: ends[0]] if ends else batch)
                    if ends:
                        return
        except TimeoutError:
            pass
        finally:
            over = True
            batches.put(None)

    def _handed_over(
        self,
        session: str,
        batches: SimpleQueue[list[Event] | None],
        feeding: Future[None],
    ) -> Iterator[Event]:
        """Yields one run's events from the loop, batch by batch."""
        done = False
        try:
            while (batch := _next(batches)) is not None:
                done = batch[-1].type == "run_finished"
                yield from batch
            if not done:
                self.log.session(session)
                raise _unwritten()
        finally:
            if not done:
                self._wait(self.runner.cancel(session))
            feeding.cancel()

    def _new_session(self, model: str | None) -> str:
        model = model or self.usual_model().model
        return self.log.create_session(model=model, search=self.settings.search).id

    def _discard(self, session: str | None) -> None:
        """Deletes the new session if the question cannot be sent."""
        if session:
            with suppress(AgentError):
                self.log.delete_session(session)

    def delete(self, session: str) -> None:
        """Stops and deletes a session with all it left behind. Raises AgentError."""

        async def done() -> None:
            await self.runner.cancel(session)
            await delete_session(self.log, self.settings, self._backend, session)

        self._wait(done())

    def compact(self, session: str) -> None:
        """Summarises all turns of a session but the last two. Raises AgentError."""

        async def done() -> None:
            await self.runner.compact(session)
            await self.runner.wait(session)

        self._wait(done())

    def decide(
        self,
        session: str,
        call_id: str,
        decision: Decision,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answers an `approval_requested`; `arguments` replace those that the model chose.

        Raises Conflict when no such call waits.
        """
        self.runner.approvals.answer(session, call_id, decision, arguments)

    def usual_model(self) -> Choice:
        """Returns the model that answers where none is named, and why it is this one."""
        return self._wait(self.runner.usual.choose())

    def models(self) -> list[ModelInfo]:
        """Returns the models of every provider."""
        return self._wait(self.runner.models())

    def close(self) -> None:
        """Stops what is running and ends the loop."""
        if self._thread.is_alive():
            self._wait(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            if self._own_log:
                self.log.close()
            self._watch.close()

    async def _end(self) -> None:
        await self.runner.aclose()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return _result(self._submit(coroutine))

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise ConfigError("closed", "This agent is closed.", "Make a new Agent.") from error


def _result(future: Future[T]) -> T:
    """Waits for the result, however long it takes."""
    while not wait([future], _LOOK).done:
        pass
    return future.result()


def _next(batches: SimpleQueue[T]) -> T:
    while True:
        with suppress(Empty):
            return batches.get(timeout=_LOOK)


def _over(feeding: Future[None], begun: Future[str]) -> None:
    """Wakes the waiting caller if the agent was closed, or failed, before the run began."""
    error = None if feeding.cancelled() else feeding.exception()
    with suppress(InvalidStateError):
        if error:
            begun.set_exception(error)
        else:
            begun.cancel()


def _unwritten() -> StoreError:
    what = "The answer could not be stored to its end."
    return StoreError("store_failed", what, "Check the disk, then send the question again.")
