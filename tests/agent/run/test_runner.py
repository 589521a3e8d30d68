"""Runs: what is stored, what is refused, and how a run is stopped.

What an answer says of itself is recorded with it: later settings change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent
from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.providers import Abilities, abilities_of
from searchloop.agent.types import TextDelta
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


async def test_a_turn_is_stored_whole(tmp_path: Path) -> None:
    """Question, start, message and end, without deltas; the session shows what happened."""

    async with open_house(tmp_path, Scripted([says("It is noon.")])) as house:
        finished = await house.ask("What time is it?", mode="plan")
        assert house.kinds() == ["user_message", "run_started", "message", "run_finished"]
        assert finished.data["reason"] == "stop"
        assert finished.data["answer"] == "It is noon."
        assert finished.data["session_id"] == house.session
        assert finished.data["model"] == "scripted:one"
        session = house.log.session(house.session)
        assert (session.title, session.mode, session.running) == ("What time is it?", "plan", False)


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("", {}, "empty_question"),
        (" \n\t", {}, "empty_question"),
        ("x" * 1_000_001, {}, "question_too_long"),
        ("hi", {"model": "nope"}, "bad_model"),
        ("hi", {"model": "nope:x"}, "unknown_provider"),
        ("hi", {"model": "builtin:x"}, "unknown_model"),
        ("hi", {"mode": "dance"}, "bad_mode"),
        ("hi", {"search": "always"}, "bad_search"),
        ("hi", {"search": "native"}, "no_native_search"),
        ("hi", {"options": {"temperature": 3}}, "bad_option"),
        ("hi", {"options": {"seed": 1}}, "option_not_taken"),
        ("hi", {"schema": {"type": "nothing"}}, "bad_schema"),
        ("hi", {"system": "x" * 100_001}, "bad_system"),
        ("hi", {"schema": {}, "model": "builtin:extractive"}, "schema_not_taken"),
    ],
)
async def test_a_refused_question_leaves_no_trace(
    tmp_path: Path, text: str, options: dict[str, Any], code: str
) -> None:
    """What cannot be sent is said at once, with a remedy, and nothing is stored or claimed."""

    model = Scripted([says("Fine.")])
    model.abilities = Abilities(options=("temperature",))
    async with open_house(tmp_path, model) as house:
        before = house.log.session(house.session)
        with pytest.raises(ConfigError) as caught:
            await house.runner.start(house.session, text, **options)
        assert caught.value.code == code
        assert caught.value.remedy
        assert house.log.session(house.session) == before
        assert house.kinds() == []
        assert (await house.ask("And now?")).data["reason"] == "stop"


@pytest.mark.parametrize(
    ("fault", "reason", "code"),
    [
        (ProviderError("quota", "The quota is used up.", "Wait."), "error", "quota"),
        (None, "incomplete", "incomplete"),
        (says("So far", why="length")[-1], "incomplete", "answer_cut"),
        (says("So far", why="refusal")[-1], "incomplete", "withheld"),
        (RuntimeError("/home/someone/secret"), "error", "internal"),
    ],
)
async def test_a_failing_model_is_said_in_one_sentence(
    tmp_path: Path, fault: object, reason: str, code: str
) -> None:
    """What came is kept, the end says who must act, and no inner detail is shown."""

    script = [[TextDelta("So far"), *([fault] if fault else [])], says("Better.")]
    async with open_house(tmp_path, Scripted(script)) as house:
        data = (await house.ask("hi")).data
        assert (data["reason"], data["answer"]) == (reason, "So far")
        assert data["error"]["code"] == code
        assert data["error"]["remedy"]
        assert "secret" not in str(data)
        assert (await house.ask("again")).data["answer"] == "Better."


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
        ("ollama:glm-4.6:cloud", {"OLLAMA_HOST": "http://127.0.0.1:9"}, False),
        ("builtin:extractive", {}, True),
    ],
)
def test_each_provider_knows_where_it_asks(
    tmp_path: Path, name: str, env: dict[str, str], here: bool
) -> None:
    """By the address that it asks, not by its name; a local Ollama passes some models on."""
    with Agent(settings(tmp_path, **env)) as agent:
        provider, model = agent.runner.provider(name if ":" in name else f"{name}:m")
        assert abilities_of(provider).local(model) is here
