"""A model, a search backend and an emitter that do what a test tells them to."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import AgentError
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.providers import Abilities, Provider
from searchloop.agent.run.runner import Runner
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool, ToolSource
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.types import (
    Capabilities,
    Citation,
    Finished,
    Mark,
    Message,
    ModelInfo,
    PageOpened,
    Request,
    SearchFinished,
    SearchStarted,
    Source,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
)

MODEL = "scripted:one"


def code_of(action: Callable[[], object]) -> str:
    """The code of the error that this raises; it has a sentence and a remedy."""
    with pytest.raises(AgentError) as caught:
        action()
    assert caught.value.message
    assert caught.value.remedy
    return caught.value.code


def abandon(log: EventLog) -> None:
    """Makes the holders of all runs look silent for longer than a lease."""
    with log._db.transaction() as db:
        db.execute("UPDATE runs SET beat = beat - 60")


class Hold:
    """In a script: the model falls silent here. `reached` is set, then nothing until a stop."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.left = threading.Event()

    async def wait(self) -> None:
        """Until this is cancelled."""
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


Item = StreamEvent | Exception | Hold
Step = Sequence[Item]


def says(text: str, *, why: StopReason = "stop", usage: Usage | None = None, **more: Any) -> Step:
    """A step that writes this text, in pieces of seven characters, and ends."""
    pieces = [TextDelta(text[i : i + 7]) for i in range(0, len(text), 7)]
    return [*pieces, Finished(Message("assistant", text, **more), why, usage or Usage())]


def calls(*made: ToolCall, text: str = "", why: StopReason = "tool_calls") -> Step:
    """A step that asks for tools."""
    return [Finished(Message("assistant", text, tool_calls=made), why, Usage())]


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    """A tool call with the id `call-NUMBER`."""
    return ToolCall(f"call-{number}", name, arguments)


def native(text: str, url: str, *, why: StopReason = "stop") -> Step:
    """A step of a model that searches by itself and cites one page for the whole text."""
    message = Message(
        "assistant",
        text,
        citations=(Citation(1, url, "A page", marks=(Mark((0, len(text))),)),),
        sources=(Source(url, "A page", "cited", 1), Source("https://other.example/", "Other")),
    )
    return [
        ThinkingDelta("Let me look."),
        SearchStarted("tides"),
        SearchFinished("tides", results=2),
        PageOpened(url),
        TextDelta(text),
        Finished(message, why, Usage(input_tokens=5, output_tokens=2)),
    ]


class Scripted:
    """A provider that plays one step a request and keeps the requests as they were."""

    name = "scripted"
    abilities = Abilities()

    def __init__(self, steps: Iterable[Step], can: Capabilities | None = None) -> None:
        self.steps = list(steps)
        self._can = can or Capabilities()
        self.requests: list[Request] = []

    def capabilities(self, model: str) -> Capabilities:
        """What the test says."""
        return self._can

    def check(self, model: str) -> None:
        """There is nothing that could be missing."""

    async def models(self) -> list[ModelInfo]:
        """The one there is."""
        return [ModelInfo(MODEL, capabilities=self._can, local=True)]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The next step."""
        self.requests.append(replace(request, messages=tuple(request.messages)))
        for item in self.steps.pop(0):
            if isinstance(item, Hold):
                await item.wait()
            elif isinstance(item, Exception):
                raise item
            else:
                yield item


class Memory:
    """An emitter that keeps everything."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.said = ""

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Joins the text."""
        self.said += event.text if isinstance(event, TextDelta) else ""

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Keeps it."""
        self.events.append((type, dict(data)))

    async def activity(self, event: StreamEvent) -> None:
        """Keeps it under its class's name."""
        self.events.append((type(event).__name__, {}))

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """The data of the events of these kinds."""
        return [data for kind, data in self.events if kind in kinds]


class Played:
    """One run of the loop and all that it left."""

    def __init__(self, tools: Iterable[Tool], *steps: Step) -> None:
        self.provider = Scripted(steps)
        self.memory = Memory()
        self.messages = [Message("user", "When?")]
        table = SourceTable()
        self.outcome: Outcome = asyncio.run(
            run_agent_loop(
                self.messages,
                Request("one", ()),
                provider=self.provider,
                tools=Toolset(tools, "agent", table),
                emit=self.memory,
                sources=table,
            )
        )

    @property
    def ended(self) -> tuple[str, str | None]:
        """Why it ended, and the code of what the answer lacks."""
        return self.outcome.reason, self.outcome.error.code if self.outcome.error else None

    @property
    def results(self) -> list[Message]:
        """The tools' answers."""
        return [message for message in self.messages if message.role == "tool"]


Answer = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]


