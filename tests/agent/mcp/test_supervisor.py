"""Nothing that a server started outlives us, however we end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from searchloop.agent.mcp import supervisor
from tests.agent.mcp.served import HOSTILE
from tests.conftest import linux_only
from tests.waiting import until

pytestmark = linux_only
SUPERVISOR = str(Path(supervisor.__file__))
# Starts a server as `agent.mcp.stdio` does, then waits to be killed.
PARENT = """
import os, subprocess, sys, threading
theirs, life = os.pipe()
command = [sys.executable, "-I", "-S", sys.argv[1], str(theirs)]
command += [sys.executable, "-I", "-S", *sys.argv[2:]]
subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(theirs,), start_new_session=True)
os.close(theirs)
threading.Event().wait()
"""


def pids(seen: Path, count: int) -> list[int]:
    """The processes that the server told of, once there are so many."""

    def told() -> list[int]:
        lines = seen.read_text().splitlines(keepends=True) if seen.exists() else []
        return [int(n[1]) for line in lines if (n := re.fullmatch(r"pid (\d+)\n", line))]

    until(lambda: len(told()) >= count)
    return told()


def alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be forgotten."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def go(processes: list[int]) -> None:
    """Waits until all of them have ended, which by our own pauses takes less than five seconds."""
    assert supervisor.GRACE <= 2
    until(lambda: not any(alive(pid) for pid in processes))


@contextmanager
def started(*args: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The supervisor over a command, and the pipe that keeps it up."""
    theirs, life = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", SUPERVISOR, str(theirs), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(theirs,),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        with process:
            yield process, life
            process.kill()
    finally:
        os.close(life)


def test_no_orphan_after_kill_9(tmp_path: Path) -> None:
    """Neither the server nor a grandchild that left its group; both ignore SIGTERM."""
    seen = tmp_path / "seen"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", PARENT, SUPERVISOR, HOSTILE, "stubborn", str(seen)]
    ) as parent:
        processes = pids(seen, 2)
        assert all(alive(pid) for pid in processes)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        go(processes)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_tree(tmp_path: Path, kind: signal.Signals) -> None:
    """Who stops the supervisor stops all of it."""
    seen = tmp_path / "seen"
    with started(sys.executable, "-I", "-S", HOSTILE, "ok", str(seen)) as (process, _):
        processes = pids(seen, 1)
        process.send_signal(kind)
        process.wait(90)
        go(processes)


def test_the_server_dies_with_its_supervisor(tmp_path: Path) -> None:
    """Even when the supervisor itself is killed."""
    seen = tmp_path / "seen"
    with started(sys.executable, "-I", "-S", HOSTILE, "ok", str(seen)) as (process, _):
        processes = pids(seen, 1)
        process.kill()
        go(processes)


def test_exit_codes_and_streams_are_the_servers() -> None:
    """What it writes and how it ends arrive unchanged."""
    code = "import sys; print(sys.stdin.read()); sys.stderr.write('e'); sys.exit(7)"
    with started(sys.executable, "-I", "-S", "-c", code) as (process, _):
        assert process.communicate(b"hello", 90) == (b"hello\n", b"e")
        assert process.returncode == 7
    with started(sys.executable, "-I", "-c", "import os; os.kill(os.getpid(), 9)") as (process, _):
        assert process.wait(90) == 128 + 9
    with started("/no/such/program") as (process, _):
        assert b"/no/such/program: No such file" in process.communicate(timeout=90)[1]
        assert process.returncode == 127
