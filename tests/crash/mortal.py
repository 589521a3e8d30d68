"""A process that answers questions and dies at a point of our choosing.

One interpreter is started and everything imported once; each life is a fork of it. Orders come as
lines of JSON on stdin, and a line about each life goes to stdout. Points are numbered as they are
reached: before and after each append, each change of a lease, each request to the model, each start
and end of a tool, each answer to a request for approval and each rename.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchloop.agent.errors import AgentError
from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import Leases
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.transport.transport import Transport
from tests.agent.scripted import SearchApp, found, page
from tests.chaos.dialects import PAGE, load
from tests.cli.warm import load_package

QUESTION, AGAIN = "When is high water?", "And now?"
SAVED = "kept for good"


class Fuse:
    """Counts the points; the one numbered `fatal` is the last."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.reached = 0

    def point(self) -> None:
        """Dies here, if it is time."""
        self.reached += 1
        if self.reached == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same work between two points."""

        def done(*args: Any, **kwargs: Any) -> Any:
            self.point()
            result = work(*args, **kwargs)
            self.point()
            return result

        return done


class FusedLog(EventLog):
    """A log with a point on either side of everything that is written."""

    def __init__(self, where: str, fuse: Fuse) -> None:
        super().__init__(where)
        self._fuse = fuse
        self.leases = FusedLeases(self._db, fuse)

    def append_all(self, *args: Any, **kwargs: Any) -> Any:
        """See EventLog."""
        return self._fuse.around(super().append_all)(*args, **kwargs)


class FusedLeases(Leases):
    """Leases with a point on either side of each change."""

    def __init__(self, db: Any, fuse: Fuse) -> None:
        super().__init__(db)
        self._fuse = fuse

    def claim(self, *args: Any, **kwargs: Any) -> Any:
        """See Leases."""
        return self._fuse.around(super().claim)(*args, **kwargs)

    def take_over(self, *args: Any, **kwargs: Any) -> Any:
        """See Leases."""
        return self._fuse.around(super().take_over)(*args, **kwargs)

    def release(self, *args: Any, **kwargs: Any) -> Any:
        """See Leases."""
        return self._fuse.around(super().release)(*args, **kwargs)


class FusedTransport(Transport):
    """A transport with a point before and after each request to a model."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def post(self, *args: Any, **kwargs: Any) -> Any:
        """See Transport."""
        return self._fuse.around(super().post)(*args, **kwargs)


class Life:
    """One process's work on one session: the order says which, and when to die."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._home = Path(order["home"])
        self.fuse = Fuse(order.get("fatal", 0))
        dialect = load(order["provider"])
        flags = {"SEARCHLOOP_HOME": str(self._home), **dialect.settings(order["url"])}
        settings = Settings.load(Environment({"flag": flags}))
        self.log = FusedLog(order["store"], self.fuse)
        routes = {
            "/api/web-search": found(PAGE, "https://harbour.example/"),
            "/api/open-page": page("High water is at 07:40."),
        }
        backend = LocalBackend(SearchApp(routes))
        transport = FusedTransport(self.fuse)
        self.runner = Runner(settings, self.log, backend, [self._save()], transport)
        self._model = f"{dialect.name}:{dialect.models[0]}"

    def _save(self) -> Any:
        point, home = self.fuse.point, self._home

        @tool(effect="write")
        def save(text: str) -> str:
            """Keeps a line in a file."""
            point()
            with open(home / "effects", "a", encoding="utf-8") as ledger:
                ledger.write("saved\n")
            half = home / "saved.half"
            half.write_text(text)
            point()
            half.replace(home / "saved")
            point()
            return SAVED

        return save

    async def live(self) -> None:
        """Goes on with what was left, or asks the first question; then asks again if told to."""
        session = self._order["session"]
        approving = asyncio.create_task(self._approve(session))
        await self.runner.recover()
        await self.runner.wait(session)
        for text in self._order["ask"]:
            await self.runner.start(
                session, text, model=self._model, mode=self._order["mode"], search="local"
            )
            (self._home / "acknowledged").write_text(text)
            self.fuse.point()
            await self.runner.wait(session)
        approving.cancel()
        await self.runner.aclose()
        self.log.close()

    async def _approve(self, session: str) -> None:
        """The user, who says yes to everything."""
        async for batch in self.log.follow(session):
            for event in batch:
                if event.type == "approval_requested":
                    answer = self.fuse.around(self.runner.approvals.answer)
                    try:
                        await asyncio.to_thread(answer, session, event.data["call_id"], "once")
                    except AgentError:
                        continue  # it was answered in an earlier life


def fork(order: dict[str, Any]) -> dict[str, Any]:
    """One life, in a process of its own; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            life = Life(order)
            asyncio.run(life.live())
            code = 0
        finally:
            os._exit(code)
    timer = None
    if "seconds" in order:
        timer = threading.Timer(order["seconds"], os.kill, (child, signal.SIGKILL))
        timer.start()
    _, status = os.waitpid(child, 0)
    if timer:
        timer.cancel()
        timer.join()
    return {"killed": os.WIFSIGNALED(status), "code": os.waitstatus_to_exitcode(status)}


def obey(carry_out: Callable[[dict[str, Any]], Any]) -> None:
    """Takes orders from stdin until there are no more, and tells what came of each."""
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(carry_out(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    for package in ("providers", "search", "transport", "verdicts"):
        load_package(f"searchloop.agent.{package}")
    obey(fork)
