"""`searchloop ask`, from the question to the exit code."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log.events import Event
from searchloop.cli.show import as_text
from tests.agent.providers.vendors import OPENAI, SSE
from tests.agent.scripted import page
from tests.attached import png
from tests.cli.conftest import CLEAN, Cli
from tests.fake_ollama import FakeOllama, Model, say
from tests.fakes import FakeServer, Reply, json_reply

QUESTION = "How does the search switch decide between native and local search?"


def openai(server: FakeServer) -> dict[str, str]:
    """Settings that send OpenAI's requests to a server of ours."""
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-test-0123456789"}


def test_a_check_reads_what_the_answer_cites(cli: Cli) -> None:
    """`--check` reads each cited page once, says so, and prints the verdicts with the sources."""
    text = OPENAI.recorded("web_search_stream").content
    streamed = Reply(OPENAI.stream_of("web_search_stream"), 200, {"content-type": SSE})
    answer = page(text)({"url": "https://one.example/", "max_length": len(text)})
    with (
        FakeServer([streamed]) as server,
        FakeServer(lambda _: json_reply(answer)) as pages,
    ):
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


@pytest.mark.parametrize("where", [{}, {"SEARCHLOOP_OFFLINE": "1"}])
def test_nothing_found_is_no_success(cli: Cli, where: dict[str, str]) -> None:
    """Words that nobody knows end with their own error, a sentence and exit code 1."""
    ran = cli("ask", "--web", "-o", "json", "Who was Zxqvulon Brzhtek of Ummgrthia?", **where)
    assert ran.code == 1
    assert (ran.json["reason"], ran.json["error"]["code"]) == ("incomplete", "nothing_found")
    assert ran.json["answer"]


def test_a_bare_machine_answers_with_checked_sources(cli: Cli) -> None:
    """No key, no model server, no network: quotes from the library, numbered and verified."""
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


def test_files_go_with_a_question(cli: Cli, tmp_path: Path) -> None:
    """By path, several, and from standard input; a bad one is refused with exit code 2."""
    (tmp_path / "dial.png").write_bytes(png())
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with FakeServer([OPENAI.reply("Good.")]) as server:
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


