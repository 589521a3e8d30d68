"""What goes wrong with a server of one's own: one clear line, and the session goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.tools import Tool
from searchloop.agent.types import ToolSpec
from tests.agent.providers.local_desk import desk
from tests.fake_ollama import Answer, FakeOllama, Model, call, say, slip

M = Model("m")
FAST = {"retry-after-ms": "1"}
MEMORY = "model requires more system memory (16.1 GiB) than is available (7.4 GiB)"
KILLED = "llama runner process has terminated: signal: killed"


@pytest.mark.parametrize(
    ("fault", "reason", "code", "words"),
    [
        ([Answer(status=500, error=MEMORY)], "error", "out_of_memory", "smaller model"),
        ([Answer(status=500, error="CUDA error: out of memory")], "error", "out_of_memory", ""),
        ([say("At 07", error=KILLED)], "error", "model_crashed", "server's log"),
        ([Answer(status=500, error=KILLED, headers=FAST)] * 3, "error", "model_crashed", "again"),
        ([slip(headers=FAST)] * 3, "error", "tool_call_slip", "better at calling tools"),
        ([Answer(status=503, error="server busy", headers=FAST)] * 3, "error", "busy", "moment"),
    ],
)
def test_a_fault_is_told_and_the_session_goes_on(
    tmp_path: Path, fault: list[Answer], reason: str, code: str, words: str
) -> None:
    """One sentence with what to do; the next question of the session is answered."""
    with FakeOllama([M], [*fault, say("At 07:40.")]) as server, desk(server, tmp_path) as session:
        told = session.ask("When?", "ollama:m", search="off")
        assert told.error is not None
        assert (told.reason, told.error["code"]) == (reason, code)
        assert "\n" not in told.error["message"]
        assert words in told.error["remedy"]
        assert session.ask("When?", "ollama:m", search="off").text == "At 07:40."


def test_what_came_before_a_server_died_is_kept(tmp_path: Path) -> None:
    """The half answer stays in the session, and the model reads it with the next question."""
    fault = say("At seven", " or so", drop=60, end="cut")
    with FakeOllama([M], [fault, say("At 07:40.")]) as server, desk(server, tmp_path) as session:
        assert session.ask("When?", "ollama:m", search="off").text == "At seven or so"
        session.ask("Exactly?", "ollama:m", search="off")
    said = [(m["role"], m["content"]) for m in server.chats[1]["messages"][1:]]
    assert said == [("user", "When?"), ("assistant", "At seven or so"), ("user", "Exactly?")]


def test_a_model_that_is_missing(tmp_path: Path) -> None:
    """The pull command and what is there instead, which then answers."""
    with FakeOllama([M], [say("At 07:40.")]) as server, desk(server, tmp_path) as session:
        session.agent.models()
        told = session.ask("When?", "ollama:qwen9:1b", search="off")
        assert told.error is not None
        assert told.error["code"] == "unknown_model"
        assert "`ollama pull qwen9:1b`, or pick one that is there: m" in told.error["remedy"]
        assert session.ask("When?", "ollama:m", search="off").text == "At 07:40."


def test_ten_tools_of_one_name(tmp_path: Path) -> None:
    """The model is offered the name once, its call runs once, and the answer comes."""
    ran: list[int] = []

    def numbered(n: int) -> Tool:
        async def run(arguments: Any, context: Any) -> str:
            ran.append(n)
            return f"From {n}."

        return Tool(ToolSpec("lookup", f"Number {n}", {"type": "object", "properties": {}}), run)

    script = [call("lookup", {}), say("Done.")]
    with (
        FakeOllama([M], script) as server,
        desk(server, tmp_path, tools=[numbered(n) for n in range(10)]) as session,
    ):
        assert session.ask("Look it up.", "ollama:m", search="off").text == "Done."
    offered = [tool["function"]["name"] for tool in server.chats[0]["tools"]]
    assert (offered, ran) == (["lookup"], [0])
