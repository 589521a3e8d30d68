"""Ports of 127.0.0.1 that nobody else takes meanwhile."""

from __future__ import annotations

import atexit
import random
import socket
from functools import cache

# Below those that systems hand out by themselves, to whoever listens at or connects from any port.
_LEFT_ALONE = (20_000, 32_000)


@cache
def closed_port() -> int:
    """One at which nobody listens, nor can: it is taken for as long as this process lives."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    atexit.register(taken.close)
    port: int = taken.getsockname()[1]
    return port


def closed_address() -> str:
    """The address of a server that is not there."""
    return f"http://127.0.0.1:{closed_port()}"


def free_port() -> int:
    """One for a server that has to be told its own, and may have to come back to it."""
    while True:
        port = random.SystemRandom().randrange(*_LEFT_ALONE)
        with socket.socket() as trying:
            try:
                trying.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
