"""Runs a WSGI application behind ASGI. Its answers must be short and whole: never a stream.

A request costs one hop to a thread and one back, half of what a general adapter costs.
Spec: PEP 3333; https://asgi.readthedocs.io
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote_to_bytes

from werkzeug.test import EnvironBuilder

from searchloop.agent.tools.backend import GONE, Wsgi
from searchloop.web.asgi import Header, Receive, Scope, Send, left, read_body

OWN = "searchloop."  # how the keys begin that our own code puts into a scope
_Answer = tuple[int, list[Header], bytes]


class OnThreads:
    """An ASGI application that calls `app` on one of `workers` threads, or on those of a pool.

    With GONE in its environ it is told when its client leaves.
    """

    def __init__(self, app: Wsgi, workers: int | ThreadPoolExecutor) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(workers, "wsgi") if isinstance(workers, int) else workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. Raises whatever `app` raises."""
        body = await read_body(receive)
        if body is None:
            return
        loop, gone = asyncio.get_running_loop(), Future[None]()
        leaving = loop.create_task(_told(receive, gone))
        try:
            status, headers, whole = await loop.run_in_executor(
                self._pool, self._call, {**scope, GONE: gone}, body
            )
        finally:
            leaving.cancel()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": whole})

    def _call(self, scope: Scope, body: bytes) -> _Answer:
        started: list[Any] = []
        written: list[bytes] = []

        def start_response(*head: Any) -> Callable[[bytes], None]:
            started[:] = head
            return written.append

        pieces = self._app(_environ(scope, body), start_response)
        try:
            written.extend(pieces)
        finally:
            getattr(pieces, "close", bool)()
        status, headers, *_ = started
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return int(status[:3]), raw, b"".join(written)


async def _told(receive: Receive, gone: Future[None]) -> None:
    await left(receive)
    gone.cancel()


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    server, client = scope.get("server") or ("", 0), scope.get("client") or ("", 0)
    own = {key: value for key, value in scope.items() if key.startswith(OWN)}
    own |= {
        # PEP 3333: bytes of the path, unquoted, seen as Latin-1.
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": scope.get("scheme", "http"),
    }
    return EnvironBuilder(
        method=scope["method"],
        headers=[
            (name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"]
        ],
        input_stream=io.BytesIO(body),
        content_length=len(body),
        multithread=True,
        environ_overrides=own,
    ).get_environ()
