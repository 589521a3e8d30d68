"""Replays a trace offline: checks that the same bytes still decode to the same answer."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.log.events import Event, event_of, message_data, messages_from, sent
from searchloop.agent.providers import load, settings_of, split_model
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.text import plain
from searchloop.agent.transport.exchange import Headers, Origin, Response, redirected
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ANYWHERE, Finished, Request, ToolSpec, Usage

_NOWHERE = Origin("https", "recorded.invalid", 443)
_COMPARED = ("text", "thinking", "tool_calls", "citations", "stop_reason")


@dataclass(frozen=True, slots=True)
class Compared:
    """One step of a run: what `differs` in its message, or why it cannot be compared."""

    run_id: str
    step: int
    model: str
    differs: tuple[str, ...] = ()
    problem: str = ""

    @property
    def same(self) -> bool:
        return not (self.differs or self.problem)


def read_trace(text: str) -> list[Event]:
    """Returns the events of a trace, one JSON object a line. Raises ConfigError."""
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            events.append(event_of(data.pop("seq"), data.pop("type"), data, data.pop("at")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(f"line {number} is no event: {type(error).__name__}") from None
    return events


def _damaged(why: str) -> ConfigError:
    what = f"This is not a trace, or it was damaged: {why}."
    return ConfigError("bad_trace", what, "Save one: searchloop export ID --format trace.")


async def replay(events: Sequence[Event], env: Mapping[str, str]) -> list[Compared]:
    """Compares every recorded step, with providers of `env`. Raises ConfigError without any."""
    try:
        steps = list(_steps(events))
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(f"an event lacks what it should have ({error})") from None
    compared = [await _compared(step, env) for step in steps]
    if not compared:
        what = "The trace holds nothing that a provider answered."
        remedy = "Set SEARCHLOOP_TRACE=1, ask again, and save the trace of that chat."
        raise ConfigError("nothing_recorded", what, remedy)
    return compared


@dataclass(frozen=True, slots=True)
class _Step:
    started: Mapping[str, Any]
    before: Sequence[Event]
    exchanges: tuple[Mapping[str, Any], ...]
    tools: tuple[ToolSpec, ...]
    said: Mapping[str, Any]


def _steps(events: Sequence[Event]) -> Iterator[_Step]:
    started: Mapping[str, Any] = {}
    exchanges: list[Mapping[str, Any]] = []
    tools: tuple[ToolSpec, ...] = ()
    for place, event in enumerate(events):
        if event.type == "run_started":
            started, tools = event.data, ()
            exchanges.clear()
        elif event.type == "exchange":
            exchanges.append(event.data)
            if "tools" in event.data:
                tools = tuple(ToolSpec(**tool) for tool in event.data["tools"])
        elif event.type == "message" and exchanges:
            if not event.data.get("partial"):
                yield _Step(started, events[:place], tuple(exchanges), tools, event.data)
            exchanges.clear()


async def _compared(step: _Step, env: Mapping[str, str]) -> Compared:
    known = {"run_id": "?", "model": "?", **step.started, "step": 0, **step.said}
    about = (str(known["run_id"]), known["step"], str(known["model"]))
    try:
        again = await _decoded(step, env)
        old, new = _comparable(step.said), _comparable(again)
        return Compared(*about, tuple(name for name in _COMPARED if old[name] != new[name]))
    except AgentError as error:
        return Compared(*about, problem=f"{error.code}: {error.message}")
    except Exception as error:  # the file may hold anything: report what a decoder makes of it
        return Compared(*about, problem=f"damaged: {type(error).__name__}: {error}")


async def _decoded(step: _Step, env: Mapping[str, str]) -> dict[str, Any]:
    """Returns the data of the message that today's codec makes of the step."""
    provider, model = split_model(step.started["model"])
    messages = messages_from(step.before)
    native = str(step.started.get("search_path", "")).startswith("native:")
    request = Request(
        model, sent(messages), tools=step.tools, native_search=ANYWHERE if native else None
    )
    transport = _Recorded(step.exchanges)
    made_up = {each.name: "made-up-key" for each in settings_of(provider) if each.secret}
    speaker = load(provider, {**env, **made_up}, transport)
    async with aclosing(speaker.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, Finished):
                reply = settle(event.message, SourceTable.of(messages))
                why = event.stop_reason
                return message_data(reply, step=0, usage=Usage(), stop_reason=why)
    raise ProviderError("incomplete", "The recorded answer has no end.")


def _comparable(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the message as JSON without ids of calls: some codecs make new ones each time."""
    value: dict[str, Any] = json.loads(json.dumps(plain(data)))
    for call in value["tool_calls"]:
        call.pop("id", None)
    return value


class _Recorded(Transport):
    """Answers each request with what was recorded for it, in order; opens no connection."""

    def __init__(self, exchanges: Iterable[Mapping[str, Any]]) -> None:
        super().__init__()
        # A request that failed was sent again; the answer was made of the one that succeeded.
        self._rest = [e for e in exchanges if e["status"] < 400 and e["whole"]]

    def _exchange(
        self, method: str, url: str, headers: Headers, body: bytes | None
    ) -> AbstractAsyncContextManager[Response]:
        wanted = (method, _endpoint(urlsplit(url).path))
        for place, each in enumerate(self._rest):
            if (each["method"], _endpoint(each["path"])) == wanted:
                return _answer(self._rest.pop(place))
        raise ProviderError("not_recorded", f"No answer to {method} {wanted[1]} was recorded.")


def _endpoint(path: str) -> str:
    """Returns the last part of a path: base addresses differ."""
    return path.rstrip("/").rpartition("/")[2]


@asynccontextmanager
async def _answer(data: Mapping[str, Any]) -> AsyncIterator[Response]:
    """Opens one recorded answer as an exchange."""
    if "location" in data:
        raise redirected(_NOWHERE, data["status"], data["location"])
    body = base64.b64decode(data["base64"]) if "base64" in data else data["body"].encode()
    pieces = iter((body, b""))

    async def read() -> bytes:
        return next(pieces)

    yield Response(data["status"], {"content-type": data.get("kind", "")}, read)


def as_dict(compared: Compared) -> dict[str, Any]:
    """Returns a step as JSON data, with `same`."""
    return {**asdict(compared), "same": compared.same}
