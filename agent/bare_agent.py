"""The agent as a library, on a loop of its own; `searchloop.Agent` adds the search backend."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import AbstractContextManager, aclosing, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypedDict, TypeVar, Unpack

from searchloop.agent.calls.caller import (
    ApprovalHandler,
    Caller,
    Decision,
    Hooks,
    check_context,
    handled_by,
)
from searchloop.agent.errors import AgentError, ConfigError, StoreError
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.log.session import checked
from searchloop.agent.observe.logs import Instrumentation
from searchloop.agent.providers import Provider
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.run.runner import Runner
from searchloop.agent.run.undo import delete_session
from searchloop.agent.settings import IN_MEMORY, Settings
from searchloop.agent.settings.usual_model import Choice
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import Wsgi, backend_for
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Limits, Mode, ModelInfo, NativeSearch, Search


class Usual(TypedDict, total=False):
    """Options of an agent, or of one turn; those left out come from the session or the settings.

    `approve` decides about calls that need the user: `never` refuses them (the default), `auto`
    runs them unless something would leak, `ask` waits for `decide`. A function gets each
    `approval_requested` and returns True, False, a decision, or the arguments to run with instead.
    `context` is for tools that ask for a `Context`. `system` joins the system text; `options` are
    the model's: temperature, top_p, seed, max_tokens, stop. `search_options` limit searches to
    sites or a country, `limits` the steps, searches, pages, tokens, seconds or cost_usd of an
    answer; of both a mapping of names will do. `check` reads the cited pages that nobody has read
    and judges their marks before the answer ends, by default if SEARCHLOOP_CHECK is always;
    `check_with` names a model that reads what words alone leave unclear.

        Agent(search="auto", limits={"steps": 6, "cost_usd": 0.10}, options={"temperature": 0})
    """

    mode: Mode | None
    search: Search | None
    limits: Limits | Mapping[str, float | None] | None
    system: str | None
    options: Mapping[str, Any]
    search_options: NativeSearch | Mapping[str, Any] | None
    approve: Approve | ApprovalHandler
    context: Any
    check: bool | None
    check_with: str | None


class Turn(Usual, total=False):
    """Options of one turn: `model` is `provider:model`, `files` are paths, or `NewFile`s.

    `plan` is the data of the plan that the question carries out, `replaces` the `seq` of an earlier
    question whose place this one takes, `schema` the JSON Schema of its answer; see
    `agent.calls.instructions`.
    """

    model: str | None
    replaces: int | None
    plan: Mapping[str, Any] | None
    files: Sequence[NewFile | str | Path]
    schema: Mapping[str, Any] | None


Batch = list[Event] | None
_UNATTENDED: Turn = {"approve": "never"}  # a program has no user to ask
T = TypeVar("T")
_CLOSED = ("closed", "This agent is closed.", "Make a new Agent.")
# A signal that comes just before a thread sleeps is not seen while it sleeps: Ctrl-C would be lost.
_LOOK = 0.5  # seconds
_LATE = 1.0  # seconds after the end of a run in which its last event must have come


class BareAgent(AbstractContextManager["BareAgent"]):
    """Asks models on a background loop; safe to use from several threads.

    `search_backend` is a WSGI application with the contract of `agent.tools.backend`; without one,
    and without SEARCH_BACKEND_URL, local searches fail. `tools` and `providers` come beside those
    of searchloop; `bring` are sources of tools by session, such as a workspace or MCP servers.
    Chats are kept in memory, or in `store`: a log, which is shared, or the place of one.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        search_backend: Wsgi | None,
        tools: Iterable[Tool] = (),
        store: EventLog | Path | str = IN_MEMORY,
        providers: Iterable[Provider] = (),
        bring: Iterable[ToolSource] = (),
        hooks: Hooks | None = None,
    ) -> None:
        self.settings = settings or Settings.load()
        self._watch = Instrumentation(self.settings)
        self._tools, self._hooks = tuple(tools), hooks
        self._own_log = not isinstance(store, EventLog)
        self.log = store if isinstance(store, EventLog) else self._watch.log(store)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=[self._loop], name="agent", daemon=True)
        self._thread.start()
        transport = Transport(offline=self.settings.offline)
        self._backend = backend = backend_for(self.settings, transport, search_backend)
        self.runner = Runner(
            self.settings, self.log, backend, self._tools, transport, providers, bring
        )
        self.runner.usual.remembers = str(store) == str(self.settings.store)
        self._left = weakref.finalize(self, _leave, self._loop, self._thread, self.runner)

    def stream(
        self, question: str, *, session: str | None = None, **turn: Unpack[Turn]
    ) -> Iterator[Event]:
        """Yields the run's events as they happen; the last is `run_finished`.

        Without `session` it makes a new one. Closing the iterator early stops the run.
        Raises AgentError when the question cannot be sent.
        """
        self._elsewhere()
        batches: SimpleQueue[Batch] = SimpleQueue()
        begun, feeding = self.follow(question, session, turn, batches.put)
        try:
            known = self._result(begun)
        except BaseException:
            feeding.cancel()
            raise
        return self._handed_over(known, batches, feeding)

    async def _checks(self, session: str, turn: Turn) -> bool:
        """Begins to check the sources of the last answer, if that is wanted and there are any."""
        model, wanted = turn.get("check_with"), turn.get("check")
        always = self.settings.env.get("SEARCHLOOP_CHECK") == "always"
        if not (model or always if wanted is None else wanted):
            return False
        pressed = bool(model or wanted)
        return await self.runner.check(session, model=model, pressed=pressed) is not None

    async def _as_checked(self, session: str) -> Event:
        """Returns the end of the last run, with what checks found since."""
        events = checked(await self.log.aside(self.log.read, session))
        return next(event for event in reversed(events) if event.type == "run_finished")

    def follow(
        self, question: str, session: str | None, turn: Turn, put: Callable[[Batch], None]
    ) -> tuple[Future[str], Future[None]]:
        """Asks on the agent's loop and puts each batch of events; None is the end.

        Returns the session once the question is stored, and the feeding, which may be cancelled.
        """
        begun: Future[str] = Future()
        feeding = self.submit(self._feed(question, session, turn, begun, put))
        feeding.add_done_callback(lambda done: _over(done, begun))
        return begun, feeding

    async def _starting(self, session: str, question: str, turn: Turn) -> str:
        """Starts the run, with its files read from their paths."""
        options: dict[str, Any] = {**_UNATTENDED, **turn}
        context, approve = options.pop("context", None), options["approve"]
        options.pop("check", None)
        if model := options.pop("check_with", None):
            self.runner.reader(model, "")  # raises before anything is asked
        for each in self._tools:
            if each.needs is not None:
                check_context(each.spec.name, each.needs, context)
        handler = handled_by(approve) if callable(approve) else None
        options["caller"] = Caller(context, self._hooks, handler)
        files = options.get("files", ())
        options["files"] = [await asyncio.to_thread(NewFile.of, each) for each in files]
        options["approve"] = "ask" if handler else approve
        return await self.runner.start(session, question, **options)

    async def _answered(
        self, known: str, fresh: str | None, question: str, turn: Turn, begun: Future[str]
    ) -> None:
        try:
            await self._starting(known, question, turn)
        except BaseException as error:
            self._discard(fresh)
            with suppress(InvalidStateError):  # nobody waits for it any more
                begun.set_exception(error)
            return
        with suppress(InvalidStateError):
            begun.set_result(known)
        await self.runner.wait(known)

    async def _feed(
        self,
        question: str,
        session: str | None,
        turn: Turn,
        begun: Future[str],
        put: Callable[[Batch], None],
    ) -> None:
        """Starts the run once the follower listens, so that it misses nothing of a quick answer."""
        over = False
        known, fresh = await self._opened(session, turn)
        after = await self.log.aside(self.log.last_seq, known) or 0

        def expect_end(_: object) -> None:
            with suppress(RuntimeError):  # nobody waits any more
                if not over:
                    patience.reschedule(self._loop.time() + _LATE)

        run = asyncio.ensure_future(self._answered(known, fresh, question, turn, begun))
        try:
            async with (
                asyncio.timeout(None) as patience,
                aclosing(self.log.follow(known, after)) as follower,
            ):
                run.add_done_callback(expect_end)
                async for batch in follower:
                    ends = [i for i, e in enumerate(batch) if e.type == "run_finished"]
                    if not ends:
                        put(batch)
                        continue
                    over = True
                    patience.reschedule(None)
                    put(batch[: ends[0]] + await self._end_of(batch[ends[0]], known, turn, put))
                    return
        except TimeoutError:
            pass
        except asyncio.CancelledError:  # nobody listens any more
            if not _refused(begun):
                with suppress(AgentError):
                    await self.runner.cancel(known)
            raise
        finally:
            over = True
            put(None)

    async def _end_of(
        self, end: Event, session: str, turn: Turn, put: Callable[[Batch], None]
    ) -> list[Event]:
        """Returns the end of a run; puts the events of a check before it, where that is wanted."""
        if not await self._checks(session, turn):
            return [end]
        async with aclosing(self.log.follow(session, end.seq)) as follower:
            async for batch in follower:
                if told := [event for event in batch if event.type == "check"]:
                    put(told)
                if any(not event.data["left"] for event in told):
                    break
        return [await self._as_checked(session)]

    def _handed_over(
        self, session: str, batches: SimpleQueue[Batch], feeding: Future[None]
    ) -> Iterator[Event]:
        """Yields one run's events from the loop, batch by batch."""
        done = False
        try:
            while (batch := self._next(batches)) is not None:
                done = batch[-1].type == "run_finished"
                yield from batch
            if not done:
                self.log.session(session)
                raise unwritten()
        finally:
            if not done:
                with suppress(ConfigError):  # closed meanwhile, which has cancelled it
                    self.wait(self.runner.cancel(session))
            feeding.cancel()

    async def _opened(self, session: str | None, turn: Turn) -> tuple[str, str | None]:
        """Returns the session, and once more if it is new."""
        if session:
            return session, None
        model = turn.get("model") or (await self.runner.usual.choose()).model
        create = partial(self.log.create_session, model=model, search=self.settings.search)
        fresh = (await self.log.aside(create)).id
        return fresh, fresh

    def _discard(self, session: str | None) -> None:
        """Deletes the new session if the question cannot be sent."""
        if session:
            with suppress(AgentError):
                self.log.delete_session(session)

    def cancel(self, session: str) -> bool:
        """Stops the answer of a session and waits for its end; False if there is none."""
        return self.wait(self.runner.cancel(session))

    def delete(self, session: str) -> None:
        """Stops and deletes a session with all it left behind. Raises AgentError."""

        async def done() -> None:
            await self.runner.cancel(session)
            await delete_session(self.log, self.settings, self._backend, session)

        self.wait(done())

    def compact(self, session: str) -> None:
        """Summarises all turns of a session but the last two. Raises AgentError."""

        async def done() -> None:
            await self.runner.compact(session)
            await self.runner.wait(session)

        self.wait(done())

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
        return self.wait(self.runner.usual.choose())

    def models(self) -> list[ModelInfo]:
        """Returns the models of every provider."""
        return self.wait(self.runner.registry.models())

    def close(self) -> None:
        """Stops what is running and ends the loop."""
        if self._left.alive:
            self._elsewhere()
            self._left()
            self._thread.join()
            if self._own_log:
                self.log.close()
            self._watch.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the agent's loop and waits for it; raises ConfigError there."""
        try:
            self._elsewhere()
        except ConfigError:
            coroutine.close()
            raise
        return self._result(self.submit(coroutine))

    def _elsewhere(self) -> None:
        if threading.current_thread() is self._thread:
            what = "An async tool of this agent asked it, and would wait for itself."
            raise ConfigError("own_loop", what, "Make it a plain def, or await an AsyncAgent.")

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs a coroutine on the agent's loop. Raises ConfigError once the agent is closed."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise ConfigError(*_CLOSED) from error

    def _result(self, future: Future[T]) -> T:
        """Waits for the result, however long it takes; whoever stops waiting stops the work."""
        try:
            while not wait([future], _LOOK).done:
                if not self._thread.is_alive() and not future.done():
                    raise ConfigError(*_CLOSED)  # submitted after the loop's last turn
        except BaseException:
            future.cancel()
            raise
        return future.result()

    def _next(self, batches: SimpleQueue[Batch]) -> Batch:
        while self._thread.is_alive() or not batches.empty():
            with suppress(Empty):
                return batches.get(timeout=_LOOK)
        return None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _leave(loop: asyncio.AbstractEventLoop, thread: threading.Thread, runner: Runner) -> None:
    """Ends what an agent runs: it is closed, its last name is gone, or the program ends."""

    async def end() -> None:
        try:
            await runner.aclose()
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if others:  # followers still read the end of their run
                await asyncio.wait(others, timeout=_LATE)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            loop.call_soon(loop.stop)  # after the callbacks of tasks that ended now

    asyncio.run_coroutine_threadsafe(end(), loop)
    if thread is not threading.current_thread():
        thread.join(_LATE)


def _over(feeding: Future[None], begun: Future[str]) -> None:
    """Wakes the waiting caller if the agent was closed, or failed, before the run began."""
    with suppress(InvalidStateError):
        if feeding.cancelled() or not (error := feeding.exception()):
            begun.cancel()
        else:
            begun.set_exception(error)


def _refused(begun: Future[str]) -> bool:
    """Returns whether no run began: one that the session may have is somebody else's."""
    return begun.done() and not begun.cancelled() and begun.exception() is not None


def unwritten() -> StoreError:
    """Returns the error of an answer whose end is not in the log."""
    what = "The answer could not be stored to its end."
    return StoreError("store_failed", what, "Check the disk, then send the question again.")
