"""`searchloop ask`, from the question and what is asked beside it to the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log.events import Event
from searchloop.cli.show import as_text
from tests.agent.providers.vendors import OPENAI
from tests.agent.scripted import page
from tests.attached import png
from tests.cli.conftest import Cli
from tests.cli.screen import Terminal, online, said, serving
from tests.fake_ollama import FakeOllama, Model, call, say
from tests.fakes import FakeServer, Reply, json_reply

QUESTION = "How does the search switch decide between native and local search?"


def openai(server: FakeServer) -> dict[str, str]:
    """Settings that send OpenAI's requests to a server of ours."""
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-test-0123456789"}


def test_a_check_reads_what_the_answer_cites(cli: Cli) -> None:
    """`--check` reads each cited page once, says so, and prints the verdicts with the sources."""
    text = OPENAI.recorded("web_search_stream").content
    streamed = Reply(
        OPENAI.stream_of("web_search_stream"), 200, {"content-type": "text/event-stream"}
    )
    answer = page(text)({"url": "https://one.example/", "max_length": len(text)})
    with FakeServer([streamed]) as server, FakeServer(lambda _: json_reply(answer)) as pages:
        where = {**openai(server), "SEARCHLOOP_OFFLINE": "", "SEARCH_BACKEND_URL": pages.url}
        ran = cli(
            "ask", "-m", "openai:gpt-6-luna", "--web", "--check", "-o", "json", "Hm?", **where
        )
        asked = [request.json["url"] for request in pages.requests if request.body]
    assert ran.code == 0, ran.err
    marks = [mark for cited in ran.json["citations"] for mark in cited["marks"]]
    assert sorted(asked) == sorted({cited["url"] for cited in ran.json["citations"]})
    assert marks
    assert {mark["by"] for mark in marks} == {"words"}
    assert "unread" not in {mark["verdict"] for mark in marks}


def test_nothing_found_is_no_success(cli: Cli) -> None:
    """Words that nobody knows end with their own error, a sentence and exit code 1."""
    ran = cli("ask", "--web", "-o", "json", "Who was Zxqvulon Brzhtek of Ummgrthia?")
    assert ran.code == 1
    assert (ran.json["reason"], ran.json["error"]["code"]) == ("incomplete", "nothing_found")
    assert ran.json["answer"]


def test_a_bare_machine_answers_with_checked_sources(cli: Cli) -> None:
    """No key, no model server, no network: quotes from the library, numbered and verified; without
    --web nothing is searched.
    """
    ran = cli("ask", "--web", "-o", "json", QUESTION)
    told = ran.json
    assert ran.code == 0
    assert (told["reason"], told["search_path"]) == ("stop", "local:library")
    assert told["citations"]
    for citation in told["citations"]:
        assert citation["verified"] is True
        assert all(
            told["answer"][start:end] == f"[{citation['n']}]" for start, end in citation["spans"]
        )
    assert {s["state"] for s in told["sources"]} >= {"cited", "opened"}
    assert told["usage"]["searches"] == 1
    told = cli("ask", "-o", "json", QUESTION).json
    assert (told["search_path"], told["usage"]["searches"]) == ("off", 0)


def test_files_go_with_a_question(cli: Cli, tmp_path: Path) -> None:
    """By path, several, and from standard input; a bad one is refused with exit code 2."""
    (tmp_path / "dial.png").write_bytes(png())
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with FakeServer([OPENAI.reply()]) as server:
        known = {**openai(server), "SEARCHLOOP_OFFLINE": ""}
        ask = ("ask", "-m", "openai:gpt-6-luna", "--no-web", "-o", "json", "What is it?")
        ran = cli(*ask, "-f", "dial.png", "--file", "-", stdin="Noon.", **known)
        assert ran.json["reason"] == "stop", ran.err
        bad = cli(*ask, "-f", "bad.png", **known)
        body = server.requests[0].json
    assert (bad.code, len(server.requests)) == (2, 1)
    assert "bad.png is not what it says" in bad.err
    parts = body["input"][0]["content"]
    assert [part["type"] for part in parts] == ["input_image", "input_text"]
    assert "\nNoon.\n" in parts[1]["text"]


def test_the_text_form_reads_like_an_answer(cli: Cli) -> None:
    """The answer and its sources on stdout, what happened on stderr."""
    ran = cli("ask", "--web", QUESTION)
    assert ran.out.index("passages match") < ran.out.index("Sources") < ran.out.index("library://")
    assert "Searching the web: “" in ran.err
    assert "\n  Read library://" in ran.err


