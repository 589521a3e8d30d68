"""What all parts of the server say to an ASGI client: types, bodies, JSON, and who has left.

Spec: https://asgi.readthedocs.io
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

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
