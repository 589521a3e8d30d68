"""What a step may cost: one connection, few appends, no wait for the disk, text measured once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bench.fake_openai import answers
from bench.scenarios import Scenario
from searchloop import Agent
from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import Event
from searchloop.agent.run.recorder import BatchWriter, Recorder
from searchloop.agent.run.summary import Summariser, SummarisingProvider
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Settings, load_environment
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import Capabilities, Message, Request, ToolCall
from tests.agent.scripted import Memory, Scripted, says
from tests.fakes import FakeServer, Received, Reply


class Noting(EventLog):
    """A log that notes each append: the types in it, and whether it waited for the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.appends: list[tuple[list[str], bool]] = []

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        self.appends += [([kind for kind, _ in each.events], each.durable) for each in writes]
        return super().append_all(writes)


def called(home: Path, tools: Sequence[Tool], calls: Sequence[ToolCall]) -> list[Any]:
    """The appends of one step's calls."""

    async def step() -> list[Any]:
        log = Noting(home / "s.sqlite3")
        recorder = Recorder(BatchWriter(log), log.create_session(model="m").id, "off")
        await Toolset(tools, "agent", SourceTable()).call_all(tuple(calls), recorder)
        appends = list(log.appends)
        log.close()
        return appends

    return asyncio.run(step())


@tool
async def look(n: int) -> str:
    """Look something up."""
    await asyncio.sleep(0)
    return "seen"


@tool(effect="write")
async def change(n: int) -> str:
    """Change something."""
    await asyncio.sleep(0)
    return "done"


def test_the_steps_of_a_run_share_a_connection(tmp_path: Path) -> None:
    """An answer's end frees its connection before the next question is sent."""
    turns = answers(Scenario("run", "", turns=4, deltas=5))

    @tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    def reply(request: Received) -> Reply:
        return Reply(_chunks(turns[request.body.count(b'"function_call_output"')]))

    with FakeServer(reply) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "SEARCHLOOP_HOME": str(tmp_path)}
        settings = Settings.load(load_environment(environ=env, cwd=tmp_path))
        with Agent(settings, tools=[echo]) as agent:
            answer = agent.ask("hi", model="openai:m")
        assert (answer.reason, len(server.requests)) == ("stop", 4)
        assert len({request.connection for request in server.requests}) == 1


def _chunks(answer: bytes) -> list[bytes]:
    body, pieces = answer.partition(b"\r\n\r\n")[2], []
    while body:
        size, _, body = body.partition(b"\r\n")
        pieces.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return pieces


def test_looking_something_up_waits_for_no_disk(tmp_path: Path) -> None:
    """Calls that change nothing are two appends however many they are, none of them synced."""
    calls = [ToolCall(f"c{n}", "look", {"n": n}) for n in range(5)]
    assert called(tmp_path, [look], calls) == [
        (["tool_call"] * 5, False),
        (["tool_result"] * 5, False),
    ]


def test_a_call_with_an_effect_is_on_disk_before_it_runs(tmp_path: Path) -> None:
    """Such a call and its result are synced, each before anything else happens."""
    assert called(tmp_path, [change], [ToolCall("c", "change", {"n": 1})]) == [
        (["tool_call", "tool_started"], True),
        (["tool_result"], True),
    ]


class Measured(str):
    """Text that notes each time its characters are counted."""

    seen: ClassVar[list[int]] = []

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """See str."""
        self.seen.append(len(self))
        return super().encode(encoding, errors)


async def test_forty_steps_measure_each_message_once(tmp_path: Path) -> None:
    """A step on a model whose window is known costs its own messages, not the whole chat."""
    messages = [Message("user", Measured("word " * 500))]
    answers = [says("Yes.") for _ in range(40)]
    model = Scripted(answers, Capabilities(context=1_000_000))

    log = EventLog(tmp_path / "s.sqlite3")
    writer = Summariser(model, "one", log, log.create_session(model="m").id)
    provider = SummarisingProvider(model, writer, messages, Memory())
    request = Request("one", messages, system="Answer.")
    for step in range(40):
        _ = [event async for event in provider.stream(request)]
        messages.append(Message("assistant", Measured(f"Part {step}. " * 800)))
    log.close()
    assert len(model.requests) == 40
    assert Measured.seen == [len(message.content) for message in messages[:-1]]
