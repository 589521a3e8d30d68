"""A runner on a real log and a real transport, before a server that misbehaves as told.

Only the clock is not real: on the loop of `play` a hundred seconds pass in one, so that waits
between tries and time limits cost a test next to nothing, and are still waited for.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import time
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.transport.transport import Timeouts, Transport
from searchloop.agent.types import Limits
from searchloop.analysis.told import ended
from tests.agent.scripted import SearchApp
from tests.chaos.dialects import KEY, Dialect
from tests.fakes import FakeServer, Received, Reply, json_reply

SPEED = 100.0
SILENCE = 40.0  # seconds after which a server counts as silent, on the loop's clock
PATIENT = Timeouts(connect=1500.0, read=3000.0, head=9000.0)
IMPATIENT = Timeouts(connect=1500.0, read=SILENCE, head=9000.0)


class _Hurried(selectors.DefaultSelector):
    """Waits in many small steps, none of which counts for more than it was meant to be: on a
    machine that stands still for a second no hundred seconds have passed.
    """

    ahead = 0.0  # seconds by which the loop's clock is ahead of the one on the wall

    def select(self, timeout: float | None = None) -> Any:
        left = timeout
        while left:
            step = min(left, 1.0)
            began = time.monotonic()
            found = super().select(step / SPEED)
            took = time.monotonic() - began
            passed = min(step, took * SPEED) if found else step
            self.ahead += passed - took
            left -= step
            if found:
                return found
        return super().select(timeout and 0)


class _FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock runs ahead of the one on the wall while there is nothing to do."""

    def __init__(self) -> None:
        self._hurried = _Hurried()
        super().__init__(self._hurried)

    def time(self) -> float:
        return super().time() + self._hurried.ahead


def play(scenario: Coroutine[Any, Any, None]) -> None:
    """Runs a scenario on a fast clock; one that hangs fails after a minute and a half of its
    waiting.
    """

    async def watched() -> None:
        async with asyncio.timeout(90 * SPEED):
            await scenario

    with asyncio.Runner(loop_factory=_FastLoop) as runner:
        runner.run(watched())


class Stage(FakeServer):
    """A server whose script can be changed; its last reply is given again and again."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.kept: list[Received] = []  # the requests of before
        self.aside: Callable[[str, str], Any] = lambda method, path: None
        self._replies: list[Reply] = []
        self._given = 0

    def script(self, *replies: Reply) -> None:
        """What is answered from now on; forgets the requests of before."""
        self._replies, self._given = list(replies), 0
        self.kept += self.requests
        self.requests.clear()

    def next_reply(self, received: Received) -> Reply:
        """Questions about the server are answered beside the script, and not kept."""
        known = self.aside(received.method, received.path)
        return super().next_reply(received) if known is None else json_reply(known)

    def _reply(self, received: Received) -> Reply:
        self._given += 1
        return self._replies[min(self._given, len(self._replies)) - 1]


class House:
    """One session with a provider before a stage, or at an address. Use with `async with`.

    At its end each request has kept the rules, and each run was told as it should be.
    """

    def __init__(
        self,
        home: Path,
        dialect: Dialect,
        server: Stage | str,
        *,
        tools: Iterable[Tool] = (),
        timeouts: Timeouts = PATIENT,
        session: str | None = None,
    ) -> None:
        self._stage = server if isinstance(server, Stage) else None
        url = server if isinstance(server, str) else server.url
        flags = {"SEARCHLOOP_HOME": str(home), **dialect.settings(url)}
        settings = Settings.load(Environment({"flag": flags}))
        self.dialect = dialect
        self.model = f"{dialect.name}:{dialect.models[0]}"
        self.log = EventLog(home / "sessions.sqlite3")
        self.app = SearchApp()
        backend = LocalBackend(self.app)
        self.runner = Runner(settings, self.log, backend, tools, Transport(timeouts))
        self.session = session or self.log.create_session(model=self.model).id

    async def __aenter__(self) -> House:
        if self._stage:
            self._stage.requests.clear()
            self._stage.kept.clear()
        return self

    async def __aexit__(self, error: type[BaseException] | None, *rest: object) -> None:
        await self.runner.aclose()
        events = self.events()
        self.log.close()
        if error is None:
            check_told(events)
            if self._stage:
                check_requests(self.dialect, [*self._stage.kept, *self._stage.requests])

    async def ask(
        self,
        text: str,
        *,
        model: str | None = None,
        search: str | None = None,
        limits: Limits | None = None,
    ) -> Mapping[str, Any]:
        """The data of the `run_finished` that one question came to."""
        name = model and f"{self.dialect.name}:{model}"
        await self.runner.start(self.session, text, model=name, search=search, limits=limits)
        await self.runner.wait(self.session)
        last = self.log.last_event(self.session)
        assert last.type == "run_finished"
        return last.data

    def events(self) -> list[Event]:
        """All of the session."""
        return self.log.read(self.session)

    def results(self) -> list[Mapping[str, Any]]:
        """The tool results so far."""
        return [event.data for event in self.events() if event.type == "tool_result"]


def reply(dialect: Dialect, events: Sequence[bytes], **more: Any) -> Reply:
    """A good answer of this provider, one HTTP chunk an event."""
    headers = {"content-type": dialect.content_type, **more.pop("headers", {})}
    return Reply(events, headers=headers, **more)


def check_requests(dialect: Dialect, requests: Iterable[Received]) -> None:
    """Every request keeps the vendor's rules, and its key is where it belongs."""
    for request in requests:
        dialect.check(read(request.body), request.path)
        assert KEY.encode() not in request.body
        assert KEY not in request.path
        basic = b64encode(f"me:{KEY}".encode()).decode()  # a password in the server's address
        assert any(KEY in value or basic in value for value in request.headers.values())


def read(body: bytes) -> Any:
    """The JSON of a request, as strictly as servers read it."""
    return json.loads(body, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def check_told(events: Sequence[Event]) -> None:
    """Each run ends once, with a reason that its error fits; no key and no internal error shows."""
    begun = [e.data["run_id"] for e in events if e.type == "run_started"]
    ends = [e.data for e in events if e.type == "run_finished"]
    assert [end["run_id"] for end in ends] == begun
    for end in ends:
        assert end["reason"] in ("stop", "limit", "cancelled", "error", "incomplete")
        error = end.get("error")
        if end["reason"] == "error":
            assert error is not None
        if error is not None:
            assert end["reason"] in ("error", "incomplete")
            assert error["code"] != "internal"
            assert all(error[part].strip() for part in ("code", "message", "remedy")), error
            assert ended(error["message"]) == error["message"], error
    assert KEY not in json.dumps([e.data for e in events], ensure_ascii=False)
