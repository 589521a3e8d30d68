"""What is written past ASGI: the same bytes on the wire, and nobody waits for a slow reader."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.log import EventLog
from tests.waiting import until
from tests.web.house import make_house
from tests.web.test_serve import Running
from web.frames import Frames
from web.hub import Hub


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A server that is stopped after the test."""
    server = Running(make_house(tmp_path))
    yield server
    server.stop()


def open_stream(running: Running, session: str, version: str, view: str) -> socket.socket:
    """A connection that has asked for the session's events, with little room for what comes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", running.serving.access.port))
    client.settimeout(90)
    client.sendall(
        f"GET /api/sessions/{session}/events?view={view} HTTP/{version}\r\n"
        f"Host: 127.0.0.1:{running.serving.access.port}\r\n"
        f"Authorization: Bearer {running.serving.access.token}\r\n\r\n".encode()
    )
    return client


def numbers(client: socket.socket, last: int) -> list[int]:
    """The numbers of the events that come, up to this one, read by a strict client."""
    response = http.client.HTTPResponse(client)
    response.begin()
    found: list[int] = []
    for line in response:
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:])["seq"])
            if found[-1] == last:
                break
    return found


@pytest.mark.parametrize(
    ("version", "view"), [("1.1", "events"), ("1.1", "page"), ("1.0", "events")]
)
def test_a_reader_that_sleeps_is_bounded_and_gets_all(
    version: str, view: str, running: Running
) -> None:
    """It reads nothing while 4 MB come: the server holds a fraction of that, the one beside it has
    everything long since, and when it wakes it gets each event once, in order, well framed."""
    log = running.house.log
    session = log.create_session(model="m:x").id
    sleeper = open_stream(running, session, version, view)
    awake = open_stream(running, session, "1.1", view)
    with contextlib.closing(sleeper), contextlib.closing(awake):
        until(lambda: len(running.serving.app.streams) == 2)
        log.append(session, [("notice", {"message": "first"})])
        for _ in range(40):
            log.append(session, [("notice", {"message": "x" * 25_000})] * 4)
        assert numbers(awake, 161) == list(range(1, 162))
        transports = [c.transport for c in running.serving._server.server_state.connections]
        held = sorted(each.get_write_buffer_size() for each in transports)
        assert held[-1] < 1_500_000
        assert numbers(sleeper, 161) == list(range(1, 162))


class FakePipe:
    """A connection that takes bytes while it is told to."""

    def __init__(self) -> None:
        self.open, self.data = True, b""

    def ready(self) -> bool:
        """See Pipe."""
        return self.open

    def write(self, framed: bytes) -> None:
        """See Pipe."""
        self.data += framed


def test_a_full_pipe_gives_its_place_back(tmp_path: Path) -> None:
    """Who attends is handed each frame; one whose pipe is full learns from where to go on; all
    learn when the session is gone."""

    async def scenario() -> None:
        log = EventLog(tmp_path / "s.sqlite3")
        session = log.create_session(model="m").id
        hub = Hub(log, session, Frames(), 0)
        slow, quick = FakePipe(), FakePipe()
        places: list[Any] = [asyncio.create_task(hub.attend(pipe)) for pipe in (slow, quick)]
        await asyncio.sleep(0)
        log.append(session, [("notice", {"n": 1})])
        await hub.news()
        assert slow.data == quick.data
        assert slow.data.endswith(b"\n\n\r\n")
        slow.open = False
        log.append(session, [("notice", {"n": 2})])
        assert await places[0] == 1
        assert b'"n":2' in hub.since(1)
        assert b'"n":2' in quick.data
        assert b'"n":2' not in slow.data
        log.delete_session(session)
        assert await places[1] == 2
        assert hub.ended
        log.close()

    asyncio.run(scenario())
