"""Runs `searchloop serve` and `search-backend`: the web UI with the API, or the backend alone."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
from dataclasses import replace
from typing import Any

from searchloop.agent.observe.logs import configure
from searchloop.agent.settings import Settings, load_environment
from searchloop.agent.tools.backend import Wsgi
from searchloop.cli import OK
from searchloop.cli.arguments import warn, whole
from searchloop.compose import open_services, unknown_settings
from searchloop.protocols.runs import ClientRuns, switch
from searchloop.protocols.tools import MCP_PATH, ClientTools
from searchloop.search_backend.api.app import Quota, create_app
from searchloop.search_backend.library import Library
from searchloop.search_backend.other_apis import error_at, form_paths
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Problem
from searchloop.web.gate import Gate, Refusal
from searchloop.web.listen import access_to, listen, run_server
from searchloop.web.serve import WebServer, serve
from searchloop.web.wsgi import OnThreads

_CLIENT_RATE = 120.0  # requests a minute of one client, where other machines can reach the backend
WORKERS = 128  # made when they are needed; a page that stalls keeps one for its deadline

OPEN = "open"  # the folder, inside the data folder, of a backend that needs no token
_CLOSED = (
    "Every user of this machine may search here, so your library stays closed: only searchloop's "
    "own documents can be found. Set SEARCHLOOP_TOKEN to open it to whoever has the token."
)

_log = logging.getLogger(__name__)


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_serve)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=whole(0, 65535), default=8321, help="0 = any free port")
    parser.add_argument("--open", action="store_true", help="open a browser")


def _backend_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    alone = actions.add_parser("serve", help="listen for search requests")
    alone.set_defaults(run=_serve_backend)
    alone.add_argument("--host", default="127.0.0.1", help="address to listen on")
    alone.add_argument("--port", type=whole(0, 65535), default=3002, help="port")
    alone.add_argument(
        "--name",
        action="append",
        default=[],
        help="a further host name by which it is called, e.g. host.docker.internal",
    )


def _serve(args: argparse.Namespace) -> int:
    """Serves the web UI and the API until it is stopped."""
    services = open_services(load_environment())
    configure(services.settings.env, services.secrets)
    if unknown := unknown_settings(services.settings.env):
        _log.warning("there are no such settings, so they have no effect: %s", ", ".join(unknown))
    return serve(services, args.host, args.port, open_browser=args.open)


def serve_mcp(args: argparse.Namespace) -> int:
    """Serves our tools to another program on stdin and stdout, or with the page over HTTP."""
    flags = {"SEARCHLOOP_CLIENT_SEARCH": args.search} if args.search else {}
    services = open_services(load_environment(flags))
    configure(services.settings.env, services.secrets)
    search = switch(services.settings)
    if args.http:
        return serve(services, port=args.port, on_start=_say_where)
    warn(f"searchloop speaks MCP on stdin and stdout; search: {search}. Ctrl-C ends it.")
    from searchloop.protocols.mcp import over_stdio

    with contextlib.closing(services), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(over_stdio(ClientTools(ClientRuns(services))))
    return OK


def _say_where(server: WebServer) -> None:
    warn(f"MCP is at {server.base}{MCP_PATH}, with the header `Authorization: Bearer TOKEN`;")
    warn("TOKEN is in the file `token` of SEARCHLOOP_HOME, whose place `searchloop doctor` names.")


def _serve_backend(args: argparse.Namespace) -> int:
    """Serves the search backend until it is stopped. Without a token only this machine may ask.

    Then all its users may, so the library and the cache of the user stay closed.
    """
    settings = Settings.load()
    own = SearchSettings.from_mapping(settings.env, home=settings.home)
    listener, warning = listen(args.host, args.port, settings.token)
    app = OnThreads(_backend(settings, own, Quota(_CLIENT_RATE) if warning else None), WORKERS)
    access = access_to(listener, args.host, "", names=args.name, open_to_all=True)
    if warning or not settings.token:
        print(warning or _CLOSED, file=sys.stderr)
    print(f"The search backend is running at http://{args.host}:{access.port}  (Ctrl-C stops it)")
    sys.stdout.flush()
    run_server(Gate(app, access, form_paths=form_paths(), refusal_body=_refusal_body), listener)
    return OK


def _refusal_body(path: str, refusal: Refusal) -> dict[str, Any] | None:
    problem = Problem(refusal.code, refusal.message, refusal.remedy)
    return error_at(path, refusal.status, problem)


def _backend(settings: Settings, own: SearchSettings, quota: Quota | None) -> Wsgi:
    """Returns the backend; without a token it has a folder of its own, and our documents alone."""
    if settings.token:
        return create_app(own, token=settings.token, quota=quota)
    closed = replace(own, home=own.home / OPEN)
    return create_app(closed, quota=quota, library=Library(closed.home, most_pages=0))


ARGUMENTS = {"serve": _serve_arguments, "search-backend": _backend_arguments}
