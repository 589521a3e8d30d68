"""Pages that stall, wherever they stall, keep nobody waiting who reads another."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import uvicorn

from searchloop.cli.serve import WORKERS as THREADS
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.settings import SearchSettings
from searchloop.web.wsgi import OnThreads
from tests.conftest import linux_only
from tests.search_backend.hostile import HANG, HostileServer, Internet, answer, forever
from tests.waiting import until

CLOGGED = "93.184.216.35"
TEXT = "<p>Some words about the harbour and how it was built in three stages.</p>"
LARGE = f"<title>Harbour</title><main>{TEXT * 3000}</main>".encode()
# Where the pages stall, by the beginning of their host names.
PLACES = ("name", "connect", "handshake", "silent", "head", "body", "drip", "extraction")
REACHING = frozenset({"silent", "head", "body", "drip", "extraction"})


class Stalling(Internet):
    """Names that are never found, and an address that never answers."""

    def __init__(self, port: int, clogged: int) -> None:
        super().__init__(port)
        self.clogged = clogged
        self.over = threading.Event()

    def resolve(self, host: str, port: int) -> Sequence[str]:
        """Nothing for name*, CLOGGED for connect*."""
        found = super().resolve(host, port)
        if host.startswith("name"):
            self.over.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [CLOGGED] if host.startswith("connect") else found

    def reach(self, address: str, port: int) -> tuple[str, int]:
        """Where nothing comes back, for CLOGGED."""
        to = super().reach(address, port)
        return ("127.0.0.1", self.clogged) if address == CLOGGED else to


@contextmanager
def clogged() -> Iterator[socket.socket]:
    """A listener that takes no further connection, as its queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener


@contextmanager
def served(net: Internet, home: Path) -> Iterator[int]:
    """The backend as it serves by itself, on as many threads; the port it listens at."""
    # Nothing is given up before the test is over, however long it takes on a slow machine.
    limits = FetchLimits(seconds=120, connect_seconds=120)
    guarded = partial(fetch, limits=limits, resolve=net.resolve, sockets=net.sockets)
    app = create_app(SearchSettings(home, ()), fetch=guarded, library=Library(home, dict))
    config = uvicorn.Config(OnThreads(app, THREADS), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def opened(port: int, url: str, client: str = "127.0.0.1") -> Any:
    """The answer to the request of a client for a page, over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, 200, source_address=(client, 0))
    with closing(connection):
        headers = {"content-type": "application/json"}
        connection.request("POST", "/api/open-page", json.dumps({"url": url}), headers)
        return json.loads(connection.getresponse().read())


def address(number: int) -> str:
    """Of the stalled page of this number, each on a site of its own."""
    place = PLACES[number % len(PLACES)]
    scheme = "https" if place == "handshake" else "http"
    return f"{scheme}://{place}{number}.example/{place}"


@contextmanager
def stopped_worker() -> Iterator[int]:
    """The process that reads large pages hangs; its id."""
    about = {"url": "https://e.example/", "content_type": "text/html"}
    until(lambda: WORKERS.read(LARGE, **about).status == "ok")  # a slow machine may give one up
    pid = WORKERS._idle[-1]._process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@linux_only
def test_fifty_stalled_pages_leave_a_fresh_read_alone(tmp_path: Path) -> None:
    """At a name, a connection, a handshake, in a head, in a body, in extraction: somebody else who
    opens another page over HTTP has it while they still wait."""
    with (
        HostileServer() as server,
        clogged() as full,
        ThreadPoolExecutor(50) as clients,
        stopped_worker() as pid,
    ):
        net = Stalling(server.port, full.getsockname()[1])
        server.routes |= {
            "/silent": lambda: iter([HANG]),
            "/head": lambda: iter([b"HTTP/1.1 200 OK\r\n", HANG]),
            "/body": lambda: iter([answer(b"hello", "Content-Length: 10"), HANG]),
            "/drip": lambda: chain([answer(b"")], forever(b"x", pause=True)),
            "/extraction": answer(LARGE),
            "/fresh": answer(TEXT.encode() * 30),
        }
        stalled: list[Future[Any]] = []
        with served(net, tmp_path) as port:
            try:
                stalled += [clients.submit(opened, port, address(n)) for n in range(50)]
                until(lambda: len(net.looked_up) == 50)
                asked = sum(PLACES[n % len(PLACES)] in REACHING for n in range(50))
                until(lambda: len(server.requests) == asked)
                page = opened(port, "http://fresh.example/fresh", "127.0.0.2")
                waiting = sum(not one.done() for one in stalled)
            finally:
                net.over.set()
                full.close()
                server.stop()
                with suppress(ProcessLookupError):  # its time may be over before
                    os.kill(pid, signal.SIGKILL)
                until(lambda: all(one.done() for one in stalled))
    assert page["status"] == "ok"
    assert "three stages" in page["content"]
    assert waiting >= 40, [one.result() for one in stalled if one.done()][:3]
