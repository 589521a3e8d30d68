"""The client of the search backend: POST /api/web-search, /api/open-page and /api/forget, GET
/api/engines.

The agent never imports the backend. In one process it calls the backend's WSGI application on
threads, without a socket; with SEARCH_BACKEND_URL it sends the same requests over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple, Protocol
from wsgiref.util import setup_testing_defaults

from searchloop.agent.errors import ProviderError, ToolError
from searchloop.agent.settings import Settings
from searchloop.agent.transport.exchange import document_of, origin_of
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import NativeSearch
from searchloop.analysis.told import ended

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
GONE = "searchloop.gone"  # in the environ of WSGI: a Future that ends when the asker has left
_WORKERS = 128  # calls at once; a page that stalls keeps one for its deadline
_SECONDS = 60.0  # for one request elsewhere: a chain of engines may need that long


class Backend(Protocol):
    """A search backend. Raises ToolError when it cannot answer."""

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends POST with a payload, GET without; returns the JSON object of the answer."""


class _Threads(Executor):
    """Makes each call on a thread of its own, which keeps no program alive that has ended."""

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = Future[Any]()

        def work() -> None:
            with self._free:
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(fn(*args, **kwargs))
                    except BaseException as error:  # as every executor: it is the caller's
                        future.set_exception(error)

        threading.Thread(target=work, name="search", daemon=True).start()
        return future


class LocalBackend:
    """The backend inside this process, on threads."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app
        self._executor = _Threads(_WORKERS)

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        loop, gone = asyncio.get_running_loop(), Future[None]()
        try:
            status, data = await loop.run_in_executor(
                self._executor, call_wsgi, self._app, path, payload, gone
            )
        except asyncio.CancelledError:
            gone.cancel()
            raise
        return _checked(status, data)


class RemoteBackend:
    """The backend at SEARCH_BACKEND_URL."""

    def __init__(self, url: str, transport: Transport, token: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._transport = transport
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        origin = origin_of(url)
        self.here = origin is not None and origin.here

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        url = self._url + path
        given = () if payload is None else (json.dumps(payload).encode(), "POST", _SECONDS)
        try:
            status, data = await self._transport.fetch(url, self._headers, *given)
            return _checked(status, document_of(data))
        except ProviderError as error:
            what = f"The search backend at {self._url} does not answer."
            remedy = "Start it with `searchloop search-backend serve`, or unset SEARCH_BACKEND_URL."
            raise ToolError("backend_unreachable", what, remedy) from error


def call_wsgi(
    app: Wsgi, path: str, payload: Mapping[str, Any] | None, gone: Future[None] | None = None
) -> tuple[int, Any]:
    """Sends one JSON request to a WSGI application, without a socket; returns status and JSON.

    `gone` ends when nobody waits for the answer any more.
    """
    body = b"" if payload is None else json.dumps(payload).encode()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "GET" if payload is None else "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "localhost",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        GONE: gone,
    }
    setup_testing_defaults(environ)  # fills in what WSGI asks for besides
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
    message = f"The search backend answered {status}."
    known: dict[str, Any] = {"code": "backend_failed", "message": message, "remedy": ""}
    known |= error if isinstance(error, dict) else {}
    raise ToolError(str(known["code"]), str(known["message"]), str(known["remedy"]))


class ChatBackend(NamedTuple):
    """A backend that is told which chat asks, so that it can forget what that one brought.

    `settings` are those of the chat: a `temporary` one leaves nothing on any disk. With `offline`
    the backend asks nothing beyond this machine.
    """

    backend: Backend
    chat: str
    settings: Mapping[str, Any]
    offline: bool = False

    @property
    def here(self) -> bool:
        return getattr(self.backend, "here", True)

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if payload is not None:
            kept = {"temporary": self.settings.get("temporary"), "offline": self.offline}
            payload = {**payload, "chat": self.chat, **{k: True for k, v in kept.items() if v}}
        return await self.backend.ask(path, payload)


class NoBackend:
    """Stands for a missing search backend: every request raises ToolError."""

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        what = "There is no search backend."
        remedy = "Use searchloop.Agent, which brings one, or set SEARCH_BACKEND_URL."
        raise ToolError("no_backend", what, remedy)


def backend_for(settings: Settings, transport: Transport, app: Wsgi | None) -> Backend:
    """Returns the backend at SEARCH_BACKEND_URL if that is set, else the one in this process."""
    if settings.backend_url:
        return RemoteBackend(settings.backend_url, transport, settings.token)
    return LocalBackend(app) if app is not None else NoBackend()


_OWN = ("library://", "zim://")  # addresses that the backend opens without a network


async def stays_here(backend: Backend, url: str = "") -> bool:
    """Returns whether a search, or opening `url`, can reach nothing beyond this machine.

    Where the backend runs and what it says of its engines decides; what is unknown may leave.
    """
    if not getattr(backend, "here", True):
        return False
    if getattr(backend, "offline", False) or url.startswith(_OWN):
        return True
    with contextlib.suppress(ToolError, LookupError, TypeError, TimeoutError):
        known = await _engines(backend)
        asked = [e for e in known["engines"] if e["position"] or e.get("routed")]
        remote = [engine["remote"] for engine in asked]
        return known["offline"] is True or not (url or any(each is not False for each in remote))
    return False


async def _engines(backend: Backend) -> dict[str, Any]:
    async with asyncio.timeout(_PATIENCE):
        return await backend.ask("/api/engines")


def error_words(error: Any) -> str:
    """Returns an error of the contract, {code, message, remedy} or text, as one sentence."""
    if isinstance(error, Mapping):
        return f"{ended(str(error.get('message', '')))} {error.get('remedy', '')}".strip()
    return str(error or "")


_PATIENCE = 2.0  # seconds; the name is shown to the user, and no answer waits longer for it
_FRESH = 30.0


class PreferredEngine:
    """Asks which engine the backend uses first, and caches the answer for some seconds."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: tuple[float, str | None] = (0.0, None)

    async def name(self) -> str | None:
        """Returns the name of the first usable engine; None if the backend does not tell."""
        asked, engine = self._known
        if asked and time.monotonic() - asked < _FRESH:
            return engine
        with contextlib.suppress(ToolError, LookupError, TypeError, TimeoutError):  # not ours
            answer = await _engines(self._backend)
            usable = [e for e in answer["engines"] if e["available"] and e["position"]]
            first = min(usable, key=lambda e: e["position"], default={"name": None})
            self._known = (time.monotonic(), first["name"])
        return self._known[1]


def domain_limits(options: NativeSearch) -> dict[str, Any]:
    """Returns the domains that every request to the backend carries; empty lists are left out."""
    allowed, blocked = list(options.allowed_domains), list(options.blocked_domains)
    limits = {"allowed_domains": allowed, "blocked_domains": blocked}
    return {name: domains for name, domains in limits.items() if domains}
