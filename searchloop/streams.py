"""The stream of an answer: typed events on a thread or on the program's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from searchloop.agent.bare_agent import BareAgent, Batch, Turn, unwritten
from searchloop.agent.errors import Conflict
from searchloop.agent.log.events import Event, event_of
from searchloop.answer import Answer, AnswerError, typed
from searchloop.answer_types import Read, answer_of

if TYPE_CHECKING:
    from searchloop.events import ChatEvent

T = TypeVar("T")
Ended = list[Answer[T] | AnswerError]  # holds one of them once the answer is over


class Stream(Generic[T], Iterator["ChatEvent"]):
    """The events of one answer, as they happen; `answer` is there once they are over.

    Leaving it early, or `close`, stops the answer. A model that fails raises `AnswerError` after
    the last event.

        with agent.stream("What is new?") as stream:
            for piece in stream.text():
                print(piece, end="")
        print(stream.answer)
    """

    def __init__(self, events: Iterator[Event], read: Read[T]) -> None:
        self._ended: Ended[T] = []
        self._raw = events
        told = _Told(read, self._ended).of
        self._events = (each for event in events for each in told(event))

    @property
    def answer(self) -> Answer[T]:
        """The whole answer. Raises Conflict before the last event, AnswerError if it failed."""
        return _answer(self._ended)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChatEvent:
        return next(self._events)

    def text(self) -> Iterator[str]:
        """Yields the pieces of the answer alone."""
        return (event.text for event in self if event.type == "text_delta")

    def close(self) -> None:
        """Stops the answer if it is not over."""
        self._raw.close()  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStream(Generic[T], AsyncIterator["ChatEvent"]):
    """The `Stream` of an `AsyncAgent`: `async for`, `async with`, `await aclose()`.

    The question is sent when the first event is awaited.

        async for piece in agent.stream("What is new?").text():
            print(piece, end="")
    """

    def __init__(
        self, core: BareAgent, question: str, session: str | None, turn: Turn, read: Read[T]
    ) -> None:
        self._ended: Ended[T] = []
        events = followed(core, question, session, turn)
        self._events = _typed_later(events, read, self._ended)

    @property
    def answer(self) -> Answer[T]:
        """The whole answer. Raises Conflict before the last event, AnswerError if it failed."""
        return _answer(self._ended)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChatEvent:
        return await anext(self._events)

    async def text(self) -> AsyncIterator[str]:
        """Yields the pieces of the answer alone."""
        async for event in self:
            if event.type == "text_delta":
                yield event.text

    async def aclose(self) -> None:
        """Stops the answer if it is not over."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _answer(ended: Ended[T]) -> Answer[T]:
    if not ended:
        remedy = "Read its events, or its text, to the end first."
        raise Conflict("not_over", "The answer of this stream is not over.", remedy)
    if isinstance(ended[0], AnswerError):
        raise ended[0]
    return ended[0]


# No generator refers to its stream: one that nobody holds any more is closed at once.


class _Told(Generic[T]):
    """What a stream tells of each event. A message takes its deltas with it: what a slow reader has
    not seen of them is told before it.
    """

    def __init__(self, read: Read[T], ended: Ended[T]) -> None:
        self._read, self._ended = read, ended
        self._said, self._seq = "", 0
        self._notices: list[Event] = []

    def of(self, event: Event) -> Iterator[ChatEvent]:
        """Yields the event, after what it says that was missed. Raises a failed answer's error."""
        missed, self._seq = 0 < self._seq < event.seq - 1, event.seq
        failed: AnswerError | None = None
        if event.type == "text_delta":
            self._said += event.data["text"]
        elif event.type in ("message", "run_resumed"):
            text, said, self._said = event.data.get("text", ""), self._said, ""
            if missed and text != said and text.startswith(said):
                rest = {"text": text[len(said) :]}
                yield typed(event_of(event.seq - 1, "text_delta", rest, event.at))
        elif event.type == "notice":
            self._notices.append(event)
        elif event.type == "run_finished":
            try:
                self._ended.append(answer_of(event, self._read, self._notices))
            except AnswerError as error:
                failed = error
                self._ended.append(error)
        yield typed(event)
        if failed:
            raise failed


async def _typed_later(
    raw: AsyncGenerator[Event, None], read: Read[T], ended: Ended[T]
) -> AsyncGenerator[ChatEvent, None]:
    told = _Told(read, ended)
    async with aclosing(raw):
        async for event in raw:
            for each in told.of(event):
                yield each


async def followed(
    core: BareAgent, question: str, session: str | None, turn: Turn
) -> AsyncGenerator[Event, None]:
    """Asks, and yields the events on the loop of the program."""
    batches: asyncio.Queue[Batch] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(batch: Batch) -> None:
        with suppress(RuntimeError):  # the program's loop is closed
            loop.call_soon_threadsafe(batches.put_nowait, batch)

    begun, feeding = core.follow(question, session, turn, put)
    known, done = "", False
    try:
        known = await asyncio.wrap_future(begun)
        while (batch := await batches.get()) is not None:
            done = batch[-1].type == "run_finished"
            for event in batch:
                yield event
        if not done:
            core.log.session(known)
            raise unwritten()
    finally:
        if known and not done:
            await asyncio.shield(asyncio.wrap_future(core.submit(core.runner.cancel(known))))
        feeding.cancel()
