"""A process ends when it is told to, whatever page is being opened at that moment."""

from __future__ import annotations

import asyncio
import http.client
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from bench.page_cost import PAGES
from searchloop.agent.tools.backend import GONE, LocalBackend
from searchloop.web.wsgi import OnThreads
from tests.crash.hosts import ROOT
from tests.search_backend.hostile import HANG, answer, forever, serving
from tests.waiting import until
from tests.web.test_wsgi import SCOPE
from tests.web.whole_server import WholeServer

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


def open_page(server: WholeServer, url: str) -> None:
    """Asks for a page, which may never come."""
    with suppress(OSError, http.client.HTTPException, ValueError):
        server.ask("POST", "/api/open-page", {"url": url})


def test_a_signal_ends_a_server_with_hostile_pages_in_flight(tmp_path: Path) -> None:
    """Pages that stall for minutes, and pages that are dear to read."""
    routes = {
        "/silent": lambda: iter([HANG]),
        "/drip": lambda: chain([answer(b"")], forever(b"x", pause=True)),
        **{f"/{n}": answer(page(60).encode()) for n, page in enumerate(PAGES.values())},
    }
    with (
        serving(routes) as pages,
        ThreadPoolExecutor(len(routes)) as pool,
        WholeServer(tmp_path, pages.port, seconds=900, end=0.2) as server,
    ):
        for path in routes:
            pool.submit(open_page, server, f"http://a{path[1:]}.example{path}")
        until(lambda: len(pages.requests) == len(routes))
        assert server.end() == 0


def test_a_stalled_page_keeps_no_program_that_has_ended() -> None:
    """`ask` that was stopped is over at once: nobody waits for the page that it had asked for."""
    ran = subprocess.run(
        [sys.executable, "-c", ASKING], cwd=ROOT, capture_output=True, text=True, timeout=90
    )
    assert (ran.stdout, ran.returncode) == ("over\n", 0), ran.stderr


@pytest.mark.parametrize("way", ["in this process", "over HTTP"])
def test_a_backend_learns_that_nobody_waits(way: str) -> None:
    """While it works: by a Stop in the same program, and by a connection that ends."""
    begun, ended = threading.Event(), threading.Event()

    def reads(environ: Any, start_response: Any) -> Any:
        environ[GONE].add_done_callback(lambda _: ended.set())
        begun.set()
        assert ended.wait(60)
        start_response("200 OK", [])
        return [b"{}"]

    async def stopped() -> None:
        if way == "over HTTP":
            sent = [{"type": "http.request"}, {"type": "http.disconnect"}]

            async def receive() -> Any:
                if len(sent) == 1:
                    await asyncio.to_thread(begun.wait, 60)
                return sent.pop(0)

            async def send(message: Any) -> None:
                pass

            await OnThreads(reads, 1)(SCOPE, receive, send)
            return
        asked = asyncio.create_task(LocalBackend(reads).ask("/api/open-page", {}))
        await asyncio.to_thread(begun.wait, 60)
        asked.cancel()

    asyncio.run(stopped())
    assert ended.wait(60)
