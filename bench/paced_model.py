"""A model that writes at a steady pace, as real ones do: Chat Completions as a stream.

Each delta is the time at which it was due, such as `1795228200.123456;`, by the clock that all
processes of a machine share, so that whoever reads it, however far away, knows how late it is.
Argument: {"deltas": how many an answer has, "seconds": how far apart, "at_once": how many have to
be asked for before the first one begins} as JSON. Prints its port, and `null` when all begin; ends
with standard input.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"x-request-id: req_5f0c3b1e9d7a4c26b8e1f3a5d7092b4c\r\n\r\n"
)
_EVENT = (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795228200,"model":"paced",'
    '"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}'
)
_NONE = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


def _chunk(data: str) -> bytes:
    text = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(text), text)


class Model:
    """What all connections have in common."""

    def __init__(self, deltas: int, seconds: float, at_once: int = 1) -> None:
        self.deltas = deltas
        self.seconds = seconds
        self._at_once = at_once
        self._waiting: list[_Connection] = []

    def ready(self, connection: _Connection) -> None:
        """Has it begin, when enough are there; each at a moment of its own."""
        self._waiting.append(connection)
        if len(self._waiting) >= self._at_once:
            loop = asyncio.get_running_loop()
            for n, each in enumerate(self._waiting):
                loop.call_later(self.seconds * n / len(self._waiting), each.begin)
            self._waiting.clear()
            if self._at_once > 1:
                print("null", flush=True)


class _Connection(asyncio.Protocol):
    """Answers on one connection."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._left = 0
        self._due = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A request is over when its JSON is; its end is all that is looked at."""
        self._rest += data
        if b"\r\n\r\n" not in self._rest:
            return
        if not self._rest.startswith(b"POST"):
            self._rest = b""
            self._transport.write(_NONE)
        elif self._rest.endswith(b"}"):
            self._rest = b""
            self._transport.write(_HEAD + _chunk(_EVENT % ('{"role":"assistant"}', "null")))
            self._model.ready(self)

    def begin(self) -> None:
        """The first delta."""
        self._left, self._due = self._model.deltas, time.time()
        self._step()

    def _step(self) -> None:
        if self._transport.is_closing():
            return
        if not self._left:
            last = _chunk(_EVENT % ("{}", '"stop"')) + _chunk("[DONE]")
            self._transport.write(last + b"0\r\n\r\n")
            return
        self._left -= 1
        end = r"\n\n" if self._left % 20 == 0 else " " if self._left % 4 == 0 else ""
        content = f'{{"content":"{self._due:.6f};{end}"}}'
        self._transport.write(_chunk(_EVENT % (content, "null")))
        self._due += self._model.seconds
        self._loop.call_later(max(0.0, self._due - time.time()), self._step)


async def serve(model: Model) -> None:
    """Answers until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(model), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Model(**json.loads(sys.argv[1]))))
