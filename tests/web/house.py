"""A house for the web tests: the real event log, and a runner that answers from a script.

The runner writes the events that a real run writes, so everything behind the log is real.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.approvals import Approvals
from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import Lease
from searchloop.agent.providers import split_model
from searchloop.agent.run.question import asked_data
from searchloop.agent.settings import BUILTIN, Environment, Settings
from searchloop.agent.settings.usual_model import Choice
from searchloop.agent.types import Capabilities, ModelInfo
from searchloop.compose import Services, open_services
from searchloop.web.app import WebApp
from searchloop.web.gate.access import Access

TOKEN = "t" * 43
PORT = 8321
HOST = f"127.0.0.1:{PORT}"
SOURCE = {"n": 1, "url": "https://example.org/a", "title": "A page", "state": "cited"}
MARK = {"span": [6, 9], "quote": "so it is", "verified": True}
CITATION = {**SOURCE, "quote": "so it is", "verified": True, "spans": [[6, 9]], "marks": [MARK]}
ANSWER = "It is [1]."


class FakeProvider:
    """Of its models only the one called `native` has a search of its own."""

    def capabilities(self, model: str) -> Capabilities:
        """See `agent.providers.Provider.capabilities`."""
        return Capabilities(native_search=model == "native")


class ScriptedRunner:
    """A runner that says ANSWER; a question that contains `wait` is answered when it is stopped."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.approvals = Approvals(log)
        self.usual = self.registry = self
        self._runs: dict[str, tuple[Lease, asyncio.Event]] = {}
        self.recovered = self.closed = False

    async def start(self, session_id: str, text: str, **changes: Any) -> str:
        """See `agent.run.runner.Runner.start`."""
        if not text.strip():
            raise ConfigError("empty_question", "The question is empty.", "Write something.")
        session = self._log.session(session_id)
        run = secrets.token_hex(8)
        lease = self._log.leases.claim(session_id, run, "test")
        asked = asked_data(
            text, session, {name: changes.pop(name, None) for name in ("replaces", "plan")}
        )
        self._log.update_session(session_id, title=text[:60], **changes)
        started = {
            "run_id": run,
            "model": "m:x",
            "mode": "ask",
            "search": "off",
            "search_path": "off",
        }
        self._log.append(session_id, [("user_message", asked), ("run_started", started)])
        self._runs[session_id] = (lease, asyncio.Event())
        if "wait" not in text:
            self._finish(session_id, "stop")
        return run

    def _finish(self, session_id: str, reason: str) -> None:
        lease, stopped = self._runs.pop(session_id)
        self._log.append(session_id, [("text_delta", {"text": ANSWER})])
        self._log.append(session_id, answer_events(lease.run_id, reason))
        self._log.leases.release(lease)
        stopped.set()

    async def cancel(self, session_id: str) -> bool:
        """See `agent.run.runner.Runner.cancel`."""
        if session_id not in self._runs:
            return False
        self._finish(session_id, "cancelled")
        return True

    async def models(self) -> list[ModelInfo]:
        """See `agent.run.runner.Runner.registry`."""
        return [ModelInfo("m:x", "X")]

    def provider(self, model: str) -> tuple[FakeProvider, str]:
        """See `agent.run.runner.Runner.provider`."""
        name, rest = split_model(model)
        if name != "m":
            raise ConfigError("unknown_provider", f"No provider {name!r}.", "Providers are m.")
        return FakeProvider(), rest

    async def choose(self) -> Choice:
        """See `agent.settings.usual_model.UsualModel.choose`."""
        return Choice(BUILTIN, "none", "quotes only")

    def use(self, settings: Settings) -> None:
        """See `agent.run.runner.Runner.use`."""

    async def recover(self) -> int:
        """See `agent.run.runner.Runner.recover`."""
        self.recovered = True
        return 0

    async def aclose(self, *, hand_over: bool = False) -> None:
        """See `agent.run.runner.Runner.aclose`."""
        self.closed = True


