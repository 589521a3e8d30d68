"""The whole server as users start it, but for the place that names lead to: a test's own server.

`python -m tests.web.whole_server JSON`, with {port, seconds?, end?}: all names lead to `port`, a
page may take `seconds`, and after a signal the process ends within `end` seconds.
"""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from searchloop.agent.settings import load_environment
from searchloop.compose import open_services
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.settings import SearchSettings
from searchloop.web.serve import WebServer, serve
from tests.crash.hosts import Host
from tests.search_backend.hostile import Internet


def main(order: dict[str, Any]) -> int:
    """Serves until a signal."""
    net, seconds = Internet(order["port"]), order.get("seconds", 15)
    limits = FetchLimits(seconds=seconds, connect_seconds=seconds)
    guarded = partial(fetch, limits=limits, resolve=net.resolve, sockets=net.sockets)
    services = open_services(load_environment())
    own = SearchSettings.from_mapping(services.settings.env, home=services.settings.home)
    services.search_app._make = lambda: create_app(own, fetch=guarded)
    WebServer.end_seconds = order.get("end", WebServer.end_seconds)
    return serve(services, port=0)


class WholeServer(Host):
    """That process. Use with `with`."""

    def __init__(self, home: Path, port: int, *, settings: Any = (), **order: Any) -> None:
        self.command = ("-m", "tests.web.whole_server", json.dumps({"port": port, **order}))
        super().__init__(home, **dict(settings))

    def told(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer, which is no error."""
        status, data = self.ask(method, path, body)
        assert status < 400, data
        return data

    def end(self) -> int:
        """Ends it in order; returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(90)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
