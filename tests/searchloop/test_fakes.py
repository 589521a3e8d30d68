"""The fakes of `searchloop.testing`, as other programs use them, and engines of the user."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from searchloop import (
    Agent,
    AnswerError,
    Engine,
    ProviderError,
    Request,
    SearchResult,
    ToolCall,
    Usage,
    events,
)
from searchloop.testing import RecordedModel, RecordedSearch, ScriptedModel, call, offline
from tests.fake_ollama import FakeOllama, Model, say
from tests.searchloop.both_faces import opened
from tests.tables import each_row

PAGES = {
    "https://ferry.example/": "<title>Ferries</title><p>The ferry leaves at 07:40 from pier four.",
    "https://tides.example/": "High water is at noon.",
}


def test_turns_of_every_kind(tmp_path: Path) -> None:
    """Texts, calls, several in one, usage, errors, and functions of the request."""

    def echo(n: int) -> int:
        """The number again."""
        return n

    turns = (
        ["Let me see.", call("echo", n=1), call("echo", n=2), Usage(input_tokens=3)],
        lambda request: f"It is {request.messages[-1].content}.",
        ProviderError("down", "It is down.", "Wait."),
        lambda request: ProviderError("busy", "It is busy.", "Wait."),
    )
    with opened("Agent", tmp_path, *turns, tools=[echo]) as agent:
        answer = agent.ask("Which number?")
        for code in ("down", "busy", "script_over"):
            with pytest.raises(AnswerError) as caught:
                agent.ask("And now?")
            assert caught.value.code == code
        first, second, *_ = agent.model.requests
    assert (answer.text, answer.usage.input_tokens) == ("It is 2.", 3)
    assert [m.content for m in first.messages] == ["Which number?"]
    assert [m.content for m in second.messages][1:] == ["Let me see.", "1", "2"]
    made = [c.id for c in second.messages[1].tool_calls]
    assert len(set(made)) == 2
    assert call("echo", n=1) == ToolCall("", "echo", {"n": 1})


def test_an_answer_can_be_stopped_while_a_turn_waits(tmp_path: Path) -> None:
    """A turn may be an `async def`: so the test of a program decides when it is stopped."""
    waits = threading.Event()

    async def slow(request: Request) -> str:
        waits.set()
        await asyncio.Event().wait()
        return "never"

    with opened("Agent", tmp_path, slow) as agent, ThreadPoolExecutor(1) as pool:
        chat = agent.chat()
        pool.submit(lambda: waits.wait(90) and agent.cancel(chat.id))
        answer = chat.ask("How long does it take?")
    assert (answer.reason, answer.text) == ("cancelled", "")


def test_a_recorded_search_is_searched_read_and_checked(tmp_path: Path) -> None:
    """The real backend over a file of it: titles, main text, numbers of sources, verdicts."""
    path = tmp_path / "search.json"
    results = {"ferry": ["https://ferry.example/"]}
    path.write_text(json.dumps({"pages": PAGES, "results": results}))
    search = RecordedSearch.load(path)
    turns = (
        call("web_search", query="ferry"),
        call("open_page", url="https://ferry.example/"),
        "The ferry leaves at 07:40 from pier four [1].",
    )
    with opened("Agent", tmp_path, *turns, search_backend=search) as agent:
        answer = agent.ask("When does the ferry leave?", search="local")
    (cited,) = answer.citations
    assert (cited.url, cited.title) == ("https://ferry.example/", "Ferries")
    assert cited.marks[0].verdict in ("supported", "quoted")
    assert answer.search_path == "local:recorded"
    assert (search.queries, search.opened) == (["ferry"], ["https://ferry.example/"])


def test_what_is_not_recorded_fails_as_on_the_web(tmp_path: Path) -> None:
    """A query without results is an error of the engine, a page that is missing one of the page."""
    turns = (
        [call("web_search", query="x"), call("open_page", url="https://gone.example/")],
        "Nothing.",
    )
    with opened("Agent", tmp_path, *turns, search_backend=RecordedSearch({})) as agent:
        got = list(agent.stream("Read https://gone.example/", search="local"))
    (searched,) = [e for e in got if isinstance(e, events.SearchFinished)]
    (opened_page,) = [e for e in got if isinstance(e, events.PageOpened)]
    assert (searched.status, opened_page.status) == ("error", "error")
    assert "Give RecordedSearch pages" in str(searched.data)


def test_settings_know_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its environment nor its files; what is named holds."""
    monkeypatch.setenv("SEARCHLOOP_SEARCH", "auto")
    monkeypatch.setenv("SEARCHLOOP_HOME", "/nowhere")
    made = offline(tmp_path, SEARCHLOOP_MODEL="a:b")
    assert (made.home, made.offline, made.model) == (tmp_path, True, "a:b")
    assert made.env.get("SEARCHLOOP_SEARCH") != "auto"


