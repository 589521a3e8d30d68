"""What every codec owes, over every recording there is, however the bytes are cut.

A provider is tested by existing: it is found by name, its recordings by folder. It is driven
through its own `create` and `stream`; only the transport is ours, and replays recorded bytes.
"""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import AgentError, ProviderError
from searchloop.agent.search.citations import without_tracking
from searchloop.agent.search.vendor_marks import strip
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    Request,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[3]
OURS = ROOT / "tests" / "recordings"
LARGE = ROOT.parent / "shared" / "recordings"
FOLDERS = {"openai": "openai_responses"}
SIZES = (1, 2, 3, 7, 64)
SMALL = 60_000  # bytes; larger recordings are cut in fewer ways


class Replayed:
    """One recorded answer as the transport gives it, cut into pieces of one size."""

    def __init__(self, answer: Mapping[str, Any], size: int) -> None:
        self.status: int = answer.get("status") or 200
        self._body, kind = wire(answer)
        self.headers = {
            "content-type": kind,
            **{k.lower(): v for k, v in answer["headers"].items()},
        }
        self._size = size

    async def __aenter__(self) -> Replayed:
        return self

    async def __aexit__(self, *rest: object) -> None:
        pass

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), self._size):
            yield self._body[start : start + self._size]

    async def read(self, limit: int = 1 << 20) -> bytes:
        return self._body[:limit]


class ReplayTransport(Transport):
    """Answers every POST with one recording."""

    def __init__(self, answer: Mapping[str, Any], size: int) -> None:
        super().__init__()
        self._answer = answer
        self._size = size

    def post(self, url: str, headers: Any, body: bytes) -> Any:
        return Replayed(self._answer, self._size)

    async def get_json(self, url: str, headers: Any = (), timeout: float = 0) -> Any:  # noqa: ASYNC109
        raise ProviderError("unreachable", "Not recorded.")

    async def post_json(
        self,
        url: str,
        payload: Any,
        headers: Any = (),
        timeout: float = 0,  # noqa: ASYNC109
    ) -> tuple[int, Any]:
        raise ProviderError("unreachable", "Not recorded.")


class Skipping(selectors.DefaultSelector):
    """Waits for nothing: the clock of its loop jumps ahead instead, so retries cost no time."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.ahead += timeout or 0.0
        return super().select(0)


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop on which sleeping takes no time."""

    def __init__(self) -> None:
        self._skipping = Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return super().time() + self._skipping.ahead


def wire(answer: Mapping[str, Any]) -> tuple[bytes, str]:
    """The bytes of a recorded answer, and their content type."""
    if answer.get("text") is None:
        return json.dumps(answer.get("body"), ensure_ascii=False).encode(), "application/json"
    text: str = answer["text"]
    if answer["framing"] == "payload-lines":
        text = "".join(f"data: {line}\n\n" for line in text.splitlines() if line.strip())
    kind = "application/x-ndjson" if answer["framing"] == "ndjson" else "text/event-stream"
    return text.encode(), kind


def endpoint(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2].rpartition(":")[2]


def found() -> Iterator[Any]:
    """Every recorded answer to a chat request of every provider.

    Our own recordings say which endpoint a provider uses; the large set holds others too.
    """
    for name in providers.names():
        folder = name.replace("-", "_")
        ours = sorted((OURS / folder).glob("*.json"))
        large = sorted((LARGE / FOLDERS.get(name, folder)).glob("*.json"))
        used = {endpoint(e["request"]["url"]) for path in ours for e in exchanges(path)}
        for path in (*ours, *large):
            for number, exchange in enumerate(exchanges(path)):
                request = exchange.get("request") or {}
                if not request.get("url") or (
                    request["method"] == "POST" and endpoint(request["url"]) in used
                ):
                    yield pytest.param(name, exchange, id=f"{name}-{path.stem}-{number}")


def exchanges(path: Path) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["exchanges"]
    return recorded


