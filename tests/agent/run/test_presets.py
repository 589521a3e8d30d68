"""Agents: built in and the user's own, what they leave to a session, and what they may use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.session import Session
from searchloop.agent.run.prompts import (
    NamedAgent,
    NamedAgents,
    agent_in,
    allowed,
    built_in,
    own_words,
    save_words,
    settings_of,
)
from searchloop.agent.run.question import StandardTools
from searchloop.agent.tools import Tool, ToolContext
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Effect, ToolSpec
from tests.agent.scripted import code_of


async def nothing(arguments: Any, context: ToolContext) -> str:
    """A tool's function."""
    return ""


def made(name: str, *, effect: Effect = "read", **more: Any) -> Tool:
    """A tool of this name."""
    return Tool(
        ToolSpec(name, "", {"type": "object"}, effect), nothing, **{"origin": "ours", **more}
    )


def test_the_built_in_ones(tmp_path: Path) -> None:
    """There are a few, each says what it is for, and none switches the search on."""
    found = NamedAgents(tmp_path).all()
    assert len(found) >= 4
    assert all(p.builtin and p.description and p.system for p in found)
    assert {p.search for p in found} == {"off"}
    assert [p.name for p in found] == sorted(p.name for p in found)


def test_a_built_in_one_can_be_changed_and_comes_back(tmp_path: Path) -> None:
    """The user's own stands in its place until it is deleted; the built-in one cannot be."""
    presets = NamedAgents(tmp_path)
    name = next(iter(built_in()))
    assert code_of(lambda: presets.create(name, {})) == "agent_exists"
    mine = presets.change(name, {"system": "Be brief."})
    assert not mine.builtin
    assert presets.get(name).system == "Be brief."
    presets.delete(name)
    assert presets.get(name) == built_in()[name]
    assert code_of(lambda: presets.delete(name)) == "builtin_agent"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Upper", {}),
        ("../x", {}),
        ("", {}),
        ("a" * 50, {}),
        ("x", []),
        ("x", {"colour": "red"}),
        ("x", {"mode": "root"}),
        ("x", {"search": "on"}),
        ("x", {"model": "gpt"}),
        ("x", {"system": "y" * 30_000}),
        ("x", {"system": 7}),
        ("x", {"tools": "read_file"}),
        ("x", {"tools": [""]}),
        ("x", {"servers": [1]}),
    ],
)
def test_what_cannot_be_an_agent(tmp_path: Path, name: str, data: Any) -> None:
    """Each mistake is named, and nothing is written."""
    assert code_of(lambda: NamedAgents(tmp_path).create(name, data)) in ("bad_agent", "bad_model")
    assert not (tmp_path / "agents").exists()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """A file that somebody edited wrongly is called by its name."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.json").write_text("{")
    (tmp_path / "agents" / "README.txt").write_text("not an agent")
    assert code_of(lambda: NamedAgents(tmp_path).get("mine")) == "bad_agent"
    (tmp_path / "agents" / "mine.json").write_text(json.dumps({"mode": "root"}))
    assert code_of(lambda: NamedAgents(tmp_path).all()) == "bad_agent"


def session(settings: dict[str, Any]) -> Session:
    """A session with these settings."""
    return Session("s", "", "m:x", "ask", "off", "off", None, 0.0, 0.0, 0, False, settings)


def test_a_session_keeps_a_copy(tmp_path: Path) -> None:
    """What a session runs as is what it was given, whatever becomes of the agent."""
    presets = NamedAgents(tmp_path)
    presets.create("poet", {"system": "Rhyme.", "tools": ["a*"], "servers": []})
    kept = session(json.loads(json.dumps(settings_of(presets.get("poet")))))
    presets.delete("poet")
    found = agent_in(kept.settings)
    assert found
    assert (found.name, found.system, found.tools, found.servers) == ("poet", "Rhyme.", ("a*",), ())
    assert kept.as_dict()["agent"] == "poet"
    assert "Rhyme." not in str(kept.as_dict())
    assert agent_in({}) is None
    with pytest.raises(ConfigError, match="tools"):  # damaged, it runs as nobody else
        agent_in({"agent": "x", "preset": {"tools": "all"}})
    assert set(settings_of(None).values()) == {None}


def test_what_an_agent_may_use() -> None:
    """Patterns of tools and of servers; none named is all; the switch alone decides on search."""
    few = NamedAgent("x", tools=("read_*",), servers=("git*",))
    assert allowed(few, made("read_file"))
    assert not allowed(few, made("create_file", effect="write"))
    assert not allowed(few, made("deploy", origin="user"))
    assert allowed(few, made("mcp_git_log", origin="mcp", server="git"))
    assert not allowed(few, made("mcp_mail_send", origin="mcp", server="mail"))
    assert allowed(few, made("web_search", web=True))
    assert allowed(few, made("read_more"))
    assert not allowed(few, made("find_tool", origin="user"))
    none = NamedAgent("x", tools=(), servers=())
    assert not allowed(none, made("read_file"))
    assert not allowed(none, made("mcp_git_log", origin="mcp", server="git"))
    for everything in (None, NamedAgent("x")):
        assert allowed(everything, made("create_file", effect="write"))
        assert allowed(everything, made("mcp_a_b", origin="mcp", server="a"))


def test_built_in_patterns_name_tools_there_are(tmp_path: Path) -> None:
    """A pattern of a built-in agent that fits nothing would be a typing mistake."""
    here = Session("s", "", "m:x", "agent", "off", "off", str(tmp_path), 0.0, 0.0, 0, False)
    tools = [*asyncio.run(StandardTools().tools(here))]
    tools += asyncio.run(Workspace(tmp_path).tools(here))
    there = {tool.spec.name for tool in tools}
    for preset in built_in().values():
        assert set(preset.tools or ()) <= there, preset.name


def test_words_of_ones_own_have_two_names(tmp_path: Path) -> None:
    """Another one is told, with what is meant; nothing is saved."""
    with pytest.raises(ConfigError, match=r"called 'abuot'.*about"):
        save_words(tmp_path, {"abuot": "I sail."})
    assert save_words(tmp_path, {"about": "I sail."}) == own_words(tmp_path)
    assert own_words(tmp_path).answer == ""
