"""Our servers as users start them, a process each, for what only shows between processes."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "bench-" + "t" * 40


class Host:
    """`searchloop serve` with these settings, in a new folder. Use with `with`.

    `prefix` is a command that the server is started by.
    """

    def __init__(self, settings: Mapping[str, str], prefix: Sequence[str] = ()) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="bench-")
        home = self._home.name
        own = {"SEARCHLOOP_HOME": home, "HOME": home, "SEARCHLOOP_TOKEN": TOKEN}
        own["SEARCHLOOP_LOG_LEVEL"] = "error"
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "cli", "serve", "--port", "0"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", **own, **settings},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        if not found:
            raise SystemExit("the server did not start")
        self.port = int(found[1])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of one answer."""
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        text = None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, text, headers)
        reply = connection.getresponse()
        data = json.loads(reply.read() or b"null")
        connection.close()
        if reply.status >= 400:
            raise SystemExit(f"{method} {path}: {data}")
        return data

    def session(self, model: str) -> str:
        """A new session's id."""
        return str(self.ask("POST", "/api/sessions", {"model": model})["id"])

    def start(self, session: str) -> None:
        """Asks a question, which is acknowledged."""
        self.ask("POST", f"/api/sessions/{session}/messages", {"text": "Go on."})

    def memory(self) -> float:
        """Its resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii", "replace")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu(self) -> float:
        """The CPU seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number: signal.Signals) -> None:
        """Sends the process a signal."""
        self.process.send_signal(number)

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._home.cleanup()


class Aside:
    """A module of `bench` in a process of its own that is told and tells JSON, a line each."""

    def __init__(self, module: str, order: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(order)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self) -> None:
        """Tells it to go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """What it says next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a process of the benchmark has ended")
        return json.loads(line)

    def __enter__(self) -> Aside:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
