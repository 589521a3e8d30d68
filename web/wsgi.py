"""A WSGI application behind ASGI, for one whose answers are short and whole: never for a stream.

A request costs one hop to a thread and one back. A general adapter has to allow for endless bodies
in both directions and makes a hop for each piece; here the gate has already read the body.

Spec: PEP 3333; https://asgi.readthedocs.io
"""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from web.asgi import Header, Receive, Scope, Send

MOST_BYTES = 2**20 + 1  # of a request; the application refuses what is longer than it likes
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_Answer = tuple[int, list[Header], bytes]


class Short(Protocol):
    """Answers to some requests without the application: the JSON of the answer, or None for what
    the application has to do."""

    def at_hand(self, method: str, path: str, body: bytes) -> bytes | None:
        """An answer that waits for nothing, so it needs no thread."""

    def worked_out(self, method: str, path: str, body: bytes) -> bytes | None:
        """An answer that takes its time."""


class LazyApp:
    """A WSGI application that is made at its first request."""

    def __init__(self, make: Callable[[], Wsgi]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._app: Wsgi | None = None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        with self._lock:
            app = self._app = self._app or self._make()
        return app(environ, start_response)

    def renew(self) -> None:
        """The next request meets an application made anew; those under way end in the old one."""
        with self._lock:
            self._app = None


class OnThreads:
    """An ASGI application that calls `app` on one of `workers` threads.

    Whoever has a `short` way for some requests is asked first.
    """

    def __init__(self, app: Wsgi, workers: int, short: Short | None = None) -> None:
        self._app = app
        self._short = short
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="wsgi")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; what `app` raises comes out of here."""
        body = await _whole(receive)
        if body is None:
            return
        status, headers, answer = self._known(scope, body) or await self._on_thread(scope, body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _known(self, scope: Scope, body: bytes) -> _Answer | None:
        if self._short is None:
            return None
        return _as_answer(self._short.at_hand(scope["method"], scope["path"], body))

    async def _on_thread(self, scope: Scope, body: bytes) -> _Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._call, scope, body)

    def _call(self, scope: Scope, body: bytes) -> _Answer:
        if self._short is not None:
            answer = _as_answer(self._short.worked_out(scope["method"], scope["path"], body))
            if answer is not None:
                return answer
        started: list[tuple[str, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], _fault: object = None
        ) -> Callable[[bytes], None]:
            started[:] = [(status, headers)]
            return written.append

        pieces = self._app(_environ(scope, body), start_response)
        try:
            written.extend(pieces)
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        status, headers = started[0]
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return int(status[:3]), raw, b"".join(written)


def _as_answer(body: bytes | None) -> _Answer | None:
    if body is None:
        return None
    size = str(len(body)).encode()
    return 200, [(b"content-type", b"application/json"), (b"content-length", size)], body


async def _whole(receive: Receive) -> bytes | None:
    """The body, up to MOST_BYTES; None when the client has gone."""
    body = bytearray()
    while len(body) < MOST_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    server, client = scope.get("server") or ("", 0), scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        # PEP 3333: bytes of the path, unquoted, seen as Latin-1.
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").upper().replace("-", "_")
        if name == "CONTENT_TYPE":
            environ[name] = value.decode("latin-1")
        elif name != "CONTENT_LENGTH":
            key = f"HTTP_{name}"
            known = environ.get(key)
            text = value.decode("latin-1")
            environ[key] = text if known is None else f"{known},{text}"
    return environ
