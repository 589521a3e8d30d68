"""`searchloop search-backend serve` for `bench.search`, with values that no setting changes.

Arguments: how many engines are asked together, and the seconds for which answers are cached. No
engine has a rate here, so the load and not a plan's limit is what is measured.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from searchloop.agent.settings import Settings
from searchloop.cli import main, serve
from searchloop.search_backend.engines import brave
from searchloop.search_backend.settings import Settings as BackendSettings


def run(width: int, cache: int) -> int:
    """Serves on any free port until it is stopped."""

    def own(settings: Settings) -> BackendSettings:
        made = BackendSettings.from_mapping(settings.env, home=settings.home)
        return replace(made, fanout=width, cache_seconds=float(cache))

    serve._own = own
    object.__setattr__(brave.ENGINE, "rate", 0.0)
    return main.main(["search-backend", "serve", "--port", "0"])


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), int(sys.argv[2])))
