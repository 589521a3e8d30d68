"""Off and offline, behind each face, by the bytes that leave: none does.

All engines and all names on the web lead to one server of the test, which notes each connection. A
model asks for a search and a page by name, whether they are offered or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.settings import SearchSettings
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.hostile import Internet
from tests.web.faces import KEY, MODEL, Desk, Face, called, desk, each_face, listing, said, user

FAR = "https://far.example/page"
QUESTION = f"What does the search switch decide, and what does {FAR} say?"
REFUSED = (openai.PermissionDeniedError, anthropic.PermissionDeniedError)


def greedy(asked: Received) -> Reply:
    """A model that searches, then opens a page, then answers."""
    if models := listing(asked):
        return models
    steps = sum(message["role"] == "tool" for message in asked.json["messages"])
    if steps < 2:
        wanted = {"url": FAR} if steps else {"query": "search switch"}
        return called("open_page" if steps else "web_search", **wanted)
    return said("That is all.")


class Outside(FakeServer):
    """The whole world: an engine and every site. `met` is who came, before a byte was read."""

    def __init__(self) -> None:
        rows = [{"url": FAR, "title": "Far", "content": "away"}]
        super().__init__(lambda _: json_reply({"results": rows}))
        self.met: list[str] = []
        accept = self._server.get_request

        def noted() -> Any:
            found = accept()
            self.met.append(f"a connection from {found[1]}")
            return found

        self._server.get_request = noted  # type: ignore[method-assign]


Left = Callable[[], list[str]]


@contextmanager
def watched(home: Path, **env: str) -> Iterator[tuple[Desk, Left]]:
    """A server, and what has left it so far: connections, and names that were looked up."""
    with Outside() as outside:
        given = {"SEARXNG_URL": outside.url, "SEARCH_ENGINES": "searxng,library", **env}
        with desk(home, greedy, **given) as at:
            house, net = at.running.house, Internet(outside.port)
            own = SearchSettings.from_mapping(house.settings.env, home=house.settings.home)
            guarded = partial(fetch, resolve=net.resolve, sockets=net.sockets)
            house.search_app._make = lambda: create_app(own, fetch=guarded)
            yield at, lambda: [*outside.met, *net.looked_up]


TOOLS: dict[str, dict[str, Any]] = {
    "web_search": {"query": "search switch"},
    "open_page": {"url": FAR},
    "check_claim": {"claim": "It is far.", "url": f"{FAR}/2"},
    "audit": {"text": f"It is far ([1]({FAR}/3))."},
    "ask": {"question": QUESTION, "model": MODEL},
}


def call(at: Desk, *names: str, key: str = KEY, **more: Any) -> dict[str, Any]:
    """Calls tools over MCP, and returns what each gave."""

    async def all_of_them() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            over = streamable_http_client(f"{at.running.serving.base}/mcp", http_client=http)
            async with Client(over) as client:
                return {
                    name: await client.call_tool(name, {**TOOLS[name], **more}) for name in names
                }

    return asyncio.run(all_of_them())


@each_face
def test_a_protocol_sends_nothing_out_unless_asked(tmp_path: Path, face: Face) -> None:
    """Whole and streamed; last the web itself, which shows that the test would see it."""
    with watched(tmp_path) as (at, left):
        for stream in (False, True):
            for search in ("", "offline"):
                told = face.ask(at, user(QUESTION), stream=stream, search=search)
                assert told.text == "That is all."
                assert left() == [], (search, stream)
        face.ask(at, user(QUESTION), stream=False, search="web")
        assert any("connection" in each for each in left())
        assert "far.example" in left()


def test_tools_over_mcp_are_seen_to_leave(tmp_path: Path) -> None:
    """Where the switch lets them: without this the next test would show nothing."""
    with watched(tmp_path, SEARCHLOOP_CLIENT_SEARCH="auto") as (at, left):
        for name in TOOLS:
            before = left()
            call(at, name)
            assert len(left()) > len(before), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEARCHLOOP_CLIENT_SEARCH", "offline"),
        ("SEARCHLOOP_CLIENT_SEARCH", "off"),
        ("SEARCHLOOP_OFFLINE", "1"),
    ],
)
def test_the_users_switch_keeps_every_face_inside(tmp_path: Path, name: str, value: str) -> None:
    """The tools of MCP, which say how to allow a search where it is off, and a wish for the web by
    each protocol, which is refused. What is offline is still searched."""
    with watched(tmp_path, **{name: value}) as (at, left):
        told = call(at, *TOOLS)
        asked = call(at, "ask", search="local")["ask"]
        assert told["open_page"].is_error
        assert asked.is_error
        if value == "off":
            for each in (asked, *(told[name] for name in TOOLS if name != "ask")):
                assert each.structured_content["error"]["code"] == "search_off"
                assert "SEARCHLOOP_CLIENT_SEARCH" in each.content[0].text
        else:
            assert not told["web_search"].is_error
        for face in each_face.args[1]:
            with pytest.raises(REFUSED):
                face.ask(at, user(QUESTION), stream=False, search="web")
            search = "" if value == "off" else "offline"
            assert face.ask(at, user(QUESTION), stream=False, search=search).text
        assert left() == []
