"""Runs behind each face end with their client or their server, and nothing goes on after them."""

from __future__ import annotations

import http.client
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.hosts import TOKEN, Host
from tests.fakes import FakeServer
from tests.waiting import until
from tests.web.faces import FACES, MODEL, model

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems"),
]

ASK = {"name": "ask", "arguments": {"question": "wait", "model": MODEL, "search": "off"}}
MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ASK}
# The path and the request of each face; the model says a word and then nothing more.
WAITING: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (face.path, face.body("wait", stream=True)) for name, face in FACES.items()},
    "whole": ("/v1/chat/completions", FACES["chat"].body("wait")),
    "mcp": ("/mcp", MCP),
}
Asked = dict[str, http.client.HTTPConnection]


@contextmanager
def waiting(host: Host, server: FakeServer) -> Iterator[Asked]:
    """All of them under way."""
    with ExitStack() as stack:
        asked = {}
        for name, (path, body) in WAITING.items():
            link = http.client.HTTPConnection("127.0.0.1", host.port, timeout=90)
            asked[name] = stack.enter_context(closing(link))
            headers = {
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            link.request("POST", path, json.dumps(body), headers)
        until(lambda: len(questions(server)) == len(WAITING))
        yield asked


def questions(server: FakeServer) -> list[Any]:
    """What the model was asked."""
    return [each for each in server.requests if each.method == "POST"]


@contextmanager
def house(home: Path) -> Iterator[tuple[FakeServer, dict[str, str]]]:
    """A model, and the settings of a server that asks it."""
    with FakeServer(model) as server:
        yield server, {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1"}


def test_a_client_that_leaves_ends_its_run(tmp_path: Path) -> None:
    """The provider's connection is closed soon after, whichever face it was."""
    with house(tmp_path) as (server, settings), Host(tmp_path, **settings) as host:
        with waiting(host, server):
            pass
        until(lambda: all(each.gone.is_set() for each in questions(server)))
        assert host.ask("GET", "/api/sessions")[1]["sessions"] == []


def test_a_server_that_stops_tells_each_client(tmp_path: Path) -> None:
    """In its protocol's own words, and soon; no run is left."""
    with house(tmp_path) as (server, settings), Host(tmp_path, **settings) as host:
        with waiting(host, server) as asked:
            host.signal(signal.SIGTERM)
            answers = {name: link.getresponse() for name, link in asked.items()}
            told = {name: answer.read().decode() for name, answer in answers.items()}
        assert host.process.wait(15) == 0
        assert all(each.gone.is_set() for each in questions(server))
    assert all("stopped before the answer was whole" in each for each in told.values()), told
    assert '"code":"stopped"' in told["chat"]
    assert told["chat"].rstrip().endswith("[DONE]")
    assert "event: response.failed" in told["responses"]
    assert "event: error" in told["messages"]
    assert answers["whole"].status == 503
    assert '"isError":true' in told["mcp"]


def test_a_killed_server_leaves_nothing_to_take_over(tmp_path: Path) -> None:
    """Its clients see the connection break. The next server on the same store asks no model on
    their behalf, has no chat of theirs, and answers when it is asked again."""
    with house(tmp_path) as (server, settings):
        with Host(tmp_path, **settings) as host, waiting(host, server) as asked:
            host.process.kill()
            for link in asked.values():
                with pytest.raises((http.client.HTTPException, OSError)):
                    link.getresponse().read()
        until(lambda: all(each.gone.is_set() for each in questions(server)))
        before = len(questions(server))
        with Host(tmp_path, **settings) as other:
            assert other.ask("GET", "/api/sessions")[1]["sessions"] == []
            path, body = FACES["chat"].path, FACES["chat"].body("Say hello.")
            status, answer = other.ask("POST", path, body)
            assert (status, answer["choices"][0]["message"]["content"]) == (200, "Hello.")
            assert len(questions(server)) == before + 1
