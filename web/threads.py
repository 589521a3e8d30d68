"""Threads for what an event loop must not wait for: one hand-over there and one back.

The standard library's pool makes two futures of each call and locks what it counts. Here the loop's
own thread does all the counting, and the thread that came back last goes first, because what it
needs is still in the processor's caches.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

_Inbox = SimpleQueue["_Call | None"]


class _Call(NamedTuple):
    pool: Threads
    future: asyncio.Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]


class Threads:
    """At most `most` threads, made when they are needed, for one event loop.

    They end when this is closed or nobody has it any more.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._made: list[_Inbox] = []
        self._idle: list[_Inbox] = []
        self._waiting: deque[_Call] = deque()

    def run(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """What `function` gives or raises on a thread; while all are at work the call waits.

        A call whose future was cancelled ends for nobody; one that has not begun is not made.
        """
        call = _Call(self, asyncio.get_running_loop().create_future(), function, args)
        if self._idle:
            self._idle.pop().put(call)
        elif len(self._made) < self._most:
            inbox: _Inbox = SimpleQueue()
            name = f"{self._name} {len(self._made)}"
            threading.Thread(target=_work, args=(inbox,), name=name, daemon=True).start()
            self._made.append(inbox)
            inbox.put(call)
        else:
            self._waiting.append(call)
        return call.future

    def close(self) -> None:
        """Threads end with what they are at. May be called again."""
        while self._made:
            self._made.pop().put(None)

    def __del__(self) -> None:
        self.close()

    def back(self, inbox: _Inbox, call: _Call, given: Any, failure: BaseException | None) -> None:
        """Called on the loop's thread when a call has ended on that of `inbox`."""
        while self._waiting:
            following = self._waiting.popleft()
            if not following.future.done():
                inbox.put(following)
                break
        else:
            self._idle.append(inbox)
        if call.future.done():
            return
        if failure is None:
            call.future.set_result(given)
        elif isinstance(failure, StopIteration):  # which no future can hold
            call.future.set_exception(RuntimeError(f"{call.function} raised StopIteration"))
        else:
            call.future.set_exception(failure)


def _work(inbox: _Inbox) -> None:
    while (call := inbox.get()) is not None:
        given, failure = None, None
        try:
            given = call.function(*call.args)
        except BaseException as error:  # raised where the call is waited for
            failure = error
        with suppress(RuntimeError):  # the loop has ended
            call.future.get_loop().call_soon_threadsafe(call.pool.back, inbox, call, given, failure)
        del call, given, failure
