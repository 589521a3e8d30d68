"""A search or a page that cannot leave this machine needs no yes; everything else still does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent
from searchloop.agent.guard.guard import Policy
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.tools.backend import (
    Backend,
    LocalBackend,
    NoBackend,
    RemoteBackend,
    stays_here,
)
from searchloop.agent.tools.dispatcher import Fence, Toolset
from searchloop.agent.tools.open_page import open_page
from searchloop.agent.tools.web_search import web_search
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ToolResult
from searchloop.search_backend.library import Library
from tests.agent.guard.guarding import guard, made
from tests.agent.guard.test_guard import MINE, THEIRS
from tests.agent.scripted import Memory, SearchApp, call, found, page, settings
from tests.tables import each_row

HERE = {"name": "library", "remote": False, "position": 1, "available": True}
AWAY = {"name": "tin", "remote": True, "position": 2, "available": True}
RESTING = {**AWAY, "available": False}
UNUSED = {**AWAY, "position": None}
ROUTED = {**UNUSED, "routed": True}
OWN_PAGE, WEB_PAGE = "library://notes/a.md", "https://a.example/"


def described(*engines: Any, offline: bool = False) -> dict[str, Any]:
    """An answer of GET /api/engines."""
    return {"engines": list(engines), "readers": [], "offline": offline}


def app_with(engines: Any) -> SearchApp:
    """A backend with these engines, which finds and opens something."""
    routes = {"/api/web-search": found(WEB_PAGE), "/api/open-page": page("text")}
    return SearchApp({"/api/engines": engines, **routes})


def results_of(
    backend: Backend, *made_calls: Any, policy: Policy | None = None
) -> list[ToolResult]:
    """What the calls give in a chat with private data and text of others, where nobody is asked."""
    fence, table = Fence(), SourceTable()
    table.see([OWN_PAGE, WEB_PAGE])
    tools: Sequence[Tool] = (web_search(backend, fence), open_page(backend, fence))
    checked = guard(table, messages=[MINE, THEIRS], approve="never", policy=policy)
    toolset = Toolset(tools, "ask", table, guard=checked)
    return asyncio.run(toolset.call_all(made_calls, Memory()))


SEARCH = call("web_search", query="tides")
OWN, WEB = call("open_page", 2, url=OWN_PAGE), call("open_page", 3, url=WEB_PAGE)


@each_row(
    ("engines", "runs"),
    [
        (described(HERE), [True, True, False]),
        (described(HERE, UNUSED), [True, True, False]),
        (described(HERE, AWAY), [False, True, False]),
        (described(HERE, ROUTED), [False, True, False]),
        (described(HERE, RESTING), [False, True, False]),
        (described(AWAY), [False, True, False]),
        (described(HERE, AWAY, offline=True), [True, True, True]),
        (described({**HERE, "remote": None}), [False, True, False]),
        ({"engines": [{"name": "tin"}]}, [False, True, False]),
        ({}, [False, True, False]),
    ],
)
def test_what_the_engines_are_decides(engines: Any, runs: list[bool]) -> None:
    """A search runs if every engine of the chain is here; what is unknown may be elsewhere."""
    results = results_of(LocalBackend(app_with(engines)), SEARCH, OWN, WEB)
    assert [not result.is_error for result in results] == runs
    assert all("approval" in result.content for result in results if result.is_error)


@pytest.mark.parametrize(
    "url", ["http://a.example/", "HTTPS://a.example/", "a.example/library://", "LIBRARY://x", "//a"]
)
def test_only_addresses_of_this_machine_stay(url: str) -> None:
    """However an address of the web is written, opening it may leave; a document's does not."""
    backend = LocalBackend(app_with(described(HERE)))
    assert not asyncio.run(stays_here(backend, url))
    assert all(asyncio.run(stays_here(backend, own)) for own in (OWN_PAGE, "zim://wiki/A"))


def test_a_rule_that_refuses_the_mixture_is_about_what_leaves() -> None:
    """`refuse` refuses a search of the web, and not one that stays here."""
    for engines, runs in ((described(HERE), True), (described(HERE, AWAY), False)):
        backend = LocalBackend(app_with(engines))
        (result,) = results_of(backend, SEARCH, policy=Policy(private_and_untrusted="refuse"))
        assert result.is_error is not runs


@each_row(
    ("url", "here"),
    [
        ("http://127.0.0.1:3002", True),
        ("http://localhost:3002", True),
        ("http://[::1]:3002/", True),
        ("http://search.example:3002", False),
        ("http://10.0.0.7:3002", False),
        ("http://127.0.0.1.example:3002", False),
        ("", False),
    ],
)
def test_a_backend_elsewhere_is_elsewhere(url: str, here: bool) -> None:
    """What goes to another machine leaves this one, whatever its engines are called."""
    assert RemoteBackend(url, Transport()).here is here


def test_a_missing_backend_and_other_tools_are_asked_about() -> None:
    """Nobody vouches for them."""
    (result,) = results_of(NoBackend(), SEARCH)
    assert "approval" in result.content
    for origin in ("mcp", "user"):
        send, ran = made("send", "network", origin=origin)
        checked = guard(messages=[MINE, THEIRS], approve="never")
        asyncio.run(
            Toolset([send], "ask", SourceTable(), guard=checked).call_all((call("send"),), Memory())
        )
        assert not ran


def test_a_library_answers_turn_after_turn(tmp_path: Path) -> None:
    """With the library as the only engine nobody is asked, in the first turn or a later one."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ferry.md").write_text("# Ferry\n\nThe ferry to Lindhaug leaves at seven.\n", "utf-8")
    (notes / "bus.md").write_text("# Bus\n\nThe bus to Lindhaug leaves at nine.\n", "utf-8")
    home = tmp_path / "home"
    Library(home).add(notes)
    own = settings(home, SEARCHLOOP_MODEL="builtin:extractive", SEARCH_ENGINES="library")
    with Agent(own) as agent:
        first = agent.ask("When does the ferry to Lindhaug leave?", search="local")
        second = agent.ask("When does the bus to Lindhaug leave?", session=first.session_id)
        kinds = [event.type for event in agent.log.read(first.session_id)]
    assert "leaves at seven" in first.text
    assert "leaves at nine" in second.text
    assert "approval_requested" not in kinds