class SearchApp:
    """A WSGI search backend: an answer a route; `requests` is what it was asked."""

    def __init__(self, routes: Mapping[str, Answer] | None = None, status: str = "200 OK") -> None:
        self.routes = {"/api/engines": ENGINES, **(routes or {})}
        self.status = status
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        asked = json.loads(environ["wsgi.input"].read() or b"{}")
        self.requests.append((path, asked))
        answer = self.routes[path]
        start(self.status, [("Content-Type", "application/json")])
        return [json.dumps(answer(asked) if callable(answer) else answer).encode()]


ENGINES = {"engines": [{"name": "tin", "available": True, "position": 1}]}


def found(*urls: str, status: str = "ok") -> dict[str, Any]:
    """An answer of /api/web-search."""
    rows = [{"title": f"Page {url}", "url": url, "snippet": "…", "source": "tin"} for url in urls]
    attempt = {"engine": "tin", "status": status, "ms": 3}
    if status == "error":
        attempt["error"] = {"code": "down", "message": "The engine is down.", "remedy": "Wait."}
    engine = "tin" if status == "ok" else None
    return {"engine": engine, "status": status, "results": rows, "attempts": [attempt]}


def page(content: str, *, status: str = "ok", links: Sequence[str] = ()) -> Answer:
    """An answer of /api/open-page, for whatever address."""

    def answer(asked: dict[str, Any]) -> Mapping[str, Any]:
        cut = content[: asked.get("max_length", 8000)]
        return {
            "url": asked["url"],
            "title": "A page",
            "content": cut,
            "content_length": len(cut),
            "original_length": len(content),
            "truncated": len(cut) < len(content),
            "next_offset": len(cut) if len(cut) < len(content) else None,
            "status": status,
            "error": None,
            "links": list(links),
        }

    return answer


def settings(home: Path, **values: str) -> Settings:
    """Settings with this home and the scripted model."""
    layer = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_MODEL": MODEL, **values}
    return Settings.load(Environment({"flag": layer}))


@dataclass
class House:
    """A runner with everything it stands on."""

    runner: Runner
    log: EventLog
    session: str
    app: SearchApp

    async def ask(self, text: str, **options: Any) -> Event:
        """The `run_finished` of one turn."""
        await self.runner.start(self.session, text, **options)
        await self.runner.wait(self.session)
        return self.log.last_event(self.session)

    async def event(self, kind: str, number: int = 1) -> Event:
        """The first event of this kind, or a later one, once it is there."""
        async for batch in self.log.follow(self.session):
            for event in batch:
                number -= event.type == kind
                if not number:
                    return event
        raise AssertionError("the session ended")

    async def decide(self, decision: str, *changed: Mapping[str, Any], **options: Any) -> Event:
        """Asks a question whose first call needs a decision, gives it; the request of the call."""
        await self.runner.start(self.session, "Do it.", **{"mode": "agent", **options})
        asked = await self.event("approval_requested")
        self.runner.approvals.answer(self.session, asked.data["call_id"], decision, *changed)
        await self.runner.wait(self.session)
        return asked

    def kinds(self) -> list[str]:
        """The types of the session's events, in order."""
        return [event.type for event in self.log.read(self.session)]


@asynccontextmanager
async def open_house(
    home: Path,
    *providers: Provider,
    app: SearchApp | None = None,
    tools: Iterable[Tool] = (),
    bring: Iterable[ToolSource] = (),
    search: str = "off",
    **values: str,
) -> AsyncIterator[House]:
    """A house with one session; closed in the end."""
    app = app or SearchApp()
    log = EventLog(home / "sessions.sqlite3")
    own = settings(home, **values)
    runner = Runner(own, log, LocalBackend(app), tools, providers=providers, bring=bring)
    session = log.create_session(model=own.model, search=search).id
    try:
        yield House(runner, log, session, app)
    finally:
        await runner.aclose()
        log.close()


def check_calls_are_answered(transcript: list[Message]) -> None:
    """Every call is followed by exactly one result before anybody else speaks."""
    open_calls: list[str] = []
    for message in transcript:
        if message.role == "tool":
            assert message.tool_call_id in open_calls, "a result without its call"
            open_calls.remove(message.tool_call_id)
        else:
            assert not open_calls, f"{message.role} speaks while {open_calls} wait"
            open_calls = [call.id for call in message.tool_calls]
    assert not open_calls


@contextmanager
def no_room(path: Path) -> Iterator[None]:
    """No file of this process may grow beyond the size that `path` has now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def reached(hold: Hold) -> None:
    """Until a script has come to its hold."""
    assert await asyncio.to_thread(hold.reached.wait, 20), "the script never came to its hold"
