"""Runs behind each face end with their client or their server, and nothing goes on after them."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.hosts import TOKEN, Host
from tests.fakes import FakeServer
from tests.waiting import until
from tests.web.faces import FACES, MODEL, model

pytestmark = pytest.mark.integration

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
def house(store: Path | str) -> Iterator[tuple[FakeServer, dict[str, str]]]:
    """A model, and the settings of a server that asks it and keeps its chats in this store."""
    shared = {} if isinstance(store, Path) else {"SEARCHLOOP_DATABASE_URL": store}
    with FakeServer(model) as server:
        yield server, {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", **shared}


def test_a_client_that_leaves_ends_its_run(tmp_path: Path, store: Path | str) -> None:
    """The provider's connection is closed soon after, whichever face it was."""
    with house(store) as (server, settings), Host(tmp_path, **settings) as host:
        with waiting(host, server):
            pass
        until(lambda: all(each.gone.is_set() for each in questions(server)))
        assert host.ask("GET", "/api/sessions")[1]["sessions"] == []


def test_a_server_that_stops_tells_each_client(tmp_path: Path, store: Path | str) -> None:
    """In its protocol's own words, and soon; no run is left."""
    with house(store) as (server, settings), Host(tmp_path, **settings) as host:
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


def test_a_killed_server_leaves_nothing_to_take_over(tmp_path: Path, store: Path | str) -> None:
    """Its clients see the connection break. Another server on the same store takes over the chat
    that it answered, asks no model on behalf of its clients, has no chat of theirs, and answers
    when it is asked again."""
    with house(store) as (server, settings), ExitStack() as stack:
        ours = stack.enter_context(Host(tmp_path, **settings))
        beside = None if isinstance(store, Path) else Host(tmp_path, **settings)
        with waiting(ours, server) as asked:
            session = ours.ask("POST", "/api/sessions", {"model": MODEL})[1]["id"]
            ours.start(session, "wait")
            until(lambda: len(questions(server)) == len(WAITING) + 1)
            ours.process.kill()
            for link in asked.values():
                with pytest.raises((http.client.HTTPException, OSError)):
                    link.getresponse().read()
        until(lambda: all(each.gone.is_set() for each in questions(server)))
        other = stack.enter_context(beside or Host(tmp_path, **settings))
        until(lambda: len(questions(server)) == len(WAITING) + 2)
        [chat] = other.ask("GET", "/api/sessions")[1]["sessions"]
        assert chat["id"] == session
        status, answer = other.ask("POST", FACES["chat"].path, FACES["chat"].body("Say hello."))
        assert (status, answer["choices"][0]["message"]["content"]) == (200, "Hello.")
        assert len(questions(server)) == len(WAITING) + 3
