"""MCP on stdin and stdout, in a process of its own: what leaves it, and how its runs end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.hosts import ROOT
from tests.fakes import FakeServer
from tests.waiting import until
from tests.web.faces import MODEL, model
from tests.web.test_faces_ending import MCP, questions
from tests.web.test_faces_offline import TOOLS, Outside, greedy

pytestmark = pytest.mark.integration

# The server, which tells each address that it connects to and each name that it looks up.
WATCHED = """
import os, runpy, sys
def look(event, given):
    if event in ("socket.connect", "socket.getaddrinfo"):
        found = given[1] if event == "socket.connect" else given
        os.write(2, f"LEFT {found[:2]}\\n".encode())
sys.addaudithook(look)
sys.argv[1:1] = ["mcp", "serve"]
runpy.run_module("searchloop.cli", run_name="__main__")
"""
SWITCHES: list[tuple[list[str], dict[str, str], bool]] = [
    ([], {"SEARCHLOOP_CLIENT_SEARCH": "off"}, False),
    (["--search", "offline"], {}, False),
    ([], {"SEARCHLOOP_OFFLINE": "1"}, False),
    (["--search", "auto"], {}, True),  # which shows that the test sees what leaves
]


class Program:
    """A client that starts our server, and writes and reads a line at a time."""

    def __init__(self, home: Path, server: FakeServer, *flags: str, **settings: str) -> None:
        own = {"SEARCHLOOP_HOME": str(home), "OPENAI_CHAT_BASE_URL": f"{server.url}/v1"}
        self.errors = home / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", WATCHED, *flags],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], **own, **settings},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
        about["clientInfo"] |= {"version": "1"}
        self.ask(0, "initialize", about)
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        """Writes a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Sends a request, and waits for its answer."""
        self.send(id=number, method=method, params=params)
        assert self.process.stdout is not None
        while told := json.loads(self.process.stdout.readline() or "null"):
            if told.get("id") == number:
                return dict(told)
        raise AssertionError(self.errors.read_text())

    @property
    def left(self) -> list[str]:
        """Where it went, but for its model."""
        return [each for each in self.errors.read_text().splitlines() if each.startswith("LEFT")]


@contextmanager
def started(home: Path, server: FakeServer, *flags: str, **settings: str) -> Iterator[Program]:
    """A server that is gone in the end."""
    home.mkdir(exist_ok=True)
    program = Program(home, server, *flags, **settings)
    with program.process:
        try:
            yield program
        finally:
            program.process.kill()


@pytest.mark.parametrize(("flags", "settings", "leaves"), SWITCHES)
def test_nothing_leaves_unless_the_switch_lets_it(
    tmp_path: Path, flags: list[str], settings: dict[str, str], leaves: bool
) -> None:
    """Each tool, with a search engine and a page to ask; only the model of this machine is asked.
    Nothing but the protocol is on stdout."""
    with Outside() as outside, FakeServer(greedy) as server:
        engines = {"SEARXNG_URL": outside.url, "SEARCH_ENGINES": "searxng,library"}
        with started(tmp_path, server, *flags, **engines, **settings) as program:
            for number, (name, arguments) in enumerate(TOOLS.items(), 1):
                told = program.ask(number, "tools/call", {"name": name, "arguments": arguments})
                assert "result" in told, (name, told)
            to_model = f"('127.0.0.1', {server.url.rpartition(':')[2]})"
            elsewhere = [each for each in program.left if to_model not in each]
        assert bool(elsewhere) == bool(outside.met) == leaves, elsewhere
        assert any("far.example" in each for each in elsewhere) == leaves


@pytest.mark.parametrize("way", ["cancelled", "closed", "terminated", "killed"])
def test_a_run_ends_with_its_client_or_its_server(tmp_path: Path, way: str) -> None:
    """The model's connection is closed soon after; the same server, or a new one on the same home,
    has no chat of it, asks nothing again by itself, and answers the next question."""
    with FakeServer(model) as server, started(tmp_path, server) as program:
        program.send(id=1, method="tools/call", params=MCP["params"])
        until(lambda: bool(questions(server)))
        if way == "cancelled":
            program.send(method="notifications/cancelled", params={"requestId": 1})
        else:
            assert program.process.stdin is not None
            {
                "closed": program.process.stdin.close,
                "terminated": program.process.terminate,
                "killed": program.process.kill,
            }[way]()
        until(questions(server)[0].gone.is_set)
        if way != "cancelled":
            program.process.wait(15)
        with started(tmp_path, server) as other:
            asked = {"question": "Say hello.", "model": MODEL, "search": "off"}
            after = program if way == "cancelled" else other
            told = after.ask(2, "tools/call", {"name": "ask", "arguments": asked})
        assert told["result"]["structuredContent"]["answer"] == "Hello."
        assert len(questions(server)) == 2
