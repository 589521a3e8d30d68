"""The client of the search backend: POST /api/web-search, /api/open-page and /api/forget, GET
/api/engines.

The agent never imports the backend. In one process it calls the backend's WSGI application on
threads, without a socket; with SEARCH_BACKEND_URL it sends the same requests over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from searchloop.agent.errors import ProviderError, ToolError
from searchloop.agent.settings import Settings
from searchloop.agent.transport.exchange import document_of, origin_of
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import NativeSearch
from searchloop.analysis.told import ended

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
GONE = "searchloop.gone"  # in the environ of WSGI: a Future that ends when the asker has left
_SECONDS = 60.0  # for one request elsewhere: a chain of engines may need that long


class Backend(Protocol):
    """A search backend. Raises ToolError when it cannot answer."""

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends POST with a payload, GET without; returns the JSON object of the answer."""


class LocalBackend:
    """The backend inside this process, on threads."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        done, gone = Future[tuple[int, Any]](), Future[None]()
        done.set_running_or_notify_cancel()

        def work() -> None:
            try:
                done.set_result(call_wsgi(self._app, path, payload, gone))
            except BaseException as error:  # it is the caller's
                done.set_exception(error)

        # A thread of its own keeps no program alive that has ended.
        threading.Thread(target=work, name="search", daemon=True).start()
        try:
            status, data = await asyncio.wrap_future(done)
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
    from werkzeug.test import EnvironBuilder, run_wsgi_app

    method = "GET" if payload is None else "POST"
    environ = EnvironBuilder(path, method=method, json=payload).get_environ()
    parts, status, _ = run_wsgi_app(app, {**environ, GONE: gone}, buffered=True)
    return int(status.split()[0]), json.loads(b"".join(parts))


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


async def first_engine(backend: Backend) -> str | None:
    """Returns the name of the engine that the backend uses first; None if it does not tell."""
    with contextlib.suppress(ToolError, LookupError, TypeError, TimeoutError):  # it is not ours
        engines = (await _engines(backend))["engines"]
        usable = [e for e in engines if e["available"] and e["position"]]
        return str(min(usable, key=lambda e: e["position"])["name"]) if usable else None
    return None


def domain_limits(options: NativeSearch) -> dict[str, Any]:
    """Returns the domains that every request to the backend carries; empty lists are left out."""
    allowed, blocked = list(options.allowed_domains), list(options.blocked_domains)
    limits = {"allowed_domains": allowed, "blocked_domains": blocked}
    return {name: domains for name, domains in limits.items() if domains}
