"""Whatever came before in a session, the next request is one that its vendor accepts.

A session is a random walk: any provider, model, search setting and mode, with calls that work and
calls that do not, searches of the provider and of ours, stops, crashes, faults and restarts in any
order. Only the bytes between us and the providers are played here, from what each request allows.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import messages_from
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.transport.exchange import Origin, transport_error
from searchloop.agent.transport.transport import Transport
from tests.agent.scripted import SearchApp, check_calls_are_answered, found, page
from tests.chaos import dialects
from tests.chaos.dialects import PAGE, Asked, Dialect
from tests.chaos.house import check_told, play, read, reply
from tests.fakes import Reply

HERE = Origin("http", "127.0.0.1", 9)
NOTE = Asked("note", '{"text": "a line"}')
OURS = ("web_search", "open_page")
Give = Callable[[Dialect, dict[str, Any]], Reply]


@dataclass(frozen=True)
class Turn:
    """One question: to whom, under which settings, what the model does first, and how it ends.

    `tools`: whether there are any but those for searching; a change of that needs a restart.
    """

    provider: str
    second_model: bool
    search: str
    mode: str
    acts: tuple[str, ...]
    end: str
    tools: bool
    restart: bool


def _searched(d: Dialect, body: dict[str, Any]) -> Reply:
    events = d.searched("Found it: ", "07:40.") if d.searches(body) else d.text("I know: 07:40.")
    return reply(d, events)


def _paused(d: Dialect, body: dict[str, Any]) -> Reply:
    events = d.paused("One moment.") if d.searches(body) else []
    return reply(d, events) if events else _searched(d, body)


def _both(d: Dialect, body: dict[str, Any]) -> Reply:
    events = d.both(NOTE) if d.searches(body) and "note" in json.dumps(body.get("tools")) else []
    return reply(d, events) if events else _searched(d, body)


def _calls(*asked: Asked, text: str = "", thinking: str = "") -> Give:
    def give(d: Dialect, body: dict[str, Any]) -> Reply:
        if "tools" not in body:  # the search model of a kind that takes none
            return reply(d, d.text("Without tools."))
        return reply(d, d.calls(*asked, text=text, thinking=thinking))

    return give


def _text(*pieces: str, thinking: str = "", end: str = "") -> Give:
    def give(d: Dialect, body: dict[str, Any]) -> Reply:
        events = d.text(*pieces, thinking=thinking)
        if not end:
            return reply(d, events)
        said = next(i for i, event in enumerate(events) if pieces[0].encode() in event)
        return reply(d, events[: said + 1], end=end)

    return give


def _half_searched(d: Dialect, body: dict[str, Any]) -> Reply:
    events = d.searched("Found it: ", "07:40.") or d.text("x")
    return reply(d, events[: len(events) * 2 // 3], end="stall")


ACTS: dict[str, Give] = {
    "call": _calls(NOTE),
    "three calls": _calls(NOTE, NOTE, NOTE, text="Let me note that.", thinking="Three notes."),
    "broken call": _calls(Asked("note", '{"text": '), NOTE),
    "unknown tool": _calls(Asked("functions.nothing", "{}"), NOTE, thinking="Hm."),
    "our search": _calls(Asked("web_search", '{"query": "tides"}')),
    "our page": _calls(Asked("open_page", json.dumps({"url": PAGE})), thinking="Read it."),
    "their search": _searched,
    "pause": _paused,
    "search and call": _both,
    "trouble": lambda d, body: d.error(500, {"retry-after": "0"}),
}
ENDS: dict[str, tuple[Give, ...]] = {
    "answer": (_text("High water is at 07:40."),),
    "thought": (_text("High water", " is at 07:40.", thinking="The table says so."),),
    "searched": (_searched,),
    "paused and searched": (_paused, _searched),
    "refused": (lambda d, body: d.error(400),),
    "no credit": (lambda d, body: d.spent(),),
    "down": (lambda d, body: d.error(503, {"retry-after": "0"}),) * 3,
    "broken off": (_text("High water is", end="cut"),),
    "cut short": (lambda d, body: reply(d, d.cut_short(Asked("note", '{"text": "ha'))),),
    "stop: silent": (lambda d, body: Reply(before="stall"),),
    "stop: talking": (_text("High water is", end="stall"),),
    "stop: thinking": (_text("High", thinking="Hm.", end="stall"),),
    "stop: searching": (_half_searched,),
    "stop: both": (_both, _text("High water is", end="stall")),
    "stop: paused": (_paused, lambda d, body: Reply(before="stall")),
    "crash: paused": (_paused, lambda d, body: Reply(before="stall")),
    "stop: calling": (_calls(NOTE, Asked("linger"), thinking="Wait."),),
    "crash: silent": (lambda d, body: Reply(before="stall"),),
    "crash: talking": (_text("High water is", end="stall"),),
    "crash: searching": (_half_searched,),
    "crash: calling": (_calls(NOTE, Asked("linger"), text="Wait."),),
}


class Played(Transport):
    """Moves no bytes: gives what was planned and keeps what was sent. `held`: silence came."""

    def __init__(self, by_host: dict[str, Dialect]) -> None:
        super().__init__()
        self._by_host = by_host
        self.plan: list[Give] = []
        self.sent: list[tuple[Dialect, str, dict[str, Any]]] = []
        self.held = asyncio.Event()

    def post(self, url: str, headers: Any, body: bytes) -> Any:
        parts = urlsplit(url)
        dialect = self._by_host[parts.path.split("/")[1]]
        value = read(body)
        self.sent.append((dialect, parts.path, value))
        give = self.plan.pop(0) if self.plan else _text("All right.")
        dialect.hear(value)
        return _Exchange(give(dialect, value), self.held)

    async def fetch(self, url: str, *given: Any, **more: Any) -> tuple[int, bytes]:
        method = "POST" if given[1:] and given[1] else "GET"
        return 200, json.dumps(self._aside(method, url)).encode()

    def _aside(self, method: str, url: str) -> Any:
        _, name, rest = urlsplit(url).path.split("/", 2)
        known = self._by_host[name].aside(method, f"/{rest}")
        if known is None:
            raise transport_error("connection_lost", HERE)
        return known


@dataclass
class _Exchange:
    reply: Reply
    held: asyncio.Event
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    async def __aenter__(self) -> _Exchange:
        await self._end(self.reply.before or "done", transport_error("connection_lost", HERE))
        self.status, self.headers = self.reply.status, dict(self.reply.headers)
        return self

    async def __aexit__(self, *rest: object) -> None:
        pass

    async def _end(self, end: str, error: Exception) -> None:
        if end == "stall":
            self.held.set()
            await asyncio.Event().wait()
        elif end != "done":
            raise error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self.reply.pieces
        for piece in [pieces] if isinstance(pieces, bytes) else pieces:
            yield piece
        await self._end(self.reply.end, transport_error("cut_off", HERE))

    async def read(self, limit: int = 1 << 20) -> bytes:
        return b"".join([piece async for piece in self])


class Mortal(EventLog):
    """A log whose process can die: from then on nothing is written any more."""

    dead = False

    def append_all(self, writes: Sequence[Write]) -> Any:
        if self.dead:
            raise StoreError("dead", "This process is gone.", "Start another.")
        return super().append_all(writes)


class Walk:
    """One session on its way through providers, settings and accidents."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._dialects = {name: dialects.load(name) for name in dialects.names()}
        self._last: dict[tuple[str, ...], list[Any]] = {}
        self._session = ""
        self._with_tools = True
        self._start()

    def _start(self) -> None:
        """A process: its own transport, log and runner, and nothing in memory."""
        flags = {"SEARCHLOOP_HOME": str(self._home)}
        for name, dialect in self._dialects.items():
            flags |= dialect.settings(f"http://127.0.0.1:9/{name}")
        own = Settings.load(Environment({"flag": flags}))
        self.transport = Played(self._dialects)
        self.log = Mortal(self._home / "sessions.sqlite3")
        routes = {
            "/api/web-search": found(PAGE, "https://harbour.example/"),
            "/api/open-page": page("High water is at 07:40."),
        }
        backend = LocalBackend(SearchApp(routes))
        tools = self._tools() if self._with_tools else []
        self.runner = Runner(own, self.log, backend, tools, self.transport)
        self._session = self._session or self.log.create_session(model="builtin:extractive").id

    def _tools(self) -> list[Tool]:
        @tool
        async def note(text: str) -> str:
            """Keeps a line."""
            return "noted"

        @tool
        async def linger() -> str:
            """Takes for ever."""
            self.transport.held.set()
            await asyncio.Event().wait()
            return "never"

        return [note, linger]

    async def close(self) -> None:
        """The end of the process, in order or not."""
        await self.runner.aclose()
        self.log.close()

    async def take(self, turn: Turn) -> None:
        """One question, and all that is to be said of its requests."""
        if turn.restart or turn.tools != self._with_tools:
            await self.close()
            self._with_tools = turn.tools
            self._start()
        dialect = self._dialects[turn.provider]
        model = dialect.models[int(turn.second_model)]
        search = turn.search
        if search == "native":
            model = dialect.searcher
            search = search if dialect.searched("x") else "local"
        self.transport.plan = [*(ACTS[act] for act in turn.acts), *ENDS[turn.end]]
        self.transport.sent.clear()
        self.transport.held.clear()
        try:
            await self.runner.start(
                self._session,
                f"Question to {turn.provider}",
                model=f"{turn.provider}:{model}",
                mode=turn.mode,
                search=search,
                approve="never",  # nobody is there to be asked
            )
        except ConfigError as error:
            if (error.code, search, turn.tools) != ("no_native_search", "native", True):
                raise
            return  # this model cannot search and call, and is not asked to
        await self._settle(turn.end.partition(":")[0])
        self._check(turn)

    async def _settle(self, end: str) -> None:
        """Until the run is over; or until it waits, and then a stop or a crash."""
        over = asyncio.ensure_future(self.runner.wait(self._session))
        if end in ("stop", "crash"):
            held = asyncio.ensure_future(self.transport.held.wait())
            await asyncio.wait([over, held], return_when=asyncio.FIRST_COMPLETED)
            held.cancel()
            if not over.done():
                self.log.dead = end == "crash"
                with suppress(StoreError) if self.log.dead else nullcontext():
                    await self.runner.cancel(self._session)
        await over
        if self.log.dead:
            await self.close()
            with sqlite3.connect(self._home / "sessions.sqlite3") as db:
                db.execute("UPDATE runs SET beat = 0")  # nobody has heard of that process since
            db.close()
            sent = self.transport.sent
            self._start()
            self.transport.sent = sent
            self.transport.plan = list(ENDS["answer"])
            assert await self.runner.recover() == 1
            await self._settle("stop")

    def _check(self, turn: Turn) -> None:
        events = self.log.read(self._session)
        check_told(events)
        check_calls_are_answered(messages_from(events))
        if turn.end in ("answer", "thought", "searched") and turn.acts.count("trouble") < 3:
            assert events[-1].data["reason"] in ("stop", "limit"), events[-1].data
        begun = [e.data for e in events if e.type == "run_started"][-1]
        paths = [begun["search_path"]]
        ended = events[-1].data["search_path"]
        paths += [ended] if ended.partition(":")[0] != paths[0].partition(":")[0] else []
        for dialect, path, body in self.transport.sent:
            dialect.check(body, path)
            kind = self._check_search(dialect, body, paths)
            key = (turn.provider, begun["model"], turn.mode, kind, str(turn.tools))
            said = dialect.conversation(body)
            before = self._last.get(key, [])
            assert said[: len(before)] == before, "what was said before is sent differently"
            self._last[key] = said

    def _check_search(self, dialect: Dialect, body: dict[str, Any], paths: list[str]) -> str:
        """Exactly one way to search is offered, the one that was chosen; or none."""
        offered = dialect.searches(body)
        named = json.dumps(body.get("tools") or [])
        if offered:
            assert any(path.startswith("native:") for path in paths)
            assert "open_page" not in named
            return "native"
        local = any(path.startswith("local") for path in paths)
        assert local or not any(f'"{name}"' in named for name in OURS)
        return "local" if local else "off"


turns = st.builds(
    Turn,
    provider=st.sampled_from(dialects.names()),
    second_model=st.booleans(),
    search=st.sampled_from(["off", "native", "local", "auto"]),
    mode=st.sampled_from(["ask", "plan", "agent"]),
    acts=st.lists(st.sampled_from(sorted(ACTS)), max_size=3).map(tuple),
    end=st.sampled_from(sorted(ENDS)),
    tools=st.sampled_from([True, True, False]),
    restart=st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(turns, min_size=1, max_size=7))
def test_any_walk_can_go_on(home: Path, walk: list[Turn]) -> None:
    """Each request keeps its vendor's rules, offers the chosen search, and extends the last."""
    take_walk(home, walk)


def take_walk(
    home: Path, walk: list[Turn], check: Callable[[str, Any], None] = lambda name, body: None
) -> None:
    """Plays a session; `check` gets each request, with the provider's name."""

    async def scenario() -> None:
        session = Walk(home)
        try:
            for turn in walk:
                await session.take(turn)
                for dialect, _, body in session.transport.sent:
                    check(dialect.name, body)
        finally:
            await session.close()

    play(scenario())
