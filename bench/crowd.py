"""Many followers of event streams in one lean process: a parser of stamps on each socket.

What is followed are texts of due times such as `1795228200.123456;`, so the delay of each is known
where it comes in, by the one clock of the machine. A stamp counts once, however often the log says
it. With `slow` nothing is read: the connections stay open, full.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from searchloop.agent.observe.logs import be_a_server

_DUE = re.compile(rb"(\d{10}\.\d{6});")
_TAIL = 20  # bytes: a stamp may be cut in two


class Crowd:
    """Connections to event streams, `at_once` of them, over `ports` and `sessions` in turn.

    The order: {"ports", "token", "sessions", "at_once", "wanted": stamps in all, "view"?, "slow"?}.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self.late: list[float] = []
        self.open = 0
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until standard input ends."""
        loop = asyncio.get_running_loop()
        for n in range(self._order["at_once"]):
            await self._connect(loop, n)
        if not self._order.get("slow"):
            await self._until(lambda: self.open == self._order["at_once"])
        while True:
            print("null", flush=True)
            if not await loop.run_in_executor(None, sys.stdin.readline):
                return
            cpu = time.process_time()
            await self._until(lambda: len(self.late) >= self._order["wanted"])
            told = {"open": self.open, "cpu": time.process_time() - cpu, **_spread(self.late)}
            print(json.dumps(told), flush=True)
            self.late.clear()

    async def _connect(self, loop: asyncio.AbstractEventLoop, n: int) -> None:
        order = self._order
        session = order["sessions"][n % len(order["sessions"])]
        port = order["ports"][n // len(order["sessions"]) % len(order["ports"])]
        head = (
            f"GET /api/sessions/{session}/events?view={order.get('view', 'events')} HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {order['token']}\r\n\r\n"
        )
        one = partial(Follower, self, head.encode(), slow=bool(order.get("slow")))
        await loop.create_connection(one, "127.0.0.1", port)

    async def _until(self, true: Callable[[], bool]) -> None:
        """Waits for something that followers change."""
        while not true():
            self._changed.clear()
            await self._changed.wait()

    def changed(self) -> None:
        """Somebody saw something."""
        self._changed.set()


class Follower(asyncio.Protocol):
    """One connection of the crowd."""

    def __init__(self, crowd: Crowd, head: bytes, *, slow: bool) -> None:
        self._crowd = crowd
        self._head = head
        self._slow = slow
        self._rest = b""
        self._last = 0.0
        self._begun = False

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        transport.write(self._head)
        if self._slow:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Notes the time from when each stamp was due to now."""
        now, last = time.time(), self._last
        data = self._rest + data
        for found in _DUE.findall(data):
            due = float(found)
            if due > last:
                last = due
                self._crowd.late.append(now - due)
        self._last = last
        self._rest = data[-_TAIL:]
        if not self._begun and b"retry:" in data:
            self._begun = True
            self._crowd.open += 1
        self._crowd.changed()


def _spread(late: list[float]) -> dict[str, Any]:
    late = sorted(late)
    if not late:
        return {"count": 0}
    at = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    found = {name: late[int(len(late) * share)] for name, share in at.items()}
    return {"count": len(late), **found, "most": late[-1]}


if __name__ == "__main__":
    be_a_server()
    asyncio.run(Crowd(json.loads(sys.argv[1])).run())
