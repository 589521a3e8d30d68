"""Four clients, two servers and one session: whatever they do, the history makes sense."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import AgentError, Conflict, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.contract import STEPS
from searchloop.agent.log.events import DELTAS, Event
from searchloop.agent.log.leases import Leases
from searchloop.agent.log.sqlite import SqliteDatabase
from searchloop.agent.run.runner import Runner
from searchloop.agent.tools import tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.types import Request, StreamEvent, TextDelta
from tests.agent.scripted import (
    MODEL,
    Hold,
    Scripted,
    SearchApp,
    call,
    calls,
    check_calls_are_answered,
    says,
)
from tests.agent.scripted import settings as set_up
from tests.chaos.house import play
from tests.crash.harness import ONCE

pytestmark = pytest.mark.integration

Op = tuple[int, str]
ACTIONS = (
    *("send", "slow", "save", "cancel", "edit", "approve", "deny", "toggle", "reload", "kill"),
    *("usurp", "lose"),
)
IN_ORDER = ("tool_call", "approval_requested", "approval_decided", "tool_started", "tool_result")


class Dying(SqliteDatabase):
    """A store seen from a process that can die: from then on it reaches nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, STEPS)
        self.dead = False

    @contextmanager
    def transaction(self, **how: Any) -> Iterator[Any]:
        """See SqliteDatabase."""
        self._live()
        with super().transaction(**how) as db:
            yield db

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """See SqliteDatabase."""
        self._live()
        with super().reading() as db:
            yield db

    def _live(self) -> None:
        if self.dead:
            raise StoreError("dead", "This process is gone.", "Start another.")


class Model(Scripted):
    """Saves when it is told to, never ends when it is told to be slow, and answers."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See Scripted."""
        messages = list(request.messages)
        check_calls_are_answered(messages)
        last = max(i for i, m in enumerate(messages) if m.role == "user")
        step = says("So it is.")
        if messages[last].content.startswith("slow"):
            step = [TextDelta("So it"), Hold()]
        elif messages[last].content.startswith("save") and last == len(messages) - 1:
            step = calls(call("save", last))
        self.steps = [step]
        async for event in super().stream(request):
            yield event


class Server:
    """One process: its own view of the store, and a runner."""

    def __init__(self, home: Path, saved: list[str]) -> None:
        self.db = Dying(home / "sessions.sqlite3")
        self.log = EventLog(home / "sessions.sqlite3")
        self.log.close()
        self.log._db, self.log.leases = self.db, Leases(self.db)

        @tool(effect="write")
        async def save() -> str:
            """Keep it."""
            saved.append("x")
            await asyncio.sleep(0)
            return "kept"

        own, backend = set_up(home), LocalBackend(SearchApp())
        self.runner = Runner(own, self.log, backend, [save], providers=[Model([])])

    async def close(self) -> None:
        """The end, orderly or not."""
        with suppress(AgentError):
            await self.runner.aclose()
        self.log.close()


