"""Puts the agent and the search backend together, for programs that use searchloop as a library.

`Agent` and `AsyncAgent` have the same words over one implementation, a `BareAgent` on a loop of its
own: so both work beside any loop of the program, and from any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.calls.caller import Decision
from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Settings
from searchloop.agent.types import ModelInfo
from searchloop.answer import Answer, T
from searchloop.answer_types import answer_of
from searchloop.options import AgentOptions, Asker, AskOptions, JsonSchema, NewChat, made
from searchloop.streams import AsyncStream, Stream, followed

if TYPE_CHECKING:
    from searchloop.agent.verdicts.check import Verdict
    from searchloop.auditing.results import Audit


class _Words:
    """`ask` and `stream`, for an agent and for one of its chats."""

    _asker: Asker
    _core: BareAgent

    def ask(
        self, question: str, *, schema: type[T] | JsonSchema = None, **turn: Unpack[AskOptions]
    ) -> Answer[T]:
        """Returns the whole answer.

        `schema` is the type of `Answer.value`; for the rest see `AskOptions`. Raises ConfigError
        and Conflict if the question cannot be sent, and AnswerError if the model fails.

            agent.ask("What is new in Python 3.15?", model="ollama:qwen3:8b", search="auto")
        """
        known, options, read = self._asker.turn("ask", question, turn, schema)
        *before, end = self._core.stream(question, session=known, **options)
        return answer_of(end, read, before)

    def stream(
        self, question: str, *, schema: type[T] | JsonSchema = None, **turn: Unpack[AskOptions]
    ) -> Stream[T]:
        """Yields typed events as they happen; see `Stream`. Options and errors are those of `ask`.

        for event in agent.stream("What is new?"):
            if event.type == "text_delta":
                print(event.text, end="")
        """
        known, options, read = self._asker.turn("stream", question, turn, schema)
        return Stream(self._core.stream(question, session=known, **options), read)


class Agent(_Words):
    """Asks models on a loop of its own; safe to use from several threads, and beside any loop.

    It searches with the search backend in this process, or the one at SEARCH_BACKEND_URL.
    `settings` are by default those of the environment; for `options` see `AgentOptions`. Those of
    `Usual` hold for each question that does not say otherwise. Raises ConfigError for a setting or
    a model that cannot be used, StoreError where the data folder cannot.

        with Agent(model="ollama:qwen3:8b", tools=[stock], search="auto") as agent:
            print(agent.ask("How many bolts are there, and who makes them?"))
    """

    def __init__(self, settings: Settings | None = None, **options: Unpack[AgentOptions]) -> None:
        self._asker = made(type(self), settings, options)
        core = self._core = self._asker.core
        self.settings, self.log, self.runner = core.settings, core.log, core.runner

    def chat(self, session: str | None = None, **options: Unpack[NewChat]) -> Chat:
        """Opens a chat, or the one with the id `session`: its questions go on from each other.

        Those of `Usual` hold for each of its questions. Raises ConfigError for a folder or an
        agent that cannot be used, Conflict for an id that is not there.

            chat = agent.chat(workspace="~/notes", mode="agent", approve="auto")
            chat.ask("Sort the list in todo.md.")
        """
        return Chat(self._core.wait(self._asker.opened(Chat, session, options)))

    def decide(
        self,
        session: str,
        call_id: str,
        decision: Decision,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answers an `approval_requested`; `arguments` replace those that the model chose.

        `session` and `call_id` are in the events `run_started` and `approval_requested`; a
        `decision` is "once", "always", "folder" or "deny". Raises Conflict when no such call waits.

            agent.decide(session, event.call_id, "once")
        """
        self._core.decide(session, call_id, decision, arguments)

    def cancel(self, session: str) -> bool:
        """Stops the answer of a session, from any thread and of any process that shares the store.

        It ends with reason "cancelled" and the text so far. Returns False if there is none.
        """
        return self._core.cancel(session)

    def delete(self, session: str) -> None:
        """Stops and deletes a session with all it left behind. Raises AgentError."""
        self._core.delete(session)

    def models(self) -> list[ModelInfo]:
        """Returns the models of every provider."""
        return self._core.models()

    def close(self) -> None:
        """Stops what is running; `with` does it at its end."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Chat(_Words):
    """A chat of an `Agent`: its questions go on from each other. `agent.chat(chat.id)` reopens it.

    `ask` and `stream` are those of the agent.

        chat = agent.chat()
        chat.ask("Who built the bridge?")
        print(chat.ask("And when?").text)
    """

    def __init__(self, asker: Asker) -> None:
        self._asker, self._core, self.id = asker, asker.core, str(asker.session)


class _AsyncWords:
    """`_Words` for programs with a loop of their own."""

    _asker: Asker
    _core: BareAgent

    async def ask(
        self, question: str, *, schema: type[T] | JsonSchema = None, **turn: Unpack[AskOptions]
    ) -> Answer[T]:
        """Returns the whole answer, as `Agent.ask` does; to cancel the task stops the answer.

        async with asyncio.timeout(60):
            answer = await agent.ask("What is new in Python 3.15?", search="auto")
        """
        known, options, read = self._asker.turn("ask", question, turn, schema)
        async with aclosing(followed(self._core, question, known, options)) as events:
            *before, end = [event async for event in events]
        return answer_of(end, read, before)

    def stream(
        self, question: str, *, schema: type[T] | JsonSchema = None, **turn: Unpack[AskOptions]
    ) -> AsyncStream[T]:
        """Yields typed events as they happen; see `AsyncStream`.

        async for event in agent.stream("What is new?"):
            if event.type == "text_delta":
                print(event.text, end="")
        """
        known, options, read = self._asker.turn("stream", question, turn, schema)
        return AsyncStream(self._core, question, known, options, read)

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the agent's loop; one that is cancelled here is cancelled there."""
        return await asyncio.wrap_future(self._core.submit(work))


