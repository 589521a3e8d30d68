"""`search_chats`: what a model may find in other chats, and only when it is allowed to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchloop.agent.log import EventLog
from searchloop.agent.log.session import Session
from searchloop.agent.run.question import StandardTools
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool, ToolContext
from searchloop.compose import open_services, tool_sources
from tests.agent.scripted import Memory


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    """A log with chats of two people."""
    opened = EventLog(tmp_path / "sessions.sqlite3")
    for person in ("", "ann"):
        own = opened.of_person(person)
        session = own.create_session(model="m:x").id
        said = {"text": f"The samovar of {person or 'nobody'} is hot.", "sources": []}
        own.append(session, [("user_message", {"text": "Is it hot?"}), ("message", said)])
        own.update_session(session, title="Tea")
    yield opened
    opened.close()


def offered(log: EventLog, session: Session) -> list[Tool]:
    """The tools of a session whose user lets models search chats."""
    source = StandardTools(lambda: log)
    return list(asyncio.run(source.tools(session)))


def call(tool: Tool, query: str) -> str:
    """What the model gets."""
    context = ToolContext("c", SourceTable(), Memory())
    return str(asyncio.run(tool.run({"query": query}, context)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("person", "name"), [("", "nobody"), ("ann", "ann")])
def test_a_model_finds_what_its_own_user_said(log: EventLog, person: str, name: str) -> None:
    """With date and title; nothing of other people, nothing of the chat that asks."""
    own = log.of_person(person)
    session = own.create_session(model="m:x")
    own.append(session.id, [("user_message", {"text": "What was with the samovar?"})])
    [tool] = offered(own, session)
    told = call(tool, "samovar")
    assert told.count("Chat of ") == 1
    assert ": Tea\n" in told
    assert f"answer: The samovar of {name} is hot." in told
    assert "What was with" not in told
    assert call(tool, "zeppelin") == "No other chat holds these words."


def test_what_it_finds_is_private_and_other_peoples_text(log: EventLog) -> None:
    """So the guard treats it as it treats files, and the dispatcher fences it."""
    [tool] = offered(log, log.create_session(model="m:x"))
    assert (tool.private, tool.untrusted, tool.spec.effect) == (True, True, "read")


def test_a_temporary_chat_looks_at_no_other(log: EventLog) -> None:
    """It leaves no trace, and takes none up."""
    assert offered(log, log.create_session(model="m:x", settings={"temporary": True})) == []


@pytest.mark.parametrize(("value", "names"), [("", []), ("1", ["search_chats"])])
def test_it_is_off_until_the_user_allows_it(tmp_path: Path, value: str, names: list[str]) -> None:
    """By one setting."""
    values = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_CHATS": value}
    services = open_services(Environment({"test": values}))
    try:
        session = services.log.create_session(model="m:x")
        settings = Settings.load(Environment({"test": values}))
        sources = tool_sources(settings, services.mcp, lambda: services.log)
        tools = asyncio.run(sources[0].tools(session))
        assert [tool.spec.name for tool in tools] == names
    finally:
        services.close()