class World:
    """Two servers, and what the clients were told."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.saved: list[str] = []
        self.servers = [Server(home, self.saved) for _ in range(2)]
        self.session = self.servers[0].log.create_session(model=MODEL, mode="agent").id
        self.sent: list[str] = []
        self.stopped: list[tuple[int, int]] = []  # the last event before, and after it was said
        self.allowed = 0
        self.followed: list[tuple[list[Event], asyncio.Task[None]]] = []

    async def do(self, client: int, action: str) -> None:
        """One wish of one client, at the server that it talks to."""
        server = self.servers[client % 2]
        if action in ("kill", "lose"):
            await self._kill(client % 2)
            if action == "kill":
                await self.servers[client % 2].runner.recover()
        elif action == "usurp":
            await self._usurp(server)
        elif action == "reload":
            got: list[Event] = []
            self.followed.append((got, asyncio.create_task(self._follow(server, got))))
        elif action == "toggle":
            mode = "ask" if server.log.session(self.session).mode == "agent" else "agent"
            server.log.update_session(self.session, mode=mode)
        elif action == "cancel":
            last = server.log.last_seq(self.session) or 0
            if await server.runner.cancel(self.session):
                self.stopped.append((last, server.log.last_seq(self.session) or 0))
        elif action in ("approve", "deny"):
            self._decide(server, "once" if action == "approve" else "deny")
        else:
            await self._send(server, action)
        for _ in range(client):
            await asyncio.sleep(0)

    async def _send(self, server: Server, action: str) -> None:
        text = f"{action} {len(self.sent)}"
        asked = [e.seq for e in server.log.read(self.session) if e.type == "user_message"]
        replaces = asked[-1] if action == "edit" and asked else None
        try:
            await server.runner.start(self.session, text, replaces=replaces)
        except Conflict as conflict:
            if conflict.code != "busy":
                raise
        else:
            self.sent.append(text)

    def _decide(self, server: Server, decision: str) -> None:
        for event in server.log.read(self.session):
            if event.type == "approval_requested":
                with suppress(AgentError):  # it does not wait any more
                    server.runner.approvals.answer(self.session, event.data["call_id"], decision)
                    self.allowed += decision == "once"

    async def _follow(self, server: Server, got: list[Event]) -> None:
        with suppress(AgentError):  # the server is gone, and so is the stream
            async for batch in server.log.follow(self.session):
                got += batch

    async def _kill(self, which: int) -> None:
        """The process is gone, as all can see; another one starts in its place."""
        dead = self.servers[which]
        dead.db.dead = True
        await dead.close()
        fresh = self.servers[which] = Server(self._home, self.saved)
        with fresh.db.transaction() as db:
            owner = dead.runner._leases._name
            db.execute("UPDATE runs SET beat = -1e9 WHERE owner = ?", (owner,))

    async def _usurp(self, server: Server) -> None:
        """It holds the other for dead, which only was silent, and takes its run."""
        with server.db.transaction() as db:
            owner = server.runner._leases._name
            db.execute("UPDATE runs SET beat = -1e9 WHERE owner <> ?", (owner,))
        await server.runner.recover()

    async def end(self) -> list[Event]:
        """Stops what runs, closes all, and gives the history."""
        await self.servers[0].runner.recover()
        while self.servers[0].log.leases.held(self.session):  # on this clock it gives up too soon
            await self.servers[1].runner.cancel(self.session)
            await asyncio.sleep(0)  # one that stops nothing must not outlive the time limit
        events = self.servers[0].log.read(self.session)
        for _, task in self.followed:
            task.cancel()
        await asyncio.gather(*(task for _, task in self.followed), return_exceptions=True)
        for server in self.servers:
            await server.close()
        return events


def judge(world: World, events: list[Event]) -> None:
    """The rules that hold for every history."""
    kinds = Counter(event.type for event in events)
    texts = [event.data["text"] for event in events if event.type == "user_message"]
    assert texts == world.sent, "each question that was acknowledged, once, in order"
    live: str | None = None
    asked = 0
    seen: set[tuple[str | None, str, str]] = set()
    for event in events:
        if event.type == "user_message":
            assert live is None, "a question while another is answered"
            asked += 1
        elif event.type == "run_started":
            assert live is None, "two runs at once"
            assert asked == 1, "an answer without its question"
            live, asked = event.data["run_id"], 0
        if event.type in ONCE:
            key = live, event.type, str(event.data[ONCE[event.type]])
            assert key not in seen, f"twice: {key}"
            seen.add(key)
        if event.type == "run_started":
            continue
        if event.type == "run_finished":
            assert live == event.data["run_id"], "an end without its beginning"
            live = None
        elif event.type in ("message", "tool_call", "tool_started", "tool_result"):
            assert live, f"{event.type} outside of a run"
    assert live is None
    assert kinds["run_started"] == kinds["run_finished"] == len(world.sent)
    ends = [event.seq for event in events if event.type == "run_finished"]
    begun = [event.seq for event in events if event.type == "run_started"]
    for before, after in world.stopped:  # by whom does not matter: it is over when that is said
        run = max((seq for seq in begun if seq <= before), default=0)
        assert any(run < end <= after for end in ends), "said to be stopped, and was not"
    whole_calls(events)
    assert len(world.saved) <= world.allowed, "something was saved that nobody allowed"
    assert len(world.saved) <= kinds["tool_started"]
    whole = {event.seq: event for event in events}
    for got, _ in world.followed:
        numbers = [event.seq for event in got]
        assert numbers == sorted(set(numbers)), "a follower saw something twice"
        kept = [event for event in got if event.type not in DELTAS]
        assert all(whole[event.seq] == event for event in kept)
        stored = [n for n in whole if kept and n <= kept[-1].seq]
        assert set(stored) <= set(numbers), "a follower missed something"


def whole_calls(events: list[Event]) -> None:
    """What happens to a call happens in order, and nothing runs that was not allowed."""
    steps: dict[str, list[str]] = {}
    for event in events:
        if event.type in IN_ORDER:
            steps.setdefault(event.data["call_id"], []).append(event.type)
        if event.type == "approval_decided" and event.data["decision"] == "deny":
            steps[event.data["call_id"]].append("denied")
    for call_id, own in steps.items():
        places = [IN_ORDER.index(step) for step in own if step != "denied"]
        assert places == sorted(places), f"call {call_id}: {own}"
        assert own[0] == "tool_call", f"call {call_id}: {own}"
        assert "denied" not in own or "tool_started" not in own, f"call {call_id}: {own}"


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(ACTIONS)), max_size=14))
def test_any_history_makes_sense(ops: list[Op]) -> None:
    """Sends, stops, edits, decisions, switches, reloads, kills and takeovers, in any order."""

    async def history() -> None:
        world = World(folder)
        for client, action in ops:
            await world.do(client, action)
        events = await world.end()
        judge(world, events)
        assert check(folder / "sessions.sqlite3") == []

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        play(history())
