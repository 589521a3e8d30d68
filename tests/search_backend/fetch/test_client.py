"""The HTTP client of the search backend: one loop a process, sessions that close by themselves."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import pytest

from searchloop.search_backend.fetch.client import Client, new_session, run

_FORKS = """
import os
from searchloop.search_backend.fetch.client import run
async def here():
    return os.getpid()
assert run(here(), timeout=10) == os.getpid()
child = os.fork()
if not child:
    os._exit(0 if run(here(), timeout=10) == os.getpid() else 1)
assert os.waitpid(child, 0)[1] == 0
assert run(here(), timeout=10) == os.getpid()
"""


class _Hello(BaseHTTPRequestHandler):
    """Says over which connection it was asked, and which cookie came."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        said = f"{self.client_address[1]} {self.headers.get('cookie')}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.send_header("set-cookie", "seen=1")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args: object) -> None:
        """Nothing to standard error."""


@pytest.fixture
def url() -> Iterator[str]:
    """Where such a server listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hello) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


async def _ask(client: Client, url: str) -> str:
    async with (await client.session()).get(url) as answer:
        return await answer.text()


def test_a_client_keeps_its_connection_and_no_cookie(url: str) -> None:
    """Two calls from two threads travel over one connection; what a server sets is forgotten."""
    client = Client(lambda: new_session(aiohttp.TCPConnector()))
    said = [run(_ask(client, url), timeout=10)]
    other = threading.Thread(target=lambda: said.append(run(_ask(client, url), timeout=10)))
    other.start()
    other.join()
    assert said[0] == said[1]
    assert said[0].endswith(" None")
    client.close()
    assert run(_ask(client, url), timeout=10) != said[0]
    client.close()


def test_a_client_that_nobody_holds_closes_its_session(url: str) -> None:
    """A session that is collected open would complain, and warnings are errors here."""
    run(_ask(Client(lambda: new_session(aiohttp.TCPConnector())), url), timeout=10)
    gc.collect()


def test_the_coroutine_ends_with_the_time_of_its_caller() -> None:
    """It is cancelled, so that it does not go on for nobody."""
    ended = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        run(wait(), timeout=0.05)
    assert ended.wait(10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    """Servers fork their workers after the application was made, and used."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKS], timeout=60, check=False)
    assert done.returncode == 0
