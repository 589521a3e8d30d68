"""Runs `searchloop` again and again without importing it each time.

The modules are loaded once; each command is a fork of that, with its own arguments, environment,
folder and standard streams, and it ends like any Python. POSIX only, as the tests that use it.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import socket
import sys
import threading
from importlib import import_module

PATIENCE = 60  # seconds that a command may take


def load() -> None:
    """What nearly every command needs; rare and heavy things are still loaded when asked for."""
    import_module("searchloop.agent.library")
    import_module("searchloop.search_backend.api.app")
    for package in (
        "searchloop.cli",
        "searchloop.agent.providers",
        "searchloop.search_backend.engines",
    ):
        for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                import_module(found.name)
    assert threading.active_count() == 1, "a fork would lose the other threads"
    gc.freeze()  # a child need not look through, and so copy, what it was born with


def become(request: dict[str, object], streams: list[int]) -> None:
    """In the child: this process is the command from here on."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.alarm(PATIENCE)
    os.environ.clear()
    os.environ.update(request["env"])  # type: ignore[call-overload]
    os.chdir(str(request["cwd"]))
    sys.path[1:1] = os.environ["PYTHONPATH"].split(os.pathsep)
    sys.argv = ["searchloop", *request["args"]]  # type: ignore[misc]


def serve(channel: socket.socket) -> bool:
    """Forks for each request until the channel closes; True in a child."""
    while True:
        data, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not data:
            return False
        child = os.fork()
        if child == 0:
            channel.close()
            become(json.loads(data), streams)
            return True
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    load()
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        raise SystemExit(import_module("searchloop.cli.main").main())
