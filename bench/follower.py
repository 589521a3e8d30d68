"""Clients of our web server: one that asks and follows, or a crowd that only follows.

Prints `null` when it is ready, waits for a line on standard input, does its part, prints what it
saw, and is ready again.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.scenarios import MODEL, Scenario

_DUE = re.compile(rb'"text":"(\d+\.\d{6}) "')
_TAIL = 64  # bytes: an event's head may be cut in two


class Chat:
    """A person with a page open: asks in a new session and follows until the answer is there."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._where = ("127.0.0.1", order["port"])
        self._headers = {
            "authorization": f"Bearer {order['token']}",
            "content-type": "application/json",
        }

    def run(self) -> None:
        """Until standard input ends."""
        while True:
            session = self._post("/api/sessions", {"model": f"openai:{MODEL}"})["id"]
            stream = http.client.HTTPConnection(*self._where)
            path = f"/api/sessions/{session}/events?view=page"
            stream.request("GET", path, headers=self._headers)
            response = stream.getresponse()
            _say(None)
            if not sys.stdin.readline():
                return
            self._post(f"/api/sessions/{session}/messages", {"text": "Do the work."})
            answer = _answer(response)
            stream.close()
            _say({"calls": 0, "characters": len(answer), "requests": 1})

    def _post(self, path: str, payload: Any) -> Any:
        connection = http.client.HTTPConnection(*self._where)
        connection.request("POST", path, json.dumps(payload), self._headers)
        response = connection.getresponse()
        data = json.loads(response.read())
        connection.close()
        if response.status >= 400:
            raise SystemExit(f"{path}: {data}")
        return data


def _answer(response: http.client.HTTPResponse) -> str:
    said = ""
    while line := response.readline():
        if line.startswith(b"data:") and b'"message"' in line[:40]:
            said = json.loads(line[5:])["text"]
        if line.startswith(b"data:") and b'"run_finished"' in line[:40]:
            return str(json.loads(line[5:]).get("answer", said))
    raise SystemExit("the stream of events ended before the run")


class Crowd:
    """Many followers, each with its own connection; notes how late every event came."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._scenario = Scenario(**order["scenario"])
        self.late: list[float] = []
        self.open = 0
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until standard input ends."""
        loop = asyncio.get_running_loop()
        sessions = self._order["sessions"]
        for n in range(self._scenario.at_once):
            head = (
                f"GET /api/sessions/{sessions[n % len(sessions)]}/events?view=events HTTP/1.1\r\n"
                f"Host: 127.0.0.1:{self._order['port']}\r\n"
                f"Authorization: Bearer {self._order['token']}\r\n\r\n"
            )
            one = partial(Follower, self, head.encode())
            await loop.create_connection(one, "127.0.0.1", self._order["port"])
        await self.until(lambda: self.open == self._scenario.at_once)
        wanted = self._scenario.at_once * self._scenario.deltas
        while True:
            _say(None)
            if not await loop.run_in_executor(None, sys.stdin.readline):
                return
            await self.until(lambda: len(self.late) >= wanted)
            late = sorted(self.late)
            _say(
                {
                    "calls": 0,
                    "characters": len(late) * self._scenario.size,
                    "requests": self.open,
                    "p99": late[int(len(late) * 0.99)],
                }
            )
            self.late.clear()

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for something that followers change."""
        while not true():
            self._changed.clear()
            await self._changed.wait()

    def changed(self) -> None:
        """Somebody saw something."""
        self._changed.set()


class Follower(asyncio.Protocol):
    """One connection of the crowd."""

    def __init__(self, crowd: Crowd, head: bytes) -> None:
        self._crowd = crowd
        self._head = head
        self._rest = b""
        self._begun = False

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        """Notes the time from when each event was due to now."""
        now = time.time()
        data = self._rest + data
        end = 0
        for found in _DUE.finditer(data):
            self._crowd.late.append(now - float(found[1]))
            end = found.end()
        self._rest = data[max(end, len(data) - _TAIL) :]
        if not self._begun and b"retry:" in data:
            self._begun = True
            self._crowd.open += 1
        self._crowd.changed()


def _say(value: Any) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    if asked["scenario"]["kind"] == "crowd":
        asyncio.run(Crowd(asked).run())
    else:
        Chat(asked).run()