def test_stream_json_ends_with_the_run(cli: Cli) -> None:
    """One event a line; the last one is `run_finished`."""
    events = cli("ask", "--web", "-o", "stream-json", QUESTION).events
    types = [e["type"] for e in events]
    assert types[:2] == ["user_message", "run_started"]
    assert types[-1] == "run_finished"
    assert (
        types.index("search_started") < types.index("search_finished") < types.index("message", 4)
    )
    assert not any("provider_data" in e for e in events)


def test_a_session_goes_on(cli: Cli) -> None:
    """-c and --session add to the session; its search setting is kept."""
    first = cli("ask", "--web", "-o", "json", QUESTION).json
    again = cli("ask", "-c", "-o", "json", "And what does local mean?").json
    named = cli("ask", "--session", first["session_id"], "-o", "json", "And off?").json
    assert first["session_id"] == again["session_id"] == named["session_id"]
    assert again["search_path"] == "local:library"
    listed = cli("sessions", "-o", "json").json["sessions"]
    assert [s["messages"] for s in listed] == [3]


def test_piped_text_is_part_of_the_question(cli: Cli) -> None:
    """Standard input follows the question, or is the question."""
    events = cli("ask", "-o", "stream-json", "Review this", stdin="a = 1\n").events
    assert events[0]["text"] == "Review this\n\na = 1\n"
    assert (
        cli("ask", "-o", "stream-json", stdin="What is this?").events[0]["text"] == "What is this?"
    )


def test_searches_are_held_to_the_sites_asked_for(cli: Cli) -> None:
    """--domain reaches the provider's own search, and ours."""
    with FakeServer([json_reply({"error": {"message": "no"}}, 400)]) as server:
        cli(
            "ask", "-m", "openai:gpt-5.5", "--web", "--domain", "Example.org", "--block-domain",
            "b.example", "hi", SEARCHLOOP_OFFLINE="", SEARCH_COUNTRY="de", **openai(server),
        )  # fmt: skip
        tool = server.requests[0].json["tools"][0]
    assert tool["filters"]["allowed_domains"] == ["example.org"]
    assert tool["user_location"]["country"] == "DE"
    local = cli("ask", "--web", "--domain", "nowhere.example", "-o", "json", QUESTION).json
    assert local["citations"] == []


def test_a_local_model_searches_with_our_tools(cli: Cli) -> None:
    """It asks for `web_search` and gets results of ours; its answer is cited, and no control
    character of it reaches the terminal.
    """
    text = "The switch\x1b]8;;http://x\x07 decides\x9b [1]."
    script = [call("web_search", {"query": "native local search"}), say(text)]
    with FakeOllama([Model("small", num_ctx=32_768)], script * 2) as server:
        ask = ("ask", "-m", "ollama:small", "--web", QUESTION)
        told = cli(*ask, "-o", "json", OLLAMA_HOST=server.url).json
        shown = cli(*ask, OLLAMA_HOST=server.url).out
        first, second, *_ = server.chats
    assert (told["answer"], told["search_path"]) == (text, "local:library")
    assert [c["n"] for c in told["citations"]] == [1]
    assert [t["function"]["name"] for t in first["tools"]] == ["open_page", "web_search"]
    result = second["messages"][-1]
    assert (result["role"], result["tool_name"]) == ("tool", "web_search")
    assert "library://docs/search-switch.md" in result["content"]
    assert not set(shown) & {chr(c) for c in (*range(9), *range(11, 32), *range(127, 160))}


def test_a_terminal_shows_the_answer_once(tmp_path: Path) -> None:
    """On a terminal the answer is there however quickly it came, and it is there once."""
    with Terminal(tmp_path, "ask", "Hello") as terminal:
        code, shown = terminal.ended()
    assert (code, shown.count("I am not a language model")) == (0, 1)


def test_the_speed_of_a_local_model_is_told(cli: Cli) -> None:
    """The last line of the answer has it, and JSON more."""
    with FakeOllama([Model("m")], [say("Hello."), say("Hello.")]) as server:
        told, data = (
            cli("ask", "-m", "ollama:m", "Hi", *more, OLLAMA_HOST=server.url)
            for more in ((), ("-o", "json"))
        )
    assert told.err.endswith(", 2 tokens/s\n")
    numbers = data.json["performance"]
    assert {"load_ms": 100.0, "prompt_ms": 400.0, "tokens_per_second": 2.0}.items() <= (
        numbers.items()
    )


