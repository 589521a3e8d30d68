"""The HTTP client of the search backend: one loop a process, sessions that close by themselves."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.plugin import HttpRequest
from tests.fakes import FakeServer, Received, Reply

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


def test_a_client_keeps_its_connection_and_no_cookie() -> None:
    """Calls of two threads travel over one connection, and what a server sets is forgotten. To be
    collected with an open session would be an error here."""
    http, said = EngineHttp(), list[Received]()

    def hello(received: Received) -> Reply:
        said.append(received)
        return Reply(b"{}", headers={"set-cookie": "seen=1"})

    with FakeServer(hello) as server:
        request = HttpRequest("GET", server.url)
        run(http.send(request, "Tea"), timeout=10)
        again = http.send(request, "Tea")
        other = threading.Thread(target=run, args=(again,), kwargs={"timeout": 10})
        other.start()
        other.join()
        del http, again, other
        gc.collect()
    assert said[0].connection == said[1].connection
    assert "cookie" not in said[1].headers


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


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    """Servers fork their workers after the application was made, and used."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKS], timeout=60, check=False)
    assert done.returncode == 0
