"""The whole server as users start it, but for the place that names lead to: a test's own server.

`python -m tests.web.whole_server JSON`, with {home, port, seconds?, end?, settings}: all names lead
to `port`, a page may take `seconds`, and after a signal the process ends within `end` seconds.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Self

from searchloop.agent.settings import Environment
from searchloop.compose import open_services
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.settings import SearchSettings
from searchloop.web.serve import WebServer, serve
from tests.search_backend.hostile import Internet

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-long-enough-0123"


def main(order: dict[str, Any]) -> int:
    """Serves until a signal."""
    home, net = Path(order["home"]), Internet(order["port"])
    seconds = order.get("seconds", 15)
    limits = FetchLimits(seconds=seconds, connect_seconds=seconds)
    guarded = partial(fetch, limits=limits, resolve=net.resolve, sockets=net.sockets)
    flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TOKEN": TOKEN, **order.get("settings", {})}
    services = open_services(Environment({"flag": flags}))
    own = SearchSettings.from_mapping(services.settings.env, home=home)
    services.search_app._make = lambda: create_app(own, fetch=guarded)
    WebServer.end_seconds = order.get("end", WebServer.end_seconds)
    return serve(services, port=0)


class WholeServer:
    """That process. Use with `with`."""

    def __init__(self, home: Path, port: int, **order: Any) -> None:
        told = json.dumps({"home": str(home), "port": port, **order})
        command = [sys.executable, "-m", "tests.web.whole_server", told]
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=ROOT)
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/", self.process.stdout.readline())
        assert found
        self.port = int(found[1])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of one answer; an answer without content is None."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            data = reply.read()
        assert reply.status < 400, data
        return json.loads(data) if data else None

    def end(self) -> int:
        """Ends it in order; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