@pytest.mark.parametrize("face", ["Agent", "AsyncAgent"])
def test_engines_may_be_given_as_objects(face: str, tmp_path: Path) -> None:
    """They are the whole chain, in order; names of known engines may stand beside them."""

    def search(query: object, access: object) -> list[SearchResult]:
        return [SearchResult("Herons", "https://heron.example/", "They wade.", "heron")]

    heron = Engine("heron", "Heron", search, remote=False)
    turns = (call("web_search", query="birds"), "They wade [1].")
    with opened(face, tmp_path, *turns, engines=[heron, "library"]) as agent:
        answer = agent.ask("What do herons do?", search="local")
    assert (answer.search_path, answer.sources[0].url) == ("local:heron", "https://heron.example/")


def test_a_turn_is_recorded_once_and_played(tmp_path: Path) -> None:
    """The file has what the server answered, without the key; then there is no server."""
    file, key = tmp_path / "turn.json", "sk-0123456789abcdef"
    with FakeOllama([Model("qwen3:8b")], [say(f"The key {key} is yours."), say("Gone.")]) as server:
        values = {"OLLAMA_HOST": server.url, "OLLAMA_API_KEY": key}
        live = RecordedModel(file, "ollama:qwen3:8b", offline(tmp_path, **values))
        with Agent(offline(tmp_path), model=live) as agent:
            said = agent.ask("hi").text
    assert key not in file.read_text()
    played = RecordedModel(file, "ollama:qwen3:8b", offline(tmp_path))
    with Agent(offline(tmp_path), model=played) as agent:
        answer = agent.ask("hi")
        assert (answer.text, answer.model) == (said.replace(key, "[secret]"), "ollama:qwen3:8b")
        with pytest.raises(AnswerError, match="no further answer to") as caught:
            agent.ask("And now?", session=answer.session_id)
    assert "record it again" in caught.value.remedy


TEXT = "There are 30 days of leave a year."


def asked(home: Path, base: str, check: bool = False, **more: Any) -> Any:
    """An answer that searches, opens what is found (or leaves that to the `check`) and cites it;
    and what was told meanwhile."""

    def search(query: Any, access: Any) -> list[SearchResult]:
        return [SearchResult("Leave", f"{base}leave", "About leave", "wiki")]

    wiki = Engine("wiki", "Our wiki", search, remote=False, **more)
    opens = [] if check else [call("open_page", url=f"{base}leave")]
    steps = (call("web_search", query="leave"), *opens, f"{TEXT} [1]")
    with Agent(offline(home), model=ScriptedModel(*steps), engines=[wiki], search="local") as agent:
        stream = agent.stream("How many days of leave do I have?", check=check)
        told = {event.type: event.data for event in stream}
        return stream.answer, told


def failing(url: str, _access: Any) -> str:
    """One that does not know its own address."""
    raise KeyError(url)


@each_row(
    ("base", "more"),
    [
        ("wiki://", {"scheme": "wiki", "open": lambda url, _: TEXT}),
        ("wiki://", {"scheme": "wiki", "open": lambda url, _: f"<h1>Leave</h1><p>{TEXT}</p>"}),
        ("https://wiki.corp/", {"sites": ("wiki.corp",), "open": lambda url, _: TEXT}),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_its_pages_are_read_and_judged(base: str, more: Any, check: bool, tmp_path: Path) -> None:
    """By a scheme of its own, or by hosts of the web that only it can read; by the model, or by
    the check of what it left unread."""
    answer, _ = asked(tmp_path, base, check, **more)
    (mark,) = answer.citations[0].marks
    assert mark.verdict == "supported"
    assert mark.passage in TEXT


def test_what_nothing_opens_is_told(tmp_path: Path) -> None:
    """The search says what the engine lacks, in place of marks that stay unread."""
    _, told = asked(tmp_path, "wiki://")
    said = str(told["search_finished"])
    assert "gave wiki://leave, an address that nothing opens" in said
    assert "a scheme, and an open" in said


def test_an_error_in_it_is_told(tmp_path: Path) -> None:
    """With the name of the engine and its own words."""
    _, told = asked(tmp_path, "wiki://", scheme="wiki", open=failing)
    assert "Our wiki could not open wiki://leave: KeyError" in str(told["page_opened"])


async def waits(*_: object) -> Any:
    """What no thread calls."""


@each_row("half", [{"scheme": "wiki"}, {"open": failing}, {"scheme": "w", "open": waits}])
def test_half_an_opener_is_refused(half: Any) -> None:
    """When it is made, with what is missing; so is an `async def`, which nothing would await."""
    with pytest.raises(ValueError, match="The engine wiki has"):
        Engine("wiki", "Our wiki", **half)
    with pytest.raises(ValueError, match="plain functions"):
        Engine("wiki", "Our wiki", waits)