def answer_events(run: str, reason: str = "stop") -> list[tuple[str, dict[str, Any]]]:
    """A message and the end of the run, as the log gets them."""
    shared = {"citations": [CITATION], "sources": [SOURCE], "usage": {}}
    message = {
        "text": ANSWER,
        "thinking": "",
        "tool_calls": [],
        "step": 1,
        "provider_data": {"provider": "m", "model": "x", "version": "1", "blocks": ["OPAQUE"]},
        **shared,
    }
    finished = {"run_id": run, "reason": reason, "answer": ANSWER, "search_path": "off", **shared}
    return [("message", message), ("run_finished", finished)]


def make_house(home: Path, **env: str) -> Services:
    """What a server works with in this folder; its runner is the script."""
    house = open_services(Environment({"flag": {"SEARCHLOOP_HOME": str(home), **env}}))
    house.runner = ScriptedRunner(house.log)  # type: ignore[assignment]
    return house


@dataclass(frozen=True)
class Answer:
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    repeated: Sequence[tuple[bytes, bytes]] = ()

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        """The error that was answered."""
        error: dict[str, str] = self.data["error"]
        return error


App = Callable[..., Awaitable[None]]


def allowed(**extra: str) -> dict[str, str]:
    """The headers of a request that may come in."""
    return {"host": HOST, "authorization": f"Bearer {TOKEN}", **extra}


async def request(
    app: App,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
    *,
    twice: tuple[str, str] | None = None,
    stalls: bool = False,
    chunks: Sequence[bytes] | None = None,
    enough: Callable[[bytes], bool] = lambda body: False,
    opened: asyncio.Event | None = None,
) -> Answer:
    """One request to an ASGI application; a stream is left when `enough` of it has come.

    A client that `stalls` never ends its body; the header `twice` comes besides those in `headers`;
    `opened` is set when the first bytes are there.
    """
    head = dict(allowed() if headers is None else headers)
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    if body is not None:
        head.setdefault("content-type", "application/json")
    if chunks is None:
        chunks = [body or b""]
        if body:
            head["content-length"] = str(len(body))
    else:
        head["transfer-encoding"] = "chunked"
    pairs = [*head.items(), *([twice] if twice else [])]
    path, _, query = target.partition("?")
    sent, received, left = list(chunks), bytearray(), asyncio.Event()
    starts: list[Any] = []

    async def receive() -> dict[str, Any]:
        if sent:
            piece = sent.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(sent) or stalls}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            starts.append(message)
            return
        received.extend(message.get("body", b""))
        if opened:
            opened.set()
        if enough(bytes(received)) or not message.get("more_body", False):
            left.set()

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in pairs],
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 50000),
    }
    await app(scope, receive, send)
    raw = tuple(starts[0]["headers"]) if starts else ()
    status = starts[0]["status"] if starts else 0
    return Answer(status, {k.decode(): v.decode() for k, v in raw}, bytes(received), raw)


@asynccontextmanager
async def lived(app: WebApp) -> AsyncIterator[None]:
    """The life of an application, from its start to its end."""
    await app.begin()
    try:
        yield
    finally:
        await app.aclose()


@asynccontextmanager
async def living(house: Services) -> AsyncIterator[WebApp]:
    """The whole application between its start and its end."""
    app = WebApp(house, Access(PORT, TOKEN))
    async with lived(app):
        yield app


Ask = Callable[..., Awaitable[Answer]]


@asynccontextmanager
async def asking(house: Services) -> AsyncIterator[Ask]:
    """Asks the whole application of a house, with the token."""
    async with living(house) as app:

        async def ask(method: str, target: str, body: Any = None, **more: Any) -> Answer:
            return await request(app, method, target, allowed(), body, **more)

        yield ask


@asynccontextmanager
async def with_api(home: Path) -> AsyncIterator[tuple[Ask, Services]]:
    """Asks the whole application of a new house."""
    house = make_house(home)
    async with asking(house) as ask:
        yield ask, house


def frames(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    lines = body.split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


def changed(nodes: list[Any], change: list[Any]) -> list[Any]:
    """Returns what a page makes of its nodes when it is sent a change."""
    kept, *tail = json.loads(json.dumps(change))
    for i, node in enumerate(tail[:1]):
        if "more" in node and not isinstance(node, str):
            tail[i] = nodes[kept] + node["more"]
        elif "in" in node and not isinstance(node, str):
            tail[i] = {**nodes[kept], "c": changed(nodes[kept]["c"], node["in"])}
    return nodes[:kept] + tail
