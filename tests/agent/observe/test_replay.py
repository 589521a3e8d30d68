"""A trace that was damaged, cut or written by another version: a sentence, never a traceback."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop import Agent
from searchloop.agent.errors import AgentError
from searchloop.agent.observe.replay import read_trace, replay
from searchloop.agent.settings import Environment, Settings
from searchloop.web.text.export import EXPORTS
from tests.chaos.dialects import load
from tests.fakes import FakeServer, Reply

PROVIDERS = ("openai", "gemini", "anthropic", "ollama", "openai-chat")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, dict[str, str]]]:
    """A recorded trace of each provider, and the addresses that were in force."""
    made = {}
    for provider in PROVIDERS:
        dialect = load(provider)
        reply = Reply(
            dialect.text("High ", "water."), headers={"content-type": dialect.content_type}
        )
        with FakeServer(lambda received, reply=reply: reply) as server:
            home = tmp_path_factory.mktemp(provider)
            env = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TRACE": "1"}
            env |= dialect.settings(server.url)
            with Agent(Settings.load(Environment({"flag": env}))) as agent:
                agent.ask("When?", model=f"{provider}:{dialect.models[0]}")
                (session,) = agent.log.sessions()
                written = EXPORTS["trace"].write(session, agent.log.read(session.id))
        made[provider] = written, env
    return made


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_library_records_as_the_server_does(
    provider: str, traces: dict[str, tuple[str, dict[str, str]]]
) -> None:
    """With SEARCHLOOP_TRACE what each provider answered decodes to the same again, offline."""
    text, env = traces[provider]
    (step,) = asyncio.run(replay(read_trace(text), env))
    assert (step.same, step.problem) == (True, "")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    if not isinstance(value, dict | list):
        return []
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, each in inside:
        found += [(*path, key), *places(each, (*path, key))]
    return found


JUNK = st.sampled_from([None, 0, -1, 1e308, True, "", "x", "\ud800", [], {}, [[]], {"a": None}])


@given(draws=st.data())
def test_any_damage_is_a_sentence(
    draws: st.DataObject, traces: dict[str, tuple[str, dict[str, str]]]
) -> None:
    """Any value taken out or changed, any line lost or cut: an outcome or an error of our own."""
    text, env = traces[draws.draw(st.sampled_from(PROVIDERS))]
    lines = [json.loads(line) for line in text.splitlines()]
    for _ in range(draws.draw(st.integers(1, 3))):
        damage(lines, draws)
    damaged = "".join(f"{json.dumps(line)}\n" for line in lines)
    cut = draws.draw(st.one_of(st.none(), st.integers(0, len(damaged))))
    with suppress(AgentError):
        asyncio.run(replay(read_trace(damaged[:cut]), env))


def damage(lines: list[Any], draws: st.DataObject) -> None:
    """A line less, or a value less, or another one in its place."""
    if not lines:
        return
    line = draws.draw(st.integers(0, len(lines) - 1))
    found = places(lines[line])
    if not found or draws.draw(st.integers(0, 3)) == 0:
        del lines[line]
        return
    *path, last = draws.draw(st.sampled_from(found))
    where = lines[line]
    for key in path:
        where = where[key]
    if draws.draw(st.booleans()):
        where[last] = draws.draw(JUNK)
    else:
        del where[last]


def test_a_later_version_is_read_as_far_as_it_is_known(
    traces: dict[str, tuple[str, dict[str, str]]],
) -> None:
    """Events of kinds that do not exist yet, and fields more, disturb nothing."""
    text, env = traces["openai-chat"]
    lines = [json.loads(line) for line in text.splitlines()]
    newer = {"type": "weather", "seq": 999, "at": 1.0, "sky": "blue"}
    told = [json.dumps({**line, "more": [1]}) for line in lines]
    (step,) = asyncio.run(replay(read_trace("\n".join([json.dumps(newer), *told])), env))
    assert step.same


def test_another_file_is_told_from_a_trace(tmp_path: Path) -> None:
    """A JSON export, a list, a number: which line is no event, and what to save instead."""
    for text in ('{"session": {}}', "[1, 2]", "7", '"x"', "{"):
        with pytest.raises(AgentError, match="line 1") as told:
            read_trace(text)
        assert "--format trace" in told.value.remedy
