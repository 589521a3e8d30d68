"""Runs one MCP server, and ends it with all its processes when searchloop stops or dies.

    python -I -S supervisor.py FD COMMAND ARGUMENT...

It imports none of our modules, so that it starts in milliseconds. FD is the read end of a pipe
whose other end only searchloop has. When that closes, every process below this one gets SIGTERM and
a second later SIGKILL. On Linux this process is a subreaper, so it finds grandchildren that left
their process group; elsewhere it reaches the server's process group only. The exit code is the
server's, 128 + n if signal n ended it, 127 if the command could not be started.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator

GRACE = 1.0  # seconds between SIGTERM and SIGKILL
_CHECK = 0.05  # seconds between two looks at the processes that are left
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # prctl: PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
_LINUX = sys.platform == "linux"


def main(argv: list[str]) -> int:
    """Runs the command until it ends or the pipe closes, then ends every process below."""
    life = int(argv[0])
    os.set_inheritable(life, False)
    wake = _wake_up_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    if _LINUX:
        _prctl(_SUBREAPER, 1)
    server = _start(argv[1:])
    nothing = os.open(os.devnull, os.O_RDWR)
    for ours in (0, 1, 2):  # only the server may have its pipes open
        os.dup2(nothing, ours)
    code = _watch(life, wake, server)
    _end(server, wake)
    return code


def _wake_up_on(*signals: signal.Signals) -> int:
    """Returns a file descriptor from which each signal can be read as a byte."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for each in signals:
        signal.signal(each, lambda *_: None)
    return reading


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(command: list[str]) -> int:
    server = os.fork()
    if server:
        return server
    try:
        os.setsid()
        if _LINUX:
            _prctl(_DEATH_SIGNAL, signal.SIGKILL)  # if this process is killed
        for each in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, a program expects them
            signal.signal(each, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
    os._exit(127)


def _watch(life: int, wake: int, server: int) -> int:
    """Waits until the server has ended and returns its exit code, or 0 if it has to end."""
    while True:
        ready, _, _ = select.select([life, wake], [], [])
        came = os.read(wake, 4096) if wake in ready else b""
        for pid, status in _reaped():
            if pid == server:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        if life in ready or any(each != signal.SIGCHLD for each in came):
            return 0


def _reaped() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, status


def _end(server: int, wake: int) -> None:
    """Sends SIGTERM to every process below, then SIGKILL."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        told: set[int] = set()
        until = time.monotonic() + GRACE
        while left := _left(server):
            if time.monotonic() > until:
                break
            for pid in left - told:
                try:
                    os.kill(pid, kind)
                except OSError:  # gone already, or no longer ours to stop
                    continue
            told |= left
            select.select([wake], [], [], _CHECK)
        if not left:
            return


def _left(server: int) -> set[int]:
    """Returns what is left to be ended, as targets for `os.kill`.

    On Linux that is each child of ours; the children of one that ends become ours. Elsewhere it is
    the server's process group.
    """
    list(_reaped())
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return set(map(int, file.read().split()))
    except OSError:  # no such system
        pass
    try:
        os.killpg(server, 0)
    except ProcessLookupError:
        return set()
    except PermissionError:
        pass
    return {-server}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
