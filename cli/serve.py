"""`searchloop serve`: the web UI and the API."""

from __future__ import annotations

import argparse

from agent.settings import load_environment
from web.compose import open_house
from web.serve import serve


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped."""
    return serve(open_house(load_environment()), args.host, args.port, open_browser=args.open)
