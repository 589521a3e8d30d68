"""`searchloop search-backend serve`: the search backend alone, for this or any other client."""

from __future__ import annotations

import argparse
import sys

from agent.settings import Settings
from cli.main import OK
from search_backend.app import create_app
from search_backend.settings import Settings as BackendSettings
from web.gate import Gate
from web.listen import access_to, listen
from web.serve import run_server
from web.wsgi import OnThreads

_WORKERS = 64


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped. Without a token only this machine may ask."""
    settings = Settings.load()
    listener, warning = listen(args.host, args.port, settings.token)
    own = BackendSettings.from_mapping(settings.env, home=settings.home)
    app = OnThreads(create_app(own), _WORKERS)
    access = access_to(listener, args.host, settings.token or "", open_to_all=not settings.token)
    if warning:
        print(warning, file=sys.stderr)
    print(f"The search backend is running at http://{args.host}:{access.port}  (Ctrl-C stops it)")
    sys.stdout.flush()
    run_server(Gate(app, access), listener)
    return OK
