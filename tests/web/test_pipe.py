"""A slow reader of a stream over real HTTP: its memory is bounded, and it gets every event."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from tests.web.house import make_house
from tests.web.test_serve import Running


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
        transports = [c.transport for c in running.serving.server_state.connections]
        held = sorted(each.get_write_buffer_size() for each in transports)
        assert held[-1] < 1_500_000
        assert numbers(sleeper, 161) == list(range(1, 162))
