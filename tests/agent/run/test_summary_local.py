"""A local model's chat that outgrows its window: pages shrink first, then turns are summarised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent, Settings
from searchloop.agent.log.events import Event
from searchloop.agent.settings import load_environment
from tests.agent.providers.local_desk import lake
from tests.fake_ollama import Answer, FakeOllama, Model, call, say

FACT = "The code word is Zugspitze."
FILLER = "Some words about nothing in particular, to fill the window. " * 12


def answer(body: Any) -> Answer:
    """A model that knows what its request says."""
    said = "\n".join(m["content"] for m in body["messages"])
    last = body["messages"][-1]["content"]
    if said.startswith("You summarise"):
        return say(FACT if FACT in said else "Nothing was said.")
    if "code word?" in last:
        return say(FACT if FACT in said else "I do not know.")
    return say(FILLER)


def events(agent: Agent, session: str, kind: str) -> list[Event]:
    return [event for event in agent.log.read(session) if event.type == kind]


@pytest.mark.parametrize("window", [4096, 8192])
@pytest.mark.parametrize("asked", ["", "4096", "8192"])
def test_a_fact_of_the_first_turn_is_known_at_the_end(
    tmp_path: Path, window: int, asked: str
) -> None:
    """Whether the window is set or has to be found, no turn is left out in silence.

    In a small one, the questions are listed without asking the model.
    """
    roomy = int(asked or window) >= 8192
    with FakeOllama([Model("m", num_ctx=window)], answer) as server:
        flags = {"SEARCHLOOP_HOME": str(tmp_path), "OLLAMA_HOST": server.url}
        flags |= {"OLLAMA_CONTEXT_LENGTH": asked} if asked else {}
        settings = Settings.load(load_environment(flags, {}, tmp_path))
        with Agent(settings, search_backend=None) as agent:
            session = agent.ask(FACT, model="ollama:m", search="off").session_id
            for n in range(60):
                told = agent.ask(f"Tell me more, part {n}.", session=session)
                assert told.error is None
            told = agent.ask("What is the code word?", session=session)
            made = events(agent, session, "summary")
            notices = [e.data["code"] for e in events(agent, session, "notice")]
    assert told.text == FACT
    assert 2 <= len(made) <= 12
    assert {e.data["model"] for e in made} == {"ollama:m" if roomy else None}
    assert notices == (["summarised"] * len(made) if roomy else ["turns_left_out"])
    assert len(server.chats) == 62 + len(made) * roomy
    assert max(server.prompt_tokens) <= int(asked or window)


def test_a_window_is_found_before_the_first_question_of_an_old_chat(tmp_path: Path) -> None:
    """A model that is not loaded tells its window once it is: nothing is refused or dropped."""

    def told(window: int, text: str, session: str | None) -> tuple[Any, FakeOllama, list[Event]]:
        with FakeOllama([Model("m", num_ctx=window)], answer) as server:
            flags = {"SEARCHLOOP_HOME": str(tmp_path), "OLLAMA_HOST": server.url}
            settings = Settings.load(load_environment(flags, {}, tmp_path))
            with Agent(settings, search_backend=None) as agent:
                said = agent.ask(text, model="ollama:m", search="off", session=session)
                for n in range(0 if session else 40):
                    agent.ask(f"Tell me more, part {n}.", session=said.session_id)
                return said, server, events(agent, said.session_id, "summary")

    first, _, before = told(32_768, FACT, None)
    last, server, made = told(8192, "What is the code word?", first.session_id)
    assert before == []
    assert len(made) == 1
    assert last.text == FACT
    assert len(server.chats) == 2  # the summary and the answer
    assert max(server.prompt_tokens) <= 8192


def test_pages_shrink_before_a_turn_is_summarised(tmp_path: Path) -> None:
    """Results of earlier turns are shortened without a call; while questions stay, so be it."""

    def searches(body: Any) -> Answer:
        if body["messages"][-1]["role"] == "tool":
            return say("At 07:40 [1].")
        return call("web_search", {"query": "ferry"})

    with FakeOllama([Model("m", num_ctx=6000)], searches) as server:
        flags = {"SEARCHLOOP_HOME": str(tmp_path), "OLLAMA_HOST": server.url}
        settings = Settings.load(load_environment(flags, {}, tmp_path))
        with Agent(settings, search_backend=lake()) as agent:
            session = agent.ask("When?", model="ollama:m", search="local").session_id
            for _ in range(5):
                assert agent.ask("When?", session=session).error is None
            assert events(agent, session, "summary") == []
    assert max(server.prompt_tokens) <= 6000
