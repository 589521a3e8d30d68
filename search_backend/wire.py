"""The bytes of one answer, as a file that ends at a deadline and after so many bytes.

Whoever parses what a stranger sends reads it through this: then no line, header or chunk can cost
more time or memory than was granted, whatever the parser bounds by itself.

Spec: the interface of io.RawIOBase
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol


class Source(Protocol):
    """What is needed of a connected socket."""

    def settimeout(self, seconds: float, /) -> None: ...

    def recv_into(self, buffer: memoryview, size: int, /) -> int: ...


class TooMuch(Exception):
    """The server sent more than the allowance."""


class Wire(io.RawIOBase):
    """Reads from a socket. `left` gives the seconds until the deadline or raises TimeoutError;
    `allowance` is the number of bytes still granted."""

    def __init__(self, connection: Source, left: Callable[[], float], allowance: int) -> None:
        super().__init__()
        self._connection = connection
        self._left = left
        self.allowance = allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Raises TooMuch, TimeoutError, OSError."""
        if self.allowance <= 0:
            raise TooMuch
        self._connection.settimeout(self._left())
        size = self._connection.recv_into(buffer, min(len(buffer), self.allowance))
        self.allowance -= size
        return size
