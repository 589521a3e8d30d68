"""Answers requests for a session's events, as server-sent events over plain ASGI.

All followers share the encoded frames, so a follower costs a write. A slow one blocks only its own
stream and then reads the log from where it stopped.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from contextlib import aclosing
from urllib.parse import parse_qs

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.web.api.calls import parse_number, refuse_error
from searchloop.web.asgi import EVENTS, Receive, Scope, Send, more
from searchloop.web.stream.view import FrameCache, PageView

HEARTBEAT = 15.0  # seconds
VIEWS = ("events", "page")
_RETRY = b"retry: 1000\n\n"
_BEAT = b":\n\n"
_CHUNK = 64  # events of a replay in one write
_HEAVY = 6000  # characters; a thread renders more than that
_FAST = 0.001  # seconds; a loop that turns faster has little to do
_REST = 2.0  # pause in turns of the loop
_LONGEST_REST = 0.1  # seconds
_IDLE, _LONGEST_WAIT = 9, 0.25  # rendering a growing text takes a tenth of the time; seconds


class Streams:
    """The open streams of this process."""

    def __init__(self, log: EventLog, *, heartbeat: float = HEARTBEAT) -> None:
        self._log = log
        self._heartbeat = heartbeat
        self._frames = FrameCache()
        self._open: set[asyncio.Task[None]] = set()

    def of(self, log: EventLog) -> Streams:
        """Returns the streams of another person's log, which share the frames."""
        streams = copy.copy(self)
        streams._log = log
        return streams

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """Ends every stream. The clients notice and reconnect."""
        for task in self._open:
            task.cancel()

    async def serve(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request for a session's events."""
        try:
            after, view = await self._admit(session_id, scope)
        except AgentError as error:
            allow = ((b"allow", b"GET"),) if error.code == "method_not_allowed" else ()
            await refuse_error(error, scope, send, allow)
            return
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send(more(_RETRY))
        following = self._follow_page if view == "page" else self._follow_plain
        task = asyncio.ensure_future(following(session_id, after, send))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        watch = asyncio.ensure_future(self._watch(task, receive, send))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            watch.cancel()
        if task.cancelled() or not task.exception():
            await send({"type": "http.response.body", "body": b""})
        else:
            task.result()

    async def _admit(self, session_id: str, scope: Scope) -> tuple[int, str]:
        """Returns (number to start after, view). Raises AgentError for what cannot be streamed."""
        if scope["method"] != "GET":
            what = "A stream of events is read with GET."
            raise ConfigError("method_not_allowed", what, "Use GET.")
        after, view = _parameters(scope)
        await self._log.aside(self._log.session, session_id)
        return after, view

    async def _watch(self, task: asyncio.Task[None], receive: Receive, send: Send) -> None:
        """Ends the stream when the client leaves, and sends a heartbeat until then."""
        while True:
            try:
                async with asyncio.timeout(self._heartbeat):
                    message = await receive()
            except TimeoutError:
                await send(more(_BEAT))
                continue
            if message["type"] == "http.disconnect":
                task.cancel()
                return

    async def _follow_plain(self, session_id: str, after: int, send: Send) -> None:
        frame = self._frames.of
        async with aclosing(self._log.follow(session_id, after)) as batches:
            async for batch in batches:
                for events in _chunks(batch):
                    await send(more(b"".join([frame(session_id, event) for event in events])))
                await _breathe()

    async def _follow_page(self, session_id: str, after: int, send: Send) -> None:
        view = PageView(session_id, self._frames)
        if after:
            known = await asyncio.to_thread(self._log.read, session_id)
            await asyncio.to_thread(view.skip, [event for event in known if event.seq <= after])
        loop = asyncio.get_running_loop()
        async with aclosing(self._log.follow(session_id, after)) as batches:
            async for batch in batches:
                for events in _chunks(batch):
                    began, heavy = loop.time(), view.weight(events) > _HEAVY
                    thread = asyncio.to_thread(view.frames, events) if heavy else None
                    frames = await thread if thread else view.frames(events)
                    took = loop.time() - began
                    await send(more(b"".join([data for _, data in frames])))
                    if events[-1].type == "text_delta" and took > _FAST:
                        await asyncio.sleep(min(_IDLE * took, _LONGEST_WAIT))
                await _breathe()


async def _breathe() -> None:
    """Lets the followers have the loop, then pauses for twice as long as that took.

    So a full loop gathers events into one write instead of falling behind.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    turn = loop.time() - began
    if turn > _FAST:
        await asyncio.sleep(min(_REST * turn, _LONGEST_REST))


def _chunks(batch: Sequence[Event]) -> Sequence[Sequence[Event]]:
    if len(batch) <= _CHUNK:
        return (batch,)
    return [batch[i : i + _CHUNK] for i in range(0, len(batch), _CHUNK)]


def _parameters(scope: Scope) -> tuple[int, str]:
    """Returns (after, view) of a request. Last-Event-ID is newer than the address."""
    query = parse_qs(scope["query_string"].decode("ascii"), keep_blank_values=True)
    view = query.get("view", ["events"])[-1]
    if view not in VIEWS:
        what = f"There is no view {view[:40]!r}."
        raise ConfigError("bad_view", what, f"Choose one of {', '.join(VIEWS)}.")
    last = next((v for k, v in scope["headers"] if k == b"last-event-id"), None)
    given = last.decode("latin-1") if last else query.get("after", ["0"])[-1]
    number = parse_number(given)
    if number is None:
        what = f"{given[:40]!r} is not the number of an event."
        remedy = "Give the `id` of the last event that you have, or 0."
        raise ConfigError("bad_after", what, remedy)
    return number, view
