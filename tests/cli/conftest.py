"""The command line as a user meets it: a process of its own, its output and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "SEARCHLOOP_OFFLINE": "1"}


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def events(self) -> list[Any]:
        """Standard output as one JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ran]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `searchloop ARGS`; keyword arguments are settings, `stdin` is piped in."""

    def run(*args: str, stdin: str | bytes | None = None, **settings: str) -> Ran:
        env: Mapping[str, str] = {
            **CLEAN,
            "HOME": str(tmp_path),
            "SEARCHLOOP_HOME": str(tmp_path / "home"),
            **settings,
        }
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "cli", *args],
            env=env,
            cwd=tmp_path,
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            timeout=60,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in ran.out + ran.err, ran.err
        return ran

    return run
