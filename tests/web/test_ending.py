"""A process ends when it is told to, whatever page is being opened at that moment."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest

from bench.page_cost import PAGES
from tests.search_backend.hostile import HANG, answer, forever, serving
from tests.waiting import until

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-long-enough-0123"
# The whole server, but for the place that names lead to and for how long a page may stall.
SERVER = """
import sys
from functools import partial
from pathlib import Path
from searchloop.agent.settings import Environment
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.settings import Settings
from searchloop.web.compose import open_services
from searchloop.web.serve import WebServer, serve
from searchloop.web.wsgi import LazyApp
from tests.search_backend.hostile import Internet

home, net = Path(sys.argv[1]), Internet(int(sys.argv[2]))
limits = FetchLimits(seconds=900, connect_seconds=900)
guarded = partial(fetch, limits=limits, resolve=net.resolve, sockets=net.sockets)
flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TOKEN": sys.argv[3]}
services = open_services(Environment({"flag": flags}))
services.search_app = LazyApp(lambda: create_app(Settings(home, ()), fetch=guarded))
WebServer.end_seconds = float(sys.argv[4])
sys.exit(serve(services, port=0))
"""
ASKING = """
import asyncio, threading
from searchloop.agent.tools.backend import LocalBackend
begun = threading.Event()

def stalls(environ, start_response):
    begun.set()
    threading.Event().wait()

async def main():
    asked = asyncio.create_task(LocalBackend(stalls).ask("/api/open-page", {}))
    await asyncio.to_thread(begun.wait)
    asked.cancel()

asyncio.run(main())
print("over")
"""


def open_page(port: int, url: str) -> None:
    """Asks for a page, which may never come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with suppress(OSError, http.client.HTTPException):
        connection.request("POST", "/api/open-page", json.dumps({"url": url}), headers)
        connection.getresponse().read()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
def test_a_signal_ends_a_server_with_hostile_pages_in_flight(tmp_path: Path) -> None:
    """Pages that stall for minutes, and pages that are dear to read."""
    routes = {
        "/silent": lambda: iter([HANG]),
        "/drip": lambda: chain([answer(b"")], forever(b"x", pause=True)),
        **{f"/{n}": answer(page(60).encode()) for n, page in enumerate(PAGES.values())},
    }
    with serving(routes) as server:
        command = [sys.executable, "-c", SERVER, str(tmp_path), str(server.port), TOKEN, "2"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=ROOT) as process:
            try:
                assert process.stdout is not None
                found = re.search(r":(\d+)/", process.stdout.readline())
                assert found
                for path in routes:
                    url = f"http://a{path[1:]}.example{path}"
                    target = (int(found[1]), url)
                    threading.Thread(target=open_page, args=target, daemon=True).start()
                until(lambda: len(server.requests) == len(routes))
                process.send_signal(signal.SIGTERM)
                assert process.wait(90) == 0
            finally:
                process.kill()


def test_a_stalled_page_keeps_no_program_that_has_ended() -> None:
    """`ask` that was stopped is over at once: nobody waits for the page that it had asked for."""
    ran = subprocess.run(
        [sys.executable, "-c", ASKING], cwd=ROOT, capture_output=True, text=True, timeout=90
    )
    assert (ran.stdout, ran.returncode) == ("over\n", 0), ran.stderr
