"""`-s`, `--option`, `--schema`: what a question asks of the model beside its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.fakes import FakeServer, Received, Reply, json_reply

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "ids": {"type": "array"}},
    "required": ["city", "ids"],
}
GOOD = '{"city": "Oslo", "ids": [1, 7]}'


def said(text: str) -> Reply:
    """A whole answer."""
    piece = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return Reply([b"data: " + json.dumps(piece).encode() + b"\n\n", b"data: [DONE]\n\n"])


class Chat:
    """A server of the Chat Completions API; keeps what it is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.bodies = list(texts), list[Any]()

    def __call__(self, received: Received) -> Reply:
        if not received.path.endswith("/chat/completions"):
            return json_reply({"data": [{"id": "m"}]})
        self.bodies.append(received.json)
        return said(self.texts.pop(0))


def asked(cli: Cli, *args: str, answers: tuple[str, ...], **more: Any) -> tuple[Any, Any]:
    """How `ask` ran, and the requests that it made."""
    chat = Chat(*answers)
    with FakeServer(chat) as server:
        here = {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", "SEARCHLOOP_OFFLINE": ""}
        ran = cli("ask", "-m", "openai-chat:m", "--no-web", *args, **here, **more)
    return ran, chat.bodies


def test_options_and_system_text_are_sent(cli: Cli, tmp_path: Path) -> None:
    """The text may be in a file."""
    (tmp_path / "pirate.txt").write_text("Talk like a pirate.", "utf-8")
    options = ("--option", "temperature=0.2", "--option", "stop=END", "--option", "max_tokens=9")
    ran, (body,) = asked(cli, "-s", "@pirate.txt", *options, "Who?", answers=("Arr.",))
    assert (ran.code, ran.out) == (0, "Arr.\n")
    assert (body["temperature"], body["stop"], body["max_tokens"]) == (0.2, ["END"], 9)
    assert body["messages"][0]["content"].endswith("Talk like a pirate.")
    _, (body,) = asked(cli, "--system", "Be brief.", "Who?", answers=("Arr.",))
    assert body["messages"][0]["content"].endswith("Be brief.")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--option", "warmth=1"), "There is no option 'warmth'. Choose one of temperature,"),
        (("--option", "temperature=9"), "temperature cannot be '9'. It is a number from 0 to 2."),
        (("--option", "temperature"), "Write key=value"),
        (("-s", "@gone.txt"), "gone.txt cannot be read"),
        (("--schema", "gone.json"), "gone.json cannot be read"),
        (("--schema", "text.json"), "text.json is not JSON"),
        (("--schema", "bad.json"), "The schema is not valid: at $.type"),
        (("-m", "builtin:extractive", "--option", "seed=1"), "builtin takes no option seed."),
        (("-m", "builtin:extractive", "--schema", "good.json"), "builtin shows passages"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    cli: Cli, tmp_path: Path, args: tuple[str, ...], says: str
) -> None:
    """Exit code 2, and no request."""
    (tmp_path / "text.json").write_text("{", "utf-8")
    (tmp_path / "bad.json").write_text('{"type": "thing"}', "utf-8")
    (tmp_path / "good.json").write_text(json.dumps(SCHEMA), "utf-8")
    ran, bodies = asked(cli, *args, "Who?", answers=())
    assert (ran.code, bodies) == (2, [])
    assert says in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_structured_answer_is_json_alone(cli: Cli, tmp_path: Path) -> None:
    """For a pipe into another program."""
    (tmp_path / "city.json").write_text(json.dumps(SCHEMA), "utf-8")
    ran, (body,) = asked(cli, "--schema", "city.json", "Which?", answers=(f"```\n{GOOD}\n```",))
    assert ran.code == 0
    assert json.loads(ran.out) == json.loads(GOOD)
    sent = body["response_format"]["json_schema"]["schema"]
    assert sent == {"additionalProperties": False, **SCHEMA}


def test_one_that_does_not_fit_is_a_failure_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    """After a second try; the exit code tells a script."""
    (tmp_path / "city.json").write_text(json.dumps(SCHEMA), "utf-8")
    ran, bodies = asked(cli, "--schema", "city.json", "Which?", answers=("Oslo", '{"city": "O"}'))
    assert (ran.code, len(bodies)) == (1, 2)
    assert "does not fit the schema" in ran.err
    assert "'ids' is a required property" in ran.err


def test_a_chat_keeps_its_instructions(cli: Cli) -> None:
    """Each question of it has them."""
    chat = Chat("Arr.", "Aye.")
    with FakeServer(chat) as server:
        here = {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", "SEARCHLOOP_OFFLINE": ""}
        args = ("chat", "-m", "openai-chat:m", "-s", "Be brief.", "--option", "seed=3")
        assert cli(*args, stdin="One?\nTwo?\n", **here).code == 0
    for body in chat.bodies:
        assert body["seed"] == 3
        assert "Be brief." in body["messages"][0]["content"]
