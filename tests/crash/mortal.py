"""A process that answers questions and dies at a point of our choosing.

One interpreter is started and lives one life, which imports everything; each later life is a fork
of it. Orders come as lines of JSON on stdin, and a line about each life goes to stdout. Points are
numbered as they are reached: before and after each append, each change of a lease, each request to
the model, each start and end of a tool, each answer to a request for approval and each rename.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import Leases
from searchloop.agent.tools import Tool, tool
from searchloop.agent.types import Request, StreamEvent
from tests.agent.scripted import MODEL
from tests.crash.working import Thinking, Working

QUESTION, AGAIN = "When is high water?", "And again?"


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


class FusedModel(Thinking):
    """A model with a point before and after each request, which it notes in a file."""

    def __init__(self, home: Path, fuse: Fuse) -> None:
        super().__init__([])
        self._home, self._fuse = home, fuse

    def asked(self, step: str) -> None:
        """See Thinking."""
        with open(self._home / "asked", "a", encoding="utf-8") as file:
            file.write(f"{step}\n")

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See Thinking."""
        self._fuse.point()
        async for event in super().stream(request):
            yield event
        self._fuse.point()


class Life(Working):
    """One process's work on one session: the order says which, and when to die."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order, self.fuse = order, Fuse(order.get("fatal", 0))
        home = Path(order["home"])
        model = FusedModel(home, self.fuse)
        super().__init__(
            home, lambda path: FusedLog(order["store"], self.fuse), order["session"], model
        )

    def save_tool(self) -> Tool:
        """See Working."""
        point, home = self.fuse.point, Path(self._order["home"])

        @tool(effect="write")
        def save() -> str:
            """Keeps a line in a file."""
            point()
            with open(home / "effects", "a", encoding="utf-8") as ledger:
                ledger.write("saved\n")
            half = home / "saved.half"
            half.write_text("07:40")
            point()
            half.replace(home / "saved")
            point()
            return "kept"

        return save

    async def live(self) -> None:
        """Goes on with what was left, then asks the questions of the order."""
        approving = asyncio.create_task(self.says_yes())
        await self.runner.recover()
        await self.runner.wait(self.session)
        for text in self._order["ask"]:
            await self.runner.start(self.session, text, mode=self._order["mode"])
            (self.home / "acknowledged").write_text(text)
            self.fuse.point()
            await self.runner.wait(self.session)
        approving.cancel()
        await self.close()

    def answer(self, call: str) -> None:
        """See Working."""
        self.fuse.around(super().answer)(call)


def live(order: dict[str, Any]) -> dict[str, Any]:
    """One life of a run."""
    return fork(lambda: asyncio.run(Life(order).live()), order.get("seconds"))


def fork(work: Callable[[], object], seconds: float | None = None) -> dict[str, Any]:
    """Work in a process of its own, killed after so many seconds; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    timer = threading.Timer(seconds or 0, os.kill, (child, signal.SIGKILL))
    if seconds:
        timer.start()
    _, status = os.waitpid(child, 0)
    if seconds:
        timer.cancel()
        timer.join()
    return {"killed": os.WIFSIGNALED(status), "code": os.waitstatus_to_exitcode(status)}


def obey(carry_out: Callable[[dict[str, Any]], Any]) -> None:
    """Takes orders from stdin until there are no more, and tells what came of each."""
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(carry_out(json.loads(line))) + "\n")
        sys.stdout.flush()


def whole_life() -> None:
    """One life in this process, which loads what is loaded when it is first used.

    It saves nothing: the thread of a tool that saves would be missing after a fork.
    """
    import_module("searchloop.agent.log.postgres")
    with tempfile.TemporaryDirectory() as home:
        store = f"{home}/sessions.sqlite3"
        with closing(EventLog(store)) as log:
            session = log.create_session(model=MODEL, search="local").id
        order = {"home": home, "store": store, "session": session, "mode": "ask"}
        asyncio.run(Life({**order, "ask": [QUESTION]}).live())


if __name__ == "__main__":
    whole_life()
    obey(live)
