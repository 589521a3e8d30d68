"""A process that copies, restores or opens a store, and dies at a point of our choosing.

Points are numbered as they are reached: each operation of SQLite on a file, and each file that is
renamed, linked, removed or opened otherwise. Orders come as lines of JSON on stdin.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, restore
from tests.crash.disk import Disk
from tests.crash.mortal import Fuse, obey

_NAMES = frozenset({"os.rename", "os.remove", "os.link", "open", "shutil.copyfile"})


def do(order: dict[str, Any]) -> None:
    """Does what is asked for."""
    store, copy = Path(order["store"]), order["copy"] and Path(order["copy"])
    if order["work"] == "backup":
        backup(store, copy)
    elif order["work"] == "restore":
        restore(store, copy)
    else:
        EventLog(store).close()


def fork(order: dict[str, Any]) -> bool:
    """One life, in a process of its own: whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fuse = Fuse(order["fatal"])

            def met(kind: str) -> int:
                fuse.point()
                return 0

            def named(event: str, args: tuple[Any, ...]) -> None:
                if event in _NAMES:
                    fuse.point()

            sys.addaudithook(named)
            with Disk(met):
                do(order)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


if __name__ == "__main__":
    obey(fork)
