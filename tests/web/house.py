"""A house for the web tests: all that a server works with is real, but for its model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Environment
from searchloop.agent.types import Capabilities, ModelInfo, Request, StreamEvent
from searchloop.compose import Services, open_services
from searchloop.web.app import WebApp
from searchloop.web.gate.access import Access
from tests.agent.scripted import Hold, Scripted, says
from tests.ports import closed_address

TOKEN = "t" * 43
PORT = 8321
HOST = f"127.0.0.1:{PORT}"
SOURCE = {"n": 1, "url": "https://example.org/a", "title": "A page", "state": "cited"}
MARK = {"span": [6, 9], "quote": "so it is", "verified": True}
CITATION = {**SOURCE, "quote": "so it is", "verified": True, "spans": [[6, 9]], "marks": [MARK]}
ANSWER = "It is [1]."


class Talker(Scripted):
    """Says ANSWER to all but questions with `wait`; its model `native` has a search of its own."""

    name = "m"

    def __init__(self) -> None:
        super().__init__([])

    def capabilities(self, model: str) -> Capabilities:
        """See `agent.providers.Provider.capabilities`."""
        return Capabilities(native_search=model == "native")

    async def models(self) -> list[ModelInfo]:
        """See `agent.providers.Provider.models`."""
        return [ModelInfo("m:x", "X")]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `agent.providers.Provider.stream`."""
        waits = "wait" in request.messages[-1].content
        self.steps = [[Hold()] if waits else says(ANSWER)]
        async for event in super().stream(request):
            yield event


def answer_events() -> list[tuple[str, dict[str, Any]]]:
    """A message and the end of its run, as the log gets them."""
    shared = {"citations": [CITATION], "sources": [SOURCE], "usage": {}}
    message = {
        "text": ANSWER,
        "thinking": "",
        "tool_calls": [],
        "step": 1,
        "provider_data": {"provider": "m", "model": "x", "version": "1", "blocks": ["OPAQUE"]},
        **shared,
    }
    finished = {"run_id": "r", "reason": "stop", "answer": ANSWER, "search_path": "off", **shared}
    return [("message", message), ("run_finished", finished)]


def make_house(home: Path, **env: str) -> Services:
    """What a server works with in this folder, with a model of our own."""
    flags = {"SEARCHLOOP_HOME": str(home), "OLLAMA_HOST": closed_address(), **env}
    house = open_services(Environment({"flag": flags}))
    own = {"providers": [Talker()], "bring": [house.mcp]}
    house.runner = Runner(house.settings, house.log, house.backend, **own)
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
async def lived(app: WebApp) -> AsyncIterator[WebApp]:
    """An application between its start and its end."""
    await app.begin()
    try:
        yield app
    finally:
        await app.aclose()


def living(house: Services) -> AbstractAsyncContextManager[WebApp]:
    """The whole application of a house, between its start and its end."""
    return lived(WebApp(house, Access(PORT, TOKEN)))


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
