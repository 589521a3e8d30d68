"""The way to the search backend: its HTTP contract, in this process or elsewhere.

The agent never imports the backend. In one process it is handed the backend's WSGI application and
calls it on a pool of threads, without a socket; with SEARCH_BACKEND_URL the same requests go out
over HTTP. Contract: POST /api/web-search, POST /api/open-page, GET /api/engines.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol

from agent.errors import ProviderError, ToolError
from agent.settings import Settings
from agent.transport import Transport

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_WORKERS = 128  # made when they are needed; a page that stalls keeps one for its deadline
_SECONDS = 60.0  # for one request elsewhere: a chain of engines may need that long


class Backend(Protocol):
    """Sends one request of the contract; raises ToolError when it cannot be answered."""

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """POST with a payload, GET without."""


class LocalBackend:
    """The backend inside this process. Blocking work runs on threads of its own."""

    def __init__(self, app: Wsgi, executor: Executor | None = None) -> None:
        self._app = app
        self._executor = executor or ThreadPoolExecutor(_WORKERS, thread_name_prefix="search")

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See `Backend.ask`."""
        loop = asyncio.get_running_loop()
        status, data = await loop.run_in_executor(
            self._executor, call_wsgi, self._app, path, payload
        )
        return _checked(status, data)


class RemoteBackend:
    """The backend at SEARCH_BACKEND_URL."""

    def __init__(self, url: str, transport: Transport, token: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._transport = transport
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See `Backend.ask`."""
        url = self._url + path
        try:
            if payload is None:
                return _checked(200, await self._transport.get_json(url, self._headers))
            post = self._transport.post_json(url, payload, self._headers, _SECONDS)
            return _checked(*await post)
        except ProviderError as error:
            raise ToolError(
                "backend_unreachable",
                f"The search backend at {self._url} does not answer.",
                "Start it with `searchloop search-backend serve`, or unset SEARCH_BACKEND_URL.",
            ) from error


def call_wsgi(app: Wsgi, path: str, payload: Mapping[str, Any] | None) -> tuple[int, Any]:
    """One JSON request to a WSGI application, without a socket."""
    body = b"" if payload is None else json.dumps(payload).encode()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "GET" if payload is None else "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    answer: dict[str, str] = {}

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Callable[..., None]:
        answer["status"] = status
        return lambda data: None

    parts = app(environ, start_response)
    try:
        data = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close:
            close()
    return int(answer["status"].split()[0]), json.loads(data)


def _checked(status: int, data: Any) -> dict[str, Any]:
    if status < 400 and isinstance(data, dict):
        return data
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        error = {"code": "backend_failed", "message": f"The search backend answered {status}."}
    raise ToolError(
        str(error.get("code", "backend_failed")),
        str(error.get("message", f"The search backend answered {status}.")),
        str(error.get("remedy", "")),
    )


class NoBackend:
    """Stands where no search backend was given; says so when one is needed."""

    async def ask(self, path: str, payload: Any = None) -> dict[str, Any]:
        """Raises ToolError."""
        raise ToolError(
            "no_backend",
            "There is no search backend.",
            "Pass search_backend=create_app() from search_backend.app, or set SEARCH_BACKEND_URL.",
        )


def backend_for(settings: Settings, transport: Transport, app: Wsgi | None) -> Backend:
    """The backend at SEARCH_BACKEND_URL if that is set, else the one in this process."""
    if settings.backend_url:
        return RemoteBackend(settings.backend_url, transport, settings.token)
    return LocalBackend(app) if app is not None else NoBackend()


def error_words(error: Any) -> str:
    """An error of the contract as one sentence: {code, message, remedy}, or plain text."""
    if isinstance(error, Mapping):
        return f"{error.get('message', '')} {error.get('remedy', '')}".strip()
    return str(error or "")
