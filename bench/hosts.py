"""Our servers as users start them, a process each, for what only shows between processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.crash import hosts as served
from tests.crash.hosts import ROOT, TOKEN

__all__ = ["TOKEN", "Aside", "Host"]


class Host(served.Host):
    """`searchloop serve` with these settings, in a new folder. Use with `with`."""

    def __init__(self, settings: Mapping[str, str], prefix: Sequence[str] = ()) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="bench-")
        own = {"SEARCHLOOP_LOG": "error", **settings}
        super().__init__(Path(self._home.name), prefix, **own)

    def session(self, model: str) -> str:
        """A new session's id."""
        status, data = self.ask("POST", "/api/sessions", {"model": model})
        if status >= 400:
            raise SystemExit(f"no new session: {data}")
        return str(data["id"])

    def memory(self) -> float:
        """Its resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii", "replace")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu(self) -> float:
        """The CPU seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
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

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