def provider_of(name: str, transport: Transport) -> providers.Provider:
    module = import_module(f"searchloop.agent.providers.{name.replace('-', '_')}")
    keys = {setting.name: "test-key-0123456789" for setting in module.SETTINGS if setting.secret}
    return providers.load(name, keys, transport)


def decode(name: str, exchange: Mapping[str, Any], size: int) -> list[StreamEvent | AgentError]:
    """The events of a recording cut into pieces of `size` bytes; an error is the last of them."""
    transport = ReplayTransport(exchange["response"], size)
    body = (exchange.get("request") or {}).get("body") or {}
    question = Message("user", "When is high water?")
    tools = [t for t in body.get("tools") or () if isinstance(t, dict)]
    asked = "web_search_options" in body or any(":" in t.get("type", "") for t in tools)
    search = NativeSearch() if asked else None
    request = Request(body.get("model") or "some-model", (question,), native_search=search)
    events: list[StreamEvent | AgentError] = []

    async def main() -> None:
        try:
            async for event in provider_of(name, transport).stream(request):
                events.append(event)
        except AgentError as error:
            events.append(error)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(main())
    return events


def comparable(events: list[StreamEvent | AgentError], sent: str) -> list[object]:
    """Contents of events, which compare where messages and errors do not; without minted ids."""
    return [_contents(event, sent) for event in events]


def _contents(event: StreamEvent | AgentError, sent: str) -> object:
    if isinstance(event, AgentError):
        return event.as_dict()
    if not isinstance(event, Finished):
        return event
    calls = tuple(
        call if call.id in sent else replace(call, id=f"minted {number}")
        for number, call in enumerate(event.message.tool_calls)
    )
    return repr(replace(event, message=replace(event.message, tool_calls=calls, encoded={})))


RECORDINGS = list(found())


@pytest.mark.parametrize(("name", "exchange"), RECORDINGS)
def test_events_do_not_depend_on_the_cuts(name: str, exchange: Mapping[str, Any]) -> None:
    """Every recording gives the same events at every chunk size."""
    sent = wire(exchange["response"])[0]
    whole = comparable(decode(name, exchange, len(sent) or 1), sent.decode())
    for size in SIZES if len(sent) < SMALL else SIZES[3:]:
        assert comparable(decode(name, exchange, size), sent.decode()) == whole


@each_row(("name", "exchange"), RECORDINGS)
def test_the_end_agrees_with_the_stream(name: str, exchange: Mapping[str, Any]) -> None:
    """One end, last: its text is what was shown, its citations lie in it and are its sources."""
    *events, last = decode(name, exchange, 1 << 20)
    assert not any(isinstance(event, Finished | AgentError) for event in events)
    if isinstance(last, AgentError):
        assert last.code
        assert last.message
        return
    assert isinstance(last, Finished)
    message = last.message
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.content
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == message.thinking
    assert (last.stop_reason == "tool_calls") == bool(message.tool_calls)
    assert strip(message.content) == message.content
    check_citations(message)


def check_citations(message: Message) -> None:
    """Numbers, ranges, links and sources of one message."""
    assert [citation.n for citation in message.citations] == [*range(1, len(message.citations) + 1)]
    starts = [citation.spans[0] for citation in message.citations if citation.spans]
    assert starts == sorted(starts)
    known = {source.url: source for source in message.sources}
    for citation in message.citations:
        assert known[citation.url].n == citation.n
        assert known[citation.url].state == "cited"
        link = without_tracking(citation.url)
        for start, end in citation.spans:
            assert 0 <= start < end <= len(message.content)
            assert link not in message.content or link in message.content[start:end]


def test_there_are_recordings_of_our_own() -> None:
    """A clone alone tests every provider that speaks to the network."""
    with_codec = {name for name in providers.names() if (OURS / name.replace("-", "_")).is_dir()}
    assert {"openai", "ollama"} <= with_codec
    assert len(RECORDINGS) >= 20
