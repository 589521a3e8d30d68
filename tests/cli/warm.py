"""Runs `searchloop`, or `python -c CODE`, again and again without importing it each time.

The modules are loaded once; each command is a fork of that, with its own arguments, environment,
folder and standard streams. Threads, `atexit` and what is to be flushed end as in any Python; the
modules are not pulled down one by one, which costs more than most commands. POSIX only, as the
tests that use it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import sys
import threading
import traceback
from importlib import import_module
from os import fork  # bound here, before `foreign` takes them away
from socket import recv_fds
from types import ModuleType

PATIENCE = 60  # seconds that a command may take


def load() -> None:
    """What nearly every command needs; rare and heavy things are still loaded when asked for."""
    for name in (
        "agent.bare_agent",
        "agent.transport.pool",
        "search_backend.api.app",
        "compose.own_search_backend",
    ):
        import_module(f"searchloop.{name}")
    for name in ("cli", "agent.providers", "search_backend.engines", "search_backend.readers"):
        load_package(f"searchloop.{name}")
    assert threading.active_count() == 1, "a fork would lose the other threads"
    gc.freeze()  # a child need not look through, and so copy, what it was born with


def load_package(package: str) -> None:
    """A package with all that is in it."""
    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if not found.name.endswith("__main__"):
            import_module(found.name)


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
        data, streams, _, _ = recv_fds(channel, 1 << 20, 3)
        if not data:
            return False
        child = fork()
        if child == 0:
            channel.close()
            become(json.loads(data), streams)
            return True
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def run() -> int:
    """The command; its exit code."""
    try:
        if sys.argv[1:2] == ["-c"]:
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(sys.argv[2], "<string>", "exec"), vars(sys.modules["__main__"]))
            return 0
        return int(import_module("searchloop.cli.main").main())
    except SystemExit as leaving:
        if leaving.code is not None and not isinstance(leaving.code, int):
            sys.stderr.write(f"{leaving.code}\n")
            return 1
        return leaving.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


def end(code: int) -> None:
    """What Python does at its end, as far as others can see it."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        end(run())