def test_a_refused_question_is_json_too(cli: Cli) -> None:
    """With -o json a question that cannot be sent is a `run_finished` with an error."""
    told = cli("ask", "-o", "json", "-m", "openai:gpt-5.5", "hi").json
    assert (told["type"], told["reason"]) == ("run_finished", "error")
    assert told["error"]["code"] == "missing_key"


def test_a_read_only_folder_is_said(cli: Cli, tmp_path: Path) -> None:
    """A data folder that cannot be used: the path, the cause, the setting."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    ran = cli("ask", "hi", SEARCHLOOP_HOME=str(blocked / "home"))
    assert ran.code == 1
    assert "SEARCHLOOP_HOME" in ran.err


def test_a_limit_is_told_with_its_own_code(cli: Cli) -> None:
    """--max-steps ends in an answer and exit code 3."""
    ran = cli("ask", "--web", "--max-steps", "1", "-o", "json", QUESTION)
    assert (ran.code, ran.json["reason"]) == (3, "limit")
    assert ran.json["answer"]
    ran = cli("ask", "--web", QUESTION, SEARCHLOOP_LIMITS="pages=1")
    assert (ran.code, "page limit of 1 (SEARCHLOOP_LIMITS)" in ran.err) == (3, True)


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "ids": {"type": "array"}},
    "required": ["city", "ids"],
}
GOOD = '{"city": "Oslo", "ids": [1, 7]}'


def asked(cli: Cli, *args: str, answers: tuple[str, ...]) -> tuple[Any, list[Any]]:
    """How `ask` ran, and the requests that it made."""
    with serving(*map(said, answers)) as server:
        ran = cli("ask", "--no-web", *args, **online(server))
        return ran, [r.json for r in server.requests if r.path.endswith("/chat/completions")]


def test_options_and_system_text_are_sent(cli: Cli, tmp_path: Path) -> None:
    """The text may be in a file."""
    (tmp_path / "pirate.txt").write_text("Talk like a pirate.", "utf-8")
    options = ("--option", "temperature=0.2", "--option", "stop=END", "--option", "max_tokens=9")
    ran, (body,) = asked(cli, "-s", "@pirate.txt", *options, "Who?", answers=("Arr.",))
    assert (ran.code, ran.out) == (0, "Arr.\n")
    assert (body["temperature"], body["stop"], body["max_tokens"]) == (0.2, ["END"], 9)
    assert body["messages"][0]["content"].endswith("Talk like a pirate.")


def test_a_structured_answer_is_json_alone(cli: Cli, tmp_path: Path) -> None:
    """For a pipe into another program; one that does not fit fails with a sentence after a second
    try.
    """
    (tmp_path / "city.json").write_text(json.dumps(SCHEMA), "utf-8")
    ask = ("--schema", "city.json", "Which?")
    ran, (body,) = asked(cli, *ask, answers=(f"```\n{GOOD}\n```",))
    assert (ran.code, json.loads(ran.out)) == (0, json.loads(GOOD))
    sent = body["response_format"]["json_schema"]["schema"]
    assert sent == {"additionalProperties": False, **SCHEMA}
    ran, bodies = asked(cli, *ask, answers=("Oslo", '{"city": "O"}'))
    assert (ran.code, len(bodies)) == (1, 2)
    assert "does not fit the schema" in ran.err
    assert "'ids' is a required property" in ran.err


def test_a_chat_keeps_its_instructions(cli: Cli) -> None:
    """Each question of it has them."""
    with serving(said("Arr."), said("Aye.")) as server:
        args = ("chat", "-s", "Be brief.", "--option", "seed=3")
        assert cli(*args, stdin="One?\nTwo?\n", **online(server)).code == 0
        bodies = [r.json for r in server.requests if r.path.endswith("/chat/completions")]
    for body in bodies:
        assert body["seed"] == 3
        assert "Be brief." in body["messages"][0]["content"]
    assert len(bodies) == 2


def test_a_plan_names_the_sources_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers are those of the step's sources, not the step's own."""
    step = {"text": "Build it", "files": ["a.txt"], "sources": [3, 5]}
    plan = {"plan_id": "p", "title": "House", "steps": [step], "files": [], "sources": []}
    as_text(iter([Event(1, "plan", plan, 0.0)]))
    told = capsys.readouterr().out
    assert "**Plan: House**\n\n1. Build it - Touches: `a.txt` [3] [5]\n" in told
