"""The command line as a user meets it: a process of its own, its output and its exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
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


class Warm:
    """A process that has loaded the program and forks for each command; see `warm`."""

    def __init__(self, *python: str, module: str = "tests.cli.warm", **env: str) -> None:
        """`python` and `env` are options and variables of that process."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *python, "-m", module, str(theirs.fileno())],
                env={**CLEAN, **env},
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self,
        args: tuple[str, ...],
        env: Mapping[str, str],
        cwd: Path,
        data: bytes,
        encoding: str = "utf-8",
    ) -> Ran:
        """One command, to its end."""
        request = json.dumps({"args": args, "env": dict(env), "cwd": str(cwd)}).encode()
        with ExitStack() as stack:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given.write(data)
            given.seek(0)
            streams = [stream.fileno() for stream in (given, out, err)]
            socket.send_fds(self._channel, [request], streams)
            code = int(self._channel.recv(16))
            out.seek(0)
            err.seek(0)
            return Ran(code, out.read().decode(encoding), err.read().decode(encoding))

    def close(self) -> None:
        """No more commands."""
        self._channel.close()
        self._process.wait(90)


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """One for all commands of this worker."""
    started = Warm()
    yield started
    started.close()


@pytest.fixture
def cli(tmp_path: Path, warm: Warm) -> Cli:
    """Runs `searchloop ARGS`; keyword arguments are settings, `stdin` is piped in."""

    def run(*args: str, stdin: str | bytes | None = None, **settings: str) -> Ran:
        env = {"HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path / "home"), **settings}
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        ran = warm.run(args, {**CLEAN, **env}, tmp_path, data)
        assert "Traceback" not in ran.out + ran.err, ran.err
        return ran

    return run
