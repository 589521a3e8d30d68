"""Ctrl-C on a terminal, at each moment at which a command waits for something."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.screen import CHANGE, Terminal, data, notes, online, said, serving
from tests.fakes import FakeServer, Received, Reply
from tests.waiting import until

BEGUN = Reply([data({"content": "It begins "})], end="stall")
MUTE = "import pathlib, sys; pathlib.Path('up').touch(); sys.stdin.read()"


class Moment(NamedTuple):
    """What is typed, and the sign that it waits now: a path that was asked for, a file that was
    made, or words on the screen.
    """

    typed: str
    asked: str = ""
    made: str = ""
    shown: str = ""
    left: str = "Stopped."


MOMENTS = {
    "a model has not answered yet": Moment("ask Wait", asked="/v1/chat/completions"),
    "a model answers": Moment("ask Speak", shown="It begins"),
    "a tool asks": Moment("ask --workspace ws --mode agent Change", shown="[n] no"),
    "a list of models is awaited": Moment("models", asked="/api/tags"),
    "a model is pulled": Moment("models pull tiny", asked="/api/pull"),
    "a search is under way": Moment("search tea", asked="/api/web-search"),
    "a page is opened": Moment("open https://a.example/", asked="/api/open-page"),
    "a claim's page is opened": Moment("check Tea. https://a.example/", asked="/api/open-page"),
    "an audit reads": Moment(
        "audit report.md", asked="/api/open-page", left="this is the part that was done"
    ),
    "setup asks": Moment("setup --engine brave", shown="Enter = as it is"),
    "an MCP server starts": Moment("mcp test mute", made="up"),
    "a doctor looks": Moment("doctor", asked="/api/tags"),
}


@contextmanager
def waiting(folder: Path, moment: Moment) -> Iterator[tuple[FakeServer, dict[str, str]]]:
    """Models, Ollama and a search backend at one address, none of which gets to an end; nor does an
    MCP server, where it is what is waited for.
    """
    notes(folder)
    (folder / "report.md").write_text("Tea is green. [1]\n\n[1]: https://a.example/\n")
    (folder / "home").mkdir()
    if moment.made:
        mute = {"command": sys.executable, "args": ["-c", MUTE], "cwd": str(folder)}
        (folder / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"mute": mute}}))

    def answer(received: Received) -> Reply:
        if b"Speak" in received.body:
            return BEGUN
        return CHANGE if b"Change" in received.body else Reply(before="stall")

    with FakeServer(answer) as server:
        there = {"OLLAMA_HOST": server.url, "SEARCH_BACKEND_URL": server.url}
        yield server, {**online(server), **there}


@pytest.mark.parametrize("name", MOMENTS)
def test_ctrl_c_ends_a_command_that_waits(name: str, tmp_path: Path) -> None:
    """With one sentence and code 130; nobody is kept waiting, and nothing was done."""
    moment = MOMENTS[name]
    with waiting(tmp_path, moment) as (server, settings):
        with Terminal(tmp_path, *moment.typed.split(), **settings) as at:
            if moment.shown:
                at.until(moment.shown)
            else:
                until(
                    lambda: (
                        (moment.made and (tmp_path / moment.made).exists())
                        or any(each.path == moment.asked for each in server.requests)
                    )
                )
            at.interrupt()
            code, left = at.ended()
        assert (code, moment.left in left, "Traceback" in left) == (130, True, False), left
        for each in server.requests:
            if each.path == moment.asked:
                assert each.gone.wait(90)
    assert (tmp_path / "ws" / "a.txt").read_text() == "one\n"


def test_ctrl_c_in_a_chat_stops_the_answer_and_not_the_program(tmp_path: Path) -> None:
    """The upstream connection is closed, what was said stays, a call that asks does not run, and
    the next question is answered.
    """
    file = notes(tmp_path)
    with (
        serving(BEGUN, CHANGE, said("Back.")) as server,
        Terminal(tmp_path, **online(server)) as chat,
    ):
        chat.work_in("ws")
        chat.type("Speak")
        chat.until("It begins")
        chat.interrupt()
        chat.until("Stopped.")
        assert server.requests[-1].gone.wait(90)
        chat.until("> ")
        chat.interrupt_until("ends the chat")
        chat.type("Change it")
        chat.until("[n] no")
        chat.interrupt()
        chat.until("Stopped.")
        chat.until("> ")
        chat.type("Again")
        chat.until("Back.")
        chat.type("/quit")
        assert chat.ended()[0] == 0
        assert "It begins" in str(server.requests[-1].json["messages"])
    assert file.read_text() == "one\n"
