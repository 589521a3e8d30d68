"""Runs `searchloop` as on a system without what POSIX has, as `warm` does; see test_portability.

Names that Windows lacks are gone before anything of ours is imported, `select` takes sockets alone,
no file is opened in the system's own code page, and standard streams have that of the first
argument.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from typing import Any

from tests.cli import warm

MODULES = ("fcntl", "grp", "pwd", "readline", "resource", "termios", "tty", "pty", "uvloop")
NAMES = {
    os: (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchown"),
        *("fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid"),
        *("initgroups", "killpg", "lchown", "mkfifo", "mknod", "nice", "pathconf", "pread"),
        *("pwrite", "setsid", "statvfs", "sysconf", "uname", "wait3", "wait4", "waitid"),
    ),
    signal: ("SIGALRM", "SIGHUP", "SIGPIPE", "SIGUSR1", "pthread_kill"),
    socket: ("recv_fds", "send_fds"),
}


def become_foreign() -> None:
    """Takes away what the other system lacks."""
    sys.modules.update(dict.fromkeys(MODULES))
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    os.supports_dir_fd, os.supports_fd = set(), set()  # type: ignore[misc]
    real, kill = select.select, os.kill

    def sockets_alone(*lists: Any) -> Any:
        for each in [each for some in lists[:3] for each in some]:
            if not isinstance(each, socket.socket):
                raise OSError(10038, "An operation was attempted on something that is not a socket")
        return real(*lists)

    def no_question(pid: int, number: int) -> None:
        assert number, "there a signal of 0 is Ctrl-C for a whole group of processes"
        kill(pid, number)

    select.select, os.kill = sockets_alone, no_question


if __name__ == "__main__":
    become_foreign()
    warm.load()
    if warm.serve(socket.socket(fileno=int(sys.argv[1]))):
        page = sys.argv.pop(1)
        sys.stdin.reconfigure(encoding=page)  # type: ignore[union-attr]
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding=page, newline="\r\n")  # type: ignore[union-attr]
        warm.end(warm.run())
