"""`searchloop search-backend`: the search backend alone, for this or any other client."""

from __future__ import annotations

import argparse
import sys

from agent.settings import Settings
from cli.main import OK
from cli.text import number
from search_backend.app import SHORT, create_app
from search_backend.callers import Quota
from search_backend.disk_cache import Disk
from search_backend.settings import Settings as BackendSettings
from search_backend.shapes import form_paths
from web.gate import Gate
from web.listen import access_to, listen
from web.uvicorn_server import run_server
from web.wsgi import OnThreads

_WORKERS = 64


def run(args: argparse.Namespace) -> int:
    """Does what the action says; raises ConfigError for a bad setting."""
    settings = Settings.load()
    own = BackendSettings.from_mapping(settings.env, home=settings.home)
    return _serve(args, settings, own) if args.action == "serve" else _clear_cache(own)


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
    backend = create_app(own, token=settings.token or None, quota=quota)
    app = OnThreads(backend, _WORKERS, backend.extensions.get(SHORT))
    access = access_to(listener, args.host, "", names=args.name, open_to_all=True)
    if warning:
        print(warning, file=sys.stderr)
    print(f"The search backend is running at http://{args.host}:{access.port}  (Ctrl-C stops it)")
    sys.stdout.flush()
    run_server(Gate(app, access, form_paths=form_paths()), listener)
    return OK
