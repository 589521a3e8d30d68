"""What an answer says of itself is recorded with it: later settings change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent
from searchloop.agent.providers import Abilities, abilities_of
from tests.agent.scripted import (
    Scripted,
    SearchApp,
    call,
    calls,
    found,
    open_house,
    says,
    settings,
)

TOLD = ("model", "local", "search_path", "usage", "reason")


def placed(local: bool, steps: Any, **more: Any) -> Scripted:
    """A scripted model on this machine, or elsewhere."""
    model = Scripted(steps, **more)
    model.abilities = Abilities(local=lambda name: local)
    return model


async def told(home: Path, model: Scripted, **more: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """What the events of all chats say of their answers, in a process that starts anew."""
    async with open_house(
        home, model, app=SearchApp({"/api/web-search": found()}), **more
    ) as house:
        return [
            (event.type, {name: event.data.get(name) for name in TOLD})
            for chat in house.log.sessions()
            for event in house.log.read(chat.id)
            if event.type in ("run_started", "run_finished")
        ]


@pytest.mark.parametrize("local", [True, False])
async def test_a_move_of_the_model_changes_no_answer(tmp_path: Path, local: bool) -> None:
    """Another place, another engine, offline: what was written of the answer stays."""
    app = SearchApp({"/api/web-search": found("https://a.example/")})
    steps = [calls(call("web_search", query="x")), says("So.")]
    async with open_house(tmp_path, placed(local, steps), app=app) as house:
        done = await house.ask("hi", search="local")
        started = next(e for e in house.log.read(house.session) if e.type == "run_started")
        assert (started.data["local"], done.data["local"]) == (local, local)
        assert done.data["search_path"] == "local:tin"
    before = await told(tmp_path, placed(local, []))
    after = await told(tmp_path, placed(not local, []), SEARCHLOOP_OFFLINE="1", SEARCH_ENGINES="x")
    assert [each for each in after if each[1]["model"]] == [e for e in before if e[1]["model"]]


@pytest.mark.parametrize(
    ("name", "env", "here"),
    [
        ("openai", {"OPENAI_API_KEY": "k" * 20}, False),
        ("anthropic", {"ANTHROPIC_API_KEY": "k" * 20}, False),
        ("gemini", {"GEMINI_API_KEY": "k" * 20}, False),
        ("openai-chat", {"OPENAI_CHAT_BASE_URL": "http://127.0.0.1:9/v1"}, True),
        ("openai-chat", {"OPENAI_CHAT_BASE_URL": "https://models.example/v1"}, False),
        ("ollama", {"OLLAMA_HOST": "http://127.0.0.1:9"}, True),
        ("ollama", {"OLLAMA_HOST": "https://ollama.example"}, False),
        ("builtin", {}, True),
    ],
)
def test_each_provider_knows_where_it_asks(
    tmp_path: Path, name: str, env: dict[str, str], here: bool
) -> None:
    """By the address that it asks, not by its name."""
    with Agent(settings(tmp_path, **env)) as agent:
        model = "extractive" if name == "builtin" else "m"
        provider, _ = agent.runner.provider(f"{name}:{model}")
        assert abilities_of(provider).local(model) is here


def test_a_model_in_a_cloud_is_not_here(tmp_path: Path) -> None:
    """A local Ollama passes some models on."""
    with Agent(settings(tmp_path, OLLAMA_HOST="http://127.0.0.1:9")) as agent:
        provider, _ = agent.runner.provider("ollama:glm-4.6:cloud")
        assert not abilities_of(provider).local("glm-4.6:cloud")
