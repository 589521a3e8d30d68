"""`searchloop search-backend serve`: the search backend alone, for this or any other client."""

from __future__ import annotations

import argparse
import sys

from agent.settings import Settings
from cli.main import OK
from search_backend.app import create_app
from search_backend.callers import Quota
from search_backend.settings import Settings as BackendSettings
from search_backend.shapes import form_paths
from web.gate import Gate
from web.listen import access_to, listen
from web.serve import run_server
from web.wsgi import OnThreads

_WORKERS = 64


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped. Without a token only this machine may ask.

    The application checks the token, so that a refusal has the shape that the client knows.
    """
    settings = Settings.load()
    listener, warning = listen(args.host, args.port, settings.token)
    own = BackendSettings.from_mapping(settings.env, home=settings.home)
    quota = Quota(own.client_rate) if warning else None
    app = OnThreads(create_app(own, token=settings.token or None, quota=quota), _WORKERS)
    access = access_to(listener, args.host, "", names=args.name, open_to_all=True)
    if warning:
        print(warning, file=sys.stderr)
    print(f"The search backend is running at http://{args.host}:{access.port}  (Ctrl-C stops it)")
    sys.stdout.flush()
    run_server(Gate(app, access, form_paths=form_paths()), listener)
    return OK