def test_a_terminal_shows_the_answer_once(tmp_path: Path) -> None:
    """On a terminal the answer is there however quickly it came, and it is there once."""
    ours, theirs = pty.openpty()
    settings = {**CLEAN, "HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path / "home")}
    with os.fdopen(ours, "rb", buffering=0) as screen:
        subprocess.run(
            [sys.executable, "-m", "searchloop.cli", "ask", "Hello"],
            env=settings,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            timeout=200,
            check=True,
        )
        os.close(theirs)
        shown = screen.read(4096).decode()
    assert shown.count("I am not a language model") == 1
    assert shown.endswith("language model.\r\n")


def test_search_is_off_until_it_is_asked_for(cli: Cli) -> None:
    """Without --web nothing is searched."""
    told = cli("ask", "-o", "json", QUESTION).json
    assert (told["search_path"], told["usage"]["searches"]) == ("off", 0)


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


def test_ollama_searches_locally(cli: Cli) -> None:
    """A local model asks for `web_search`; it gets results of ours, and its answer is cited."""
    call = {"function": {"name": "web_search", "arguments": {"query": "native local search"}}}
    steps = [
        [{"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False}],
        [{"message": {"role": "assistant", "content": "The switch decides [1]."}, "done": False}],
    ]
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    replies = [
        Reply(
            "".join(json.dumps(line) + "\n" for line in [*step, end]).encode(),
            headers={"content-type": "application/x-ndjson"},
        )
        for step in steps
    ]
    chats = []

    def answer(request: Any) -> Reply:
        if request.path != "/api/chat":
            return json_reply({"models": []})
        chats.append(request.json)
        return replies[len(chats) - 1]

    with FakeServer(answer) as server:
        ran = cli(
            "ask", "-m", "ollama:small", "--web", "-o", "json", QUESTION, OLLAMA_HOST=server.url
        )
    assert ran.json["answer"] == "The switch decides [1]."
    assert [c["n"] for c in ran.json["citations"]] == [1]
    assert ran.json["search_path"] == "local:library"
    assert [t["function"]["name"] for t in chats[0]["tools"]] == ["open_page", "web_search"]
    result = chats[1]["messages"][-1]
    assert (result["role"], result["tool_name"]) == ("tool", "web_search")
    assert "library://docs/search-switch.md" in result["content"]


def test_the_speed_of_a_local_model_is_told(cli: Cli) -> None:
    """With -v a line of numbers follows the answer; JSON has them always; without, silence."""
    script = [say("Hello."), say("Hello."), say("Hello.")]
    with FakeOllama([Model("m")], script) as server:
        quiet, told, data = (
            cli("ask", "-m", "ollama:m", "Hi", *more, OLLAMA_HOST=server.url)
            for more in ((), ("-v",), ("-o", "json"))
        )
    line = "load 0.1 s, request 0.4 s, answer 0.5 s, 2.0 tokens/s"
    assert line in told.err
    assert line not in quiet.err
    numbers = data.json["performance"]
    assert {"load_ms": 100.0, "prompt_ms": 400.0, "tokens_per_second": 2.0}.items() <= (
        numbers.items()
    )


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["   "], 2, "The question is empty"),
        (["-m", "nonsense", "hi"], 2, "There is no model 'nonsense'. Asked: builtin."),
        (["-m", "nobody:x", "hi"], 2, "There is no model 'nobody:x'. Asked: builtin."),
        (["-m", "builtin:x", "hi"], 2, "no model builtin:x"),
        (["-m", "openai:gpt-5.5", "hi"], 2, "OPENAI_API_KEY"),
        (["--search", "native", "hi"], 2, "Choose local search"),
        (["--session", "none", "hi"], 2, "There is no session 'none'"),
        (["-c", "hi"], 2, "no session to go on with"),
        (["--max-steps", "0", "hi"], 2, "must be at least 1"),
        (["-m", "ollama:small", "hi"], 1, "ollama serve"),
    ],
)
def test_bad_input_names_the_remedy(cli: Cli, args: list[str], code: int, words: str) -> None:
    """One clear sentence on stderr, the right exit code, and nothing stored."""
    ran = cli("ask", *args, OLLAMA_HOST="127.0.0.1:9")
    assert ran.code == code
    assert words in ran.err
    assert ran.err.count("\n") <= 8


def test_a_refused_question_is_json_too(cli: Cli) -> None:
    """With -o json a question that cannot be sent is a `run_finished` with an error."""
    told = cli("ask", "-o", "json", "-m", "openai:gpt-5.5", "hi").json
    assert (told["type"], told["reason"]) == ("run_finished", "error")
    assert told["error"]["code"] == "missing_key"


def test_a_question_of_a_megabyte_is_refused_in_words(cli: Cli) -> None:
    """Too long a question is not sent, and the message says what to do instead."""
    ran = cli("ask", stdin="x" * 1_048_576)
    assert ran.code == 2
    assert "1,000,000" in ran.err
    assert "library add" in ran.err


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


def test_terminal_text_cannot_steer_the_terminal(cli: Cli) -> None:
    """Control characters of an answer are not printed."""
    evil = {
        "message": {"role": "assistant", "content": "a\x1b]8;;http://x\x07b\x9bc"},
        "done": True,
    }
    reply = Reply(
        json.dumps(evil).encode() + b"\n", headers={"content-type": "application/x-ndjson"}
    )
    with FakeServer([reply]) as server:
        ran = cli("ask", "-m", "ollama:small", "hi", OLLAMA_HOST=server.url)
    assert not set(ran.out) & {chr(c) for c in (*range(9), *range(11, 32), *range(127, 160))}


def test_a_plan_names_the_sources_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers are those of the step's sources, not the step's own."""
    step = {"text": "Build it", "files": ["a.txt"], "sources": [3, 5]}
    plan = {"plan_id": "p", "title": "House", "steps": [step], "files": [], "sources": []}
    as_text(iter([Event(1, "plan", plan, 0.0)]), numbers=False)
    told = capsys.readouterr().out
    assert "**Plan: House**\n\n1. Build it - Touches: `a.txt` [3] [5]\n" in told
