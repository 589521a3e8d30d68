"""A process that copies, restores or opens a store, and dies at a point of our choosing.

Points are numbered as they are reached: each operation of SQLite on a file, and each file that is
renamed, linked, removed or opened otherwise. Orders come as lines of JSON on stdin.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, restore
from tests.crash.disk import Disk
from tests.crash.mortal import Fuse, fork, obey

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


def until(order: dict[str, Any]) -> None:
    """Does it up to the point that the order names."""
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


if __name__ == "__main__":
    obey(lambda order: fork(lambda: until(order)))
