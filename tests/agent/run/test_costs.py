"""What a step may cost: one connection, few appends, no wait for the disk, text measured once.

What one turn may cost, and how it is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import Event
from searchloop.agent.run.prices import parse_prices, pricer
from searchloop.agent.run.recorder import BatchWriter, Recorder
from searchloop.agent.run.runner import Runner
from searchloop.agent.run.summary import Summariser, SummarisingProvider
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import NoBackend
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import Capabilities, Limits, Message, Meter, Request, ToolCall, Usage
from tests.agent.scripted import MODEL, Memory, Scripted, says, settings


class Noting(EventLog):
    """A log that notes each append: the types in it, and whether it waited for the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.appends: list[tuple[list[str], bool]] = []
        self.synced: list[int] = []  # how many appends each call had that waited for the disk

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        self.appends += [([kind for kind, _ in each.events], each.durable) for each in writes]
        self.synced += [len(writes)] * any(each.durable for each in writes)
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


async def test_questions_of_one_moment_wait_for_the_disk_together(tmp_path: Path) -> None:
    """Twenty questions that are asked at once are stored with one wait for the disk."""
    log = Noting(tmp_path / "s.sqlite3")
    model = Scripted([says("Yes.") for _ in range(20)])
    runner = Runner(settings(tmp_path), log, NoBackend(), providers=[model])
    chats = [log.create_session(model=MODEL).id for _ in range(20)]
    await asyncio.gather(*(runner.start(chat, "What is new?") for chat in chats))
    assert log.synced[0] == 20
    await runner.aclose()
    log.close()


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


PRICES = parse_prices('[models."x:*"]\ninput = 1\noutput = 2\ncached_input = 1\nsearches = 10', "x")
STEP = Usage(input_tokens=1_000_000, output_tokens=500_000, searches=2)


def meter(limits: Limits, model: str = "x:y") -> Meter:
    """One step of a model with known prices, and one search of our own."""
    counted = Meter(limits, pricer(model, (PRICES,)))
    counted.step(STEP)
    counted.tool(Usage(searches=1))
    return counted


def test_our_searches_count_and_cost_nothing() -> None:
    """The provider's searches are paid for, ours are only counted."""
    usage = meter(Limits()).usage
    assert usage.searches == 3
    assert usage.cost_usd == pytest.approx(1 + 1 + 0.02)


def test_a_cost_from_before_a_takeover_is_added_to() -> None:
    """What the log says a run has cost is no price of the steps that follow."""
    counted = Meter(Limits(cost_usd=4.0), pricer("x:y", (PRICES,)))
    counted.step(STEP._replace(cost_usd=2.02))
    assert counted.reached() is None
    counted.step(STEP)
    assert counted.usage.cost_usd == pytest.approx(4.04)
    assert counted.reached() == "the cost limit of $4"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(steps=1), "step limit of 1"),
        (Limits(searches=3), "search limit of 3"),
        (Limits(tokens=1_500_000), "token limit of 1500000"),
        (Limits(cost_usd=2.0), "cost limit of $2"),
        (Limits(seconds=0.0), "time limit of 0 s"),
        (Limits(steps=2, searches=4, pages=1, tokens=2_000_000, cost_usd=3), None),
    ],
)
def test_each_limit_says_its_name(limits: Limits, words: str | None) -> None:
    """What was reached is told in words; ceilings above what was used let the turn go on."""
    assert meter(limits).reached() == (words and f"the {words}")


def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    """One setting names each limit that is wanted; a wrong entry is quoted."""

    def limits(text: str) -> Limits:
        own = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_LIMITS": text}
        return Settings.load(Environment({"environment": own})).limits

    assert limits("") == Limits()
    assert limits("searches=4, cost_usd=0.5,") == Limits(searches=4, cost_usd=0.5)
    every = "steps=12,searches=20,pages=40,tokens=200000,seconds=600,cost_usd=0.50"
    assert limits(every) == Limits(12, 20, 40, 200_000, 600, 0.5)
    for bad in ("0", "-1", "many", "inf", "nan", ""):
        with pytest.raises(ConfigError, match=f"cost_usd is '{bad}'") as number:
            limits(f"searches=4,cost_usd={bad}")
        assert (number.value.code, "SEARCHLOOP_LIMITS" in number.value.remedy) == (
            "bad_limit",
            True,
        )
    for bad in ("2.5", "1e3", "100k"):
        with pytest.raises(ConfigError, match=f"steps is '{bad}', not a whole number above 0"):
            limits(f"steps={bad}")
    for bad in ("4", "cost=1", "steps=1,steps=2", "STEPS=2"):
        with pytest.raises(ConfigError, match="SEARCHLOOP_LIMITS has an entry") as entry:
            limits(bad)
        assert (entry.value.code, "cost_usd" in entry.value.remedy) == ("bad_limits", True)