class AsyncAgent(_AsyncWords):
    """The `Agent` for programs with an event loop: the same words, awaited.

    It works on any loop (asyncio, uvloop, a server's or a notebook's) and blocks none; several
    loops may share one. Options and errors are those of `Agent`.

        async with AsyncAgent(model="ollama:qwen3:8b") as agent:
            print(await agent.ask("What is new?", search="auto"))
    """

    def __init__(self, settings: Settings | None = None, **options: Unpack[AgentOptions]) -> None:
        self._asker = made(type(self), settings, options)
        core = self._core = self._asker.core
        self.settings, self.log, self.runner = core.settings, core.log, core.runner

    async def chat(self, session: str | None = None, **options: Unpack[NewChat]) -> AsyncChat:
        """Opens a chat, as `Agent.chat` does."""
        return AsyncChat(await self._do(self._asker.opened(AsyncChat, session, options)))

    async def decide(
        self,
        session: str,
        call_id: str,
        decision: Decision,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answers an `approval_requested`, as `Agent.decide` does."""
        await asyncio.to_thread(self._core.decide, session, call_id, decision, arguments)

    async def cancel(self, session: str) -> bool:
        """Stops the answer of a session, as `Agent.cancel` does."""
        return await self._do(self._core.runner.cancel(session))

    async def delete(self, session: str) -> None:
        """Stops and deletes a session with all it left behind. Raises AgentError."""
        await asyncio.to_thread(self._core.delete, session)

    async def models(self) -> list[ModelInfo]:
        """Returns the models of every provider."""
        return await self._do(self._core.runner.registry.models())

    async def aclose(self) -> None:
        """Stops what is running; `async with` does it at its end."""
        await asyncio.to_thread(self._core.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class AsyncChat(_AsyncWords):
    """A chat of an `AsyncAgent`; see `Chat`.

    `ask` and `stream` are those of the agent.

        chat = await agent.chat()
        await chat.ask("Who built the bridge?")
    """

    def __init__(self, asker: Asker) -> None:
        self._asker, self._core, self.id = asker, asker.core, str(asker.session)


def audit(
    text: str | None = None,
    *,
    file: str | Path | None = None,
    url: str | None = None,
    model: str | None = None,
    offline: bool = False,
    settings: Settings | None = None,
) -> Audit:
    """Opens each page that a report cites, once, and judges its sentences.

    The report is one of `text`, `file` and `url`. A page that could not be read is said to be that
    and counts against nothing; with `offline` only pages stored here are read. `model` is one that
    reads what words alone leave unclear. Raises ConfigError without a report that can be read.

        print(audit(file="report.md").summary)
    """
    from searchloop.auditing.run import audited
    from searchloop.compose import file_text

    settings = settings or Settings.load()
    if [text, file, url].count(None) != 2:
        remedy = "Give exactly one of text, file and url."
        raise ConfigError("no_source", "There must be one report.", remedy)

    report = (text or "") if file is None else file_text(Path(file))
    work = audited(report, settings, url=url, offline=offline, model=model)
    with ThreadPoolExecutor(1) as pool:  # the caller may have a loop of its own
        return pool.submit(asyncio.run, work).result()


def check(
    claim: str,
    *,
    text: str | None = None,
    file: str | Path | None = None,
    url: str | None = None,
    settings: Settings | None = None,
) -> Verdict:
    """Says whether a source bears out a claim: one of `text`, `file` and `url`.

    No model is asked, and only `url` needs a network. Raises ConfigError that names a source that
    cannot be read.

        check("It opened in 1932.", text="The bridge was opened in 1931.").verdict
    """
    from searchloop.compose.check import check_source

    settings = settings or Settings.load()
    path = None if file is None else Path(file)
    with ThreadPoolExecutor(1) as pool:  # the caller may have a loop of its own
        work = check_source(claim, settings, text=text, file=path, url=url)
        return pool.submit(asyncio.run, work).result()
