"""`searchloop serve`: the web UI and the API."""

from __future__ import annotations

import argparse

from agent.logs import configure
from agent.settings import load_environment
from web.compose import open_house
from web.serve import serve


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped."""
    house = open_house(load_environment())
    configure(house.settings.env, house.secrets)
    return serve(house, args.host, args.port, open_browser=args.open)
