"""Small windows and models without calls, end to end against a server with the real one's rules."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.agent.providers.local_desk import FACT, SMALL, TOOLLESS, Desk, desk, envelope, lake
from tests.fake_ollama import Answer, FakeOllama, Model, call, say, slip
from tests.ollama_rules import check, count_tokens

# --- the window -------------------------------------------------------------------------------


def research() -> tuple[list[str], list[Answer]]:
    """Nine questions, and the answers of a model that searches 12 times and reads 20 pages."""
    questions, script = [], []
    reads = searches = 0
    for turn in range(9):
        questions.append(f"Question number {turn}: when does the ferry leave on day {turn}?")
        for _ in range(2 if turn < 3 else 1):
            searches += 1
            script.append(call("web_search", {"query": f"ferry day {turn} {searches}"}))
        for _ in range(3 if turn < 2 else 2):
            reads += 1
            url = f"https://lake.example/{reads % 6 + 1}"
            script.append(call("open_page", {"url": url, "offset": reads}))
        script.append(say(f"{FACT} [{turn % 6 + 1}]"))
    assert (searches, reads) == (12, 20)
    return questions, script


def study(server: FakeOllama, session: Desk, questions: list[str], model: str = "qwen3:4b") -> None:
    """Asks the questions; each request about one of them holds it."""
    for question in questions:
        sent = len(server.chats)
        told = session.ask(question, f"ollama:{model}")
        assert (told.reason, told.error) == ("stop", None)
        assert told.citations
        for body in server.chats[sent:]:
            assert question in [m["content"] for m in body["messages"] if m["role"] == "user"]


@pytest.mark.parametrize(("native", "letters"), [(False, 4), (True, 2.5)])
def test_a_long_research_session_in_a_small_window(
    tmp_path: Path, native: bool, letters: float
) -> None:
    """Nine turns, 12 searches and 20 pages in 4,096 tokens: nothing is refused, cut or lost.

    Where tokens are shorter than planned, the plan is corrected by a few refusals.
    """
    questions, script = research()
    model = Model("qwen3:4b", num_ctx=4096, native=native, letters=letters)
    with FakeOllama([model], script) as server, desk(server, tmp_path, lake(12_000, 6)) as session:
        study(server, session, questions)
    assert len(server.prompt_tokens) == len(script)
    assert max(server.prompt_tokens) <= 4096
    windows = [body.get("options", {}).get("num_ctx") for body in server.chats]
    known = windows.index(4096)
    assert set(windows[:known]) <= {None}
    assert set(windows[known:]) == {4096}
    for body in server.chats:
        check(body)
        assert body["truncate"] is False
    assert any(d.get("shortened") for d in session.details())
    if letters < 4:
        assert len(server.chats) - len(script) <= 3
        return
    assert len(server.chats) == len(script)
    assert max(map(count_tokens, server.chats)) <= 4096 - 700
    assert not session.notices()
    assert not server.summaries, "old pages and calls are enough"
    prompts = [json.dumps(body["messages"])[:-1] for body in server.chats]
    grown = [now.startswith(before) for before, now in pairwise(prompts)]
    assert grown.count(True) >= len(grown) // 3, grown


def test_a_question_too_large_for_the_window_is_told_before(tmp_path: Path) -> None:
    """A question that cannot fit is one clear error, and the next one is answered."""
    env = {"OLLAMA_CONTEXT_LENGTH": "4096"}
    with (
        FakeOllama([SMALL], [say("At 07:40.")]) as server,
        desk(server, tmp_path, **env) as session,
    ):
        told = session.ask("ferry " * 4000, "ollama:qwen3:4b", search="off")
        assert told.error is not None
        assert told.error["code"] == "question_too_long"
        assert "OLLAMA_CONTEXT_LENGTH=16384" in told.error["remedy"]
        assert not server.chats
        assert session.ask("When?", "ollama:qwen3:4b", search="off").text == "At 07:40."


def test_a_smaller_window_than_expected_is_believed(tmp_path: Path) -> None:
    """When the server refuses a prompt for its size, the plan takes its numbers and goes on."""
    script = [
        call("web_search", {"query": "a"}),
        call("open_page", {"url": "https://lake.example/1"}),
    ]
    with (
        FakeOllama(
            [Model("qwen3:4b", num_ctx=8192, most=2600)], [*script, say(f"{FACT} [1]")]
        ) as server,
        desk(server, tmp_path, lake(30_000), OLLAMA_CONTEXT_LENGTH="8192") as session,
    ):
        told = session.ask("When does the ferry leave?", "ollama:qwen3:4b")
    assert (told.reason, told.text) == ("stop", f"{FACT} [1]")
    assert len(server.chats) == len(server.prompt_tokens) + 1
    assert all(tokens <= 2600 for tokens in server.prompt_tokens)


def test_a_prompt_that_was_cut_is_told(tmp_path: Path) -> None:
    """An older server cuts although it was told not to: its count gives it away."""
    long = "ferry " * 2000
    script = [say("Hello."), say("Hello.")]
    with (
        FakeOllama([Model("m", num_ctx=2048)], script, cuts=True) as server,
        desk(server, tmp_path) as session,
    ):
        assert session.ask(long, "ollama:m", search="off").text == "Hello."
    assert session.notices() == ["prompt_cut"]


def test_numbers_of_a_turn_are_its_own(tmp_path: Path) -> None:
    """A turn counts its own steps; a model that tells nothing leaves no numbers."""
    with FakeOllama([SMALL], [say("A"), say("B")]) as server, desk(server, tmp_path) as session:
        session.ask("One?", "ollama:qwen3:4b", search="off")
        session.ask("Two?", "ollama:qwen3:4b", search="off")
        assert session.events[-1].data["performance"]["load_ms"] == 100.0
        assert "calls" not in session.events[-1].data["performance"]
        session.ask("Three?", "builtin:extractive", search="off")
    assert "performance" not in session.events[-1].data


# --- the ladder -------------------------------------------------------------------------------


def test_calls_in_text_are_rescued(tmp_path: Path) -> None:
    """A printed call searches and is not shown; the numbers say how it came."""
    written = '<tool_call>{"name": "web_search", "arguments": {"query": "ferry"}}</tool_call>'
    script = [say(*written), say(f"{FACT} [1]")]
    with FakeOllama([SMALL], script) as server, desk(server, tmp_path) as session:
        assert session.ask("When?", "ollama:qwen3:4b").text == f"{FACT} [1]"
    assert session.rungs() == ["text", "native"]
    shown = "".join(e.data["text"] for e in session.events if e.type in ("text_delta", "message"))
    assert "tool_call" not in shown


def test_a_model_without_tools_answers_with_citations(tmp_path: Path) -> None:
    """Asked in an envelope it searches, reads and answers with a citation, in its own words."""
    script = [
        envelope("web_search", query="ferry times"),
        envelope("open_page", url="https://lake.example/1"),
        envelope("answer"),
        say("It leaves ", "at 07:40 [1]."),
    ]
    with FakeOllama([TOOLLESS], script) as server, desk(server, tmp_path) as session:
        told = session.ask("When does the ferry leave?", "ollama:gemma3:4b")
    assert (told.reason, told.text) == ("stop", "It leaves at 07:40 [1].")
    assert [c.url for c in told.citations] == ["https://lake.example/1"]
    assert (told.usage.searches, told.usage.pages) == (1, 1)
    assert session.notices() == ["calls_envelope"]
    assert session.rungs() == ["envelope"] * 3
    assert session.events[-1].data["performance"]["calls"] == "envelope"
    refused, *asked, answered = server.chats
    assert "tools" in refused
    assert all("tools" not in body and "anyOf" in body["format"] for body in asked)
    assert "format" not in answered
    assert FACT in json.dumps(answered["messages"])
    assert {m["role"] for m in answered["messages"]} <= {"system", "user", "assistant"}


def test_a_model_that_cannot_fill_a_form_is_searched_for(tmp_path: Path) -> None:
    """Words instead of an envelope: the question is searched, pages are read, it answers."""
    script = [say(words) for words in ("It is early.", "I know now.", "I know.", f"{FACT} [1]")]
    with FakeOllama([TOOLLESS], script) as server, desk(server, tmp_path) as session:
        told = session.ask("When does the ferry leave?", "ollama:gemma3:4b")
    assert (told.text, [c.n for c in told.citations]) == (f"{FACT} [1]", [1])
    assert (told.usage.searches, told.usage.pages) == (1, 2)
    assert session.notices() == ["calls_envelope"]
    assert session.rungs() == ["envelope"] * 3
    asked = [body["query"] for _, body in session.app.requests if "query" in body]
    assert asked == ["When does the ferry leave?"]
    assert "It is early." not in [e.data.get("text") for e in session.events]


def test_calls_that_break_lower_one_session_alone(tmp_path: Path) -> None:
    """The session keeps the form that works; the next one calls."""
    script = [slip(), slip(), slip(), envelope("answer"), say("One."), envelope("answer")]
    script += [say("Two."), call("web_search", {"query": "ferry"}), say("Three.")]
    with FakeOllama([SMALL], script) as server, desk(server, tmp_path) as session:
        for _ in range(2):
            before = len(server.chats)
            session.ask("When?", "ollama:qwen3:4b")
        assert not any("tools" in chat for chat in server.chats[before:])
        before, session.session = len(server.chats), ""
        assert session.ask("When?", "ollama:qwen3:4b").text == "Three."
        assert all("tools" in chat for chat in server.chats[before:])


CLOUD = Model("big:120b", remote_host="https://ollama.com")


@pytest.mark.parametrize(
    ("model", "cost"),
    [(SMALL, 0.0), (TOOLLESS, 0.0), (CLOUD, None), (Model("gpt-oss:20b-cloud"), None)],
)
@pytest.mark.parametrize("search", ["off", "local"])
def test_what_runs_on_this_machine_costs_nothing(
    tmp_path: Path, model: Model, cost: float | None, search: str
) -> None:
    """And what runs in a cloud costs nobody knows what."""
    script = [envelope("answer"), say("Hello.")] if model is TOOLLESS and search == "local" else []
    with FakeOllama([model], [*script, say("Hello.")]) as server, desk(server, tmp_path) as session:
        told = session.ask("Hi", f"ollama:{model.name}", search=search)
    assert (told.text, told.usage.cost_usd) == ("Hello.", cost)
    assert not session.notices() or search == "local"
