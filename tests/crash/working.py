"""A run worth breaking: it searches, saves a file, answers, and can be asked to go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from searchloop.agent.errors import AgentError, ToolError
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings.private_files import replace_private
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.types import Request, StreamEvent
from tests.agent.scripted import (
    MODEL,
    Scripted,
    SearchApp,
    call,
    calls,
    check_calls_are_answered,
    found,
    says,
    settings,
)

STEPS = {
    "search": calls(call("web_search", 1, query="tides"), text="I look."),
    "save": calls(call("save", 2)),
    "answer": says("Whole."),
    "again": says("More."),
}


class Thinking(Scripted):
    """A model that searches, saves and answers, and knows from the transcript where it is."""

    def asked(self, step: str) -> None:
        """Hears which step it is."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See Scripted."""
        messages = list(request.messages)
        check_calls_are_answered(messages)
        last = max(i for i, m in enumerate(messages) if m.role == "user")
        results = sum(m.role == "tool" for m in messages[last:])
        again = "again" in messages[last].content
        step = "again" if again else list(STEPS)[min(results, 2)]
        self.asked(step)
        self.steps = [STEPS[step]]
        async for event in super().stream(request):
            yield event


class Working:
    """A runner on a store in `home`; `saved` counts how often the file was written."""

    def __init__(
        self,
        home: Path,
        make: Callable[[Path], EventLog] = EventLog,
        session: str | None = None,
        model: Thinking | None = None,
    ) -> None:
        self.home = home
        self.log = make(home / "sessions.sqlite3")
        self.saved = 0
        backend = LocalBackend(SearchApp({"/api/web-search": found("https://tides.example/")}))
        tools, own, model = [self.save_tool()], settings(home), model or Thinking([])
        self.runner = Runner(own, self.log, backend, tools, providers=[model])
        self.session = session or self.log.create_session(model=MODEL, search="local").id

    def save_tool(self) -> Tool:
        """The tool that writes the file."""

        @tool(effect="write")
        async def save() -> str:
            """Keep it."""
            self.saved += 1
            try:
                replace_private(self.home / "kept", "07:40")
            except OSError as error:
                raise ToolError("not_saved", str(error), "Try again.") from error
            return "kept"

        return save

    async def ask(self, text: str, approve: Approve = "auto", mode: str = "agent") -> None:
        """One question, to the end of its run."""
        await self.runner.start(self.session, text, mode=mode, approve=approve)
        await self.runner.wait(self.session)

    async def goes_on(self) -> None:
        """What is left is taken up, and the next question is answered."""
        await self.runner.recover()
        await self.runner.wait(self.session)
        await self.ask("again")
        assert self.log.last_event(self.session).data["answer"] == "More."

    async def says_yes(self) -> None:
        """The user, who allows everything that is asked."""
        async with aclosing(self.log.follow(self.session)) as batches:
            async for batch in batches:
                for event in batch:
                    if event.type == "approval_requested":
                        with suppress(AgentError):  # it was answered before
                            await asyncio.to_thread(self.answer, event.data["call_id"])

    def answer(self, call: str) -> None:
        """Allows one call."""
        self.runner.approvals.answer(self.session, call, "once")

    async def close(self) -> None:
        """The end."""
        await self.runner.aclose()
        self.log.close()


def check_once(events: Sequence[Event]) -> None:
    """What `ask("hi")` and `goes_on` came to, whatever happened meanwhile: nothing is there twice,
    and if the first question is not there it was refused.
    """
    kinds = Counter(event.type for event in events)
    questions = [event.data["text"] for event in events if event.type == "user_message"]
    assert questions in (["hi", "again"], ["again"])
    assert kinds["run_started"] == kinds["run_finished"] == len(questions)
    for name in ("tool_call", "tool_started", "tool_result", "message"):
        own = [
            e.data.get("call_id") or (e.data["step"], e.data["text"])
            for e in events
            if e.type == name
        ]
        assert len(own) == len(set(own)), name
