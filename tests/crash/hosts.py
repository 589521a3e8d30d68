"""Servers as they are started by users, each a process of its own, that share one store."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "t" * 40


class Host:
    """`searchloop serve` with these settings. Use with `with`.

    `prefix` is a command that the server is started by.
    """

    command: Sequence[str] = ("-m", "searchloop.cli", "serve", "--port", "0")

    def __init__(self, home: Path, prefix: Sequence[str] = (), **settings: str) -> None:
        own = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TOKEN": TOKEN, **settings}
        own |= {"SEARCHLOOP_TITLES": "0", "SEARCHLOOP_FOLLOW_UPS": "0"}  # one request a step
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONUNBUFFERED": "1", **own}
        with (home / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, *self.command],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found, line + (home / "errors").read_text()
        self.port = int(found[1])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=200)
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text, headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        return reply.status, json.loads(data) if data else None

    def start(self, session: str, text: str = "hi", **changes: Any) -> None:
        """Asks a question, which is acknowledged."""
        status, told = self.ask(
            "POST", f"/api/sessions/{session}/messages", {"text": text, **changes}
        )
        assert status == 202, told

    def events(self, session: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """The events as a browser gets them, for as long as the stream lives."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=200)
        headers = {"authorization": f"Bearer {TOKEN}", "last-event-id": str(after)}
        connection.request("GET", f"/api/sessions/{session}/events", headers=headers)
        try:
            reply = connection.getresponse()
            while line := reply.readline():
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Sends the process a signal."""
        self.process.send_signal(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Watcher:
    """Reads a session's events on a thread; `seen` are those that came."""

    def __init__(self, host: Host, session: str) -> None:
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self._read, args=(host, session), daemon=True).start()

    def _read(self, host: Host, session: str) -> None:
        with suppress(OSError, http.client.HTTPException):
            self.seen.extend(host.events(session))

    def kinds(self) -> list[str]:
        """The types so far."""
        return [event["type"] for event in self.seen]
