"""Our whole loop as a library: runner, provider, tools, the log on disk, a reader of its events.

Settings come from the environment, as for any user: OPENAI_BASE_URL names the fake server and
SEARCHLOOP_HOME a fresh folder. Each sample is a new session, but for a history, which lives in one.
The model is one whose window is known, as that of most users' models.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from bench.clock import WrongResult, report, take
from bench.scenarios import MODEL, Outcome, Scenario
from searchloop import Agent, Answer, Stream
from searchloop.agent.log import EventLog
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import NoBackend
from searchloop.agent.types import Limits

_MODEL = f"openai:{MODEL}"
_QUESTION = "Do the work."


class Tools:
    """The tools of a scenario, which count their calls."""

    def __init__(self, scenario: Scenario) -> None:
        self.calls = 0
        self._scenario = scenario
        self._result = "x" * scenario.result or "ok"

    def made(self) -> Tool:
        """The tool that the model will call."""

        async def echo(text: str) -> str:
            """A tool to measure with."""
            self.calls += 1
            return self._result

        async def read_page(text: str) -> str:
            """A tool to measure with."""
            self.calls += 1
            return self._result

        async def wait(seconds: float) -> str:
            """A tool to measure with."""
            self.calls += 1
            await asyncio.sleep(seconds)
            return self._result

        def block(seconds: float) -> str:
            """A tool to measure with."""
            time.sleep(seconds)
            self.calls += 1
            return self._result

        named: dict[str, Callable[..., Any]] = {
            "echo": echo,
            "page": read_page,
            "wait": wait,
            "block": block,
        }
        made: Tool = tool(named[self._scenario.tool])
        return made


class Library:
    """One question after another through `Agent`, as a program of a user's asks them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._tools = Tools(scenario)
        tools = [self._tools.made()] if scenario.turns > 1 else []
        self._agent = Agent(Settings.load(), tools=tools)
        self._limits = Limits(steps=scenario.turns + 1)
        self._session = self._with_history() if scenario.history else None

    def _with_history(self) -> str:
        log, words = self._agent.log, "word " * (self._scenario.length // 5)
        session = log.create_session(model=_MODEL).id
        turn = [("user_message", {"text": words}), ("message", {"text": words})]
        log.append(session, turn * (self._scenario.history // 2))
        return session

    def run(self) -> Answer[Any]:
        """One question, answered, with each of its events read."""
        stream: Stream[Any] = self._agent.stream(
            _QUESTION, session=self._session, model=_MODEL, limits=self._limits
        )
        with stream:
            for _ in stream:
                pass
        assert stream.answer is not None
        return stream.answer

    def outcome(self, answer: Answer[Any]) -> Outcome:
        """What the answer and the log say was done."""
        if answer.reason != "stop":
            raise WrongResult(f"{self._scenario.name}: {answer.reason}, {answer.error}")
        calls, self._tools.calls = self._tools.calls, 0
        return Outcome(calls, len(answer.text), written(self._agent.log, answer.session_id))

    def close(self) -> None:
        """Ends the agent."""
        self._agent.close()


class Crowd:
    """Many questions at once on one loop."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._tools = Tools(scenario)
        settings = Settings.load()
        self._log = EventLog(settings.store)
        self._runner = Runner(settings, self._log, NoBackend(), [self._tools.made()])

    async def run(self) -> list[str]:
        """All of them, answered; their sessions."""
        return await asyncio.gather(*(self._one() for _ in range(self._scenario.at_once)))

    async def _one(self) -> str:
        session = self._log.create_session(model=_MODEL).id
        await self._runner.start(session, _QUESTION)
        async with aclosing(self._log.follow(session)) as batches:
            async for batch in batches:
                if batch[-1].type == "run_finished":
                    break
        await self._runner.wait(session)
        return session

    def outcome(self, sessions: list[str]) -> Outcome:
        """What the log says was done."""
        answers = [self._log.last_event(session).data for session in sessions]
        calls, self._tools.calls = self._tools.calls, 0
        characters = sum(len(answer["answer"]) for answer in answers)
        return Outcome(calls, characters, sum(written(self._log, s) for s in sessions))

    async def aclose(self) -> None:
        """Ends the runner."""
        await self._runner.aclose()
        self._log.close()


def written(log: EventLog, session: str) -> int:
    """How many answers of the model the last run has in the log."""
    steps = 0
    for event in log.read(session):
        steps = 0 if event.type == "user_message" else steps + (event.type == "message")
    return steps


def main() -> None:
    """Argument: {"scenario": ...} as JSON. Prints the samples as JSON."""
    scenario = Scenario(**json.loads(sys.argv[1])["scenario"])
    if scenario.at_once > 1:
        with asyncio.Runner() as loop:
            crowd = Crowd(scenario)
            samples = take(scenario, lambda: loop.run(crowd.run()), crowd.outcome)
            loop.run(crowd.aclose())
    else:
        library = Library(scenario)
        samples = take(scenario, library.run, library.outcome)
        library.close()
    print(json.dumps(report(samples)))


if __name__ == "__main__":
    main()
