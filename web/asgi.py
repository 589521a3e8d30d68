"""What all parts of the server say to an ASGI client: types, bodies, JSON, and who has left.

Spec: https://asgi.readthedocs.io
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

# No proxy may keep events back.
EVENTS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
)


async def read_body(receive: Receive, most: float = float("inf")) -> bytes | None:
    """Returns the body, cut soon after `most` bytes, or None when the client has gone."""
    body = bytearray()
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


async def left(receive: Receive) -> None:
    """Returns once the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_left(work: Coroutine[Any, Any, T], receive: Receive) -> T | None:
    """Returns what `work` gives; stops it and returns None when the client hangs up."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(left(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def more(data: bytes) -> Message:
    """Returns a piece of a body that goes on."""
    return {"type": "http.response.body", "body": data, "more_body": True}


# JSON on one line.
as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


async def answer(send: Send, status: int, body: Any, headers: tuple[Header, ...] = ()) -> None:
    """Sends a whole answer: bytes with their headers, or anything else as JSON."""
    if not isinstance(body, bytes):
        body, headers = as_json(body).encode("utf-8", "replace"), (*headers, JSON)
    head = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


JSON: Header = (b"content-type", b"application/json")
