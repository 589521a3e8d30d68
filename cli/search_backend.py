"""`searchloop search-backend`: the search backend alone, for this or any other client."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from agent.errors import AgentError
from agent.saved_files import SavedFiles
from agent.settings import Settings
from cli.main import OK
from cli.text import number
from search_backend.callers import Quota
from search_backend.disk_cache import Disk
from search_backend.errors import SearchBackendError
from search_backend.library import Library
from search_backend.search import Chain
from search_backend.settings import Settings as BackendSettings
from search_backend.shapes import error_at, form_paths
from search_backend.short import ShortWay
from search_backend.types import Problem
from web.asgi import Refusal
from web.gate import Gate
from web.listen import access_to, listen
from web.uvicorn_server import run_server
from web.wsgi import LazyApp, OnThreads, Wsgi

WORKERS = 128  # made when they are needed; a page that stalls keeps one for its deadline

_log = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> int:
    """Does what the action says; raises ConfigError for a bad setting."""
    settings = Settings.load()
    own = _own(settings)
    return _serve(args, settings, own) if args.action == "serve" else _clear_cache(own)


def _own(settings: Settings) -> BackendSettings:
    return BackendSettings.from_mapping(settings.env, home=settings.home)


def _clear_cache(own: BackendSettings) -> int:
    # Whatever size is set now: there may be a file from before it was switched off.
    count = Disk(own.home, 2**30).clear()
    print(f"{number(count, 'kept item')} forgotten")
    return OK


def _serve(args: argparse.Namespace, settings: Settings, own: BackendSettings) -> int:
    """Serves until it is stopped. Without a token only this machine may ask.

    The application checks the token, so that a refusal has the shape that the client knows.
    """
    listener, warning = listen(args.host, args.port, settings.token)
    quota = Quota(own.client_rate) if warning else None
    backend = Backend(settings, own, quota)
    app = OnThreads(backend, WORKERS, backend)
    access = access_to(listener, args.host, "", names=args.name, open_to_all=True)
    if warning:
        print(warning, file=sys.stderr)
    print(f"The search backend is running at http://{args.host}:{access.port}  (Ctrl-C stops it)")
    sys.stdout.flush()
    run_server(Gate(app, access, form_paths=form_paths(), worded=_worded), listener)
    return OK


def _worded(path: str, refusal: Refusal) -> dict[str, Any] | None:
    problem = Problem(refusal.code, refusal.message, refusal.remedy)
    return error_at(path, refusal.status, problem)


class Backend:
    """The backend as it is set up now: a WSGI application and the short way to its searches.

    It is made anew when another process has saved a key or a setting. Host, port, token and quota
    stay as they were at the start. The framework is loaded by the first request that needs it.
    """

    def __init__(self, settings: Settings, own: BackendSettings, quota: Quota | None) -> None:
        self._token = settings.token or None
        self._quota = quota
        self._files = SavedFiles(settings.home)
        self._lock = threading.Lock()
        self._use(own)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """See PEP 3333."""
        self._look_again()
        return self._app(environ, start_response)

    def at_hand(self, method: str, path: str, body: bytes) -> bytes | None:
        """See `web.wsgi.Short`."""
        self._look_again()
        return self._short.at_hand(method, path, body)

    def worked_out(self, method: str, path: str, body: bytes) -> bytes | None:
        """See `web.wsgi.Short`."""
        return self._short.worked_out(method, path, body)

    def _use(self, own: BackendSettings) -> None:
        library, disk = Library(own.home), Disk(own.home, own.cache_bytes)
        chain = Chain(own, library, disk=disk)
        token, quota = self._token, self._quota

        def make() -> Wsgi:
            create = import_module("search_backend.app").create_app
            app: Wsgi = create(
                own, token=token, quota=quota, library=library, chain=chain, disk=disk
            )
            return app

        self._app = LazyApp(make)
        # Whoever must show a token or is counted goes through the application.
        self._short = ShortWay(chain if token is None and quota is None else None)

    def _look_again(self) -> None:
        with self._lock:
            if not self._files.changed():
                return
            try:
                self._use(_own(Settings.load()))
            except (AgentError, SearchBackendError) as error:
                _log.warning("what was saved is not used: %s %s", error.message, error.remedy)
