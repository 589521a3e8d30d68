"""Standard input and output that are pipes, files or old consoles, on every system.

Text that is piped in is UTF-8, also where the system's own code page is another. What a code page
cannot show is written as `?` instead of ending the program.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
import threading
from contextlib import suppress
from typing import TextIO

from searchloop.agent.errors import ConfigError

MOST = 4_000_000  # bytes of a text: no question may be longer in any script
SILENT = 3.0  # seconds after which a pipe has nothing for us
_LOOK = 0.5  # seconds: a thread that is joined for good cannot be interrupted on Windows


def prepare_streams(*streams: TextIO) -> None:
    """Lets these, by default standard output and error, show any text; reads pipes as UTF-8."""
    if isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8-sig")
    for stream in streams or (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def piped_text(*, wait: bool, stdin: TextIO | None = None, silent: float = SILENT) -> str:
    """Returns the text that was piped in, "" if there is none. Raises ConfigError unless UTF-8.

    With `wait` a pipe that stays `silent` for so long is left alone; TimeoutError says so.
    """
    stdin = stdin or sys.stdin
    try:
        number = stdin.fileno()
        kind = os.fstat(number).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if stdin.isatty() or stat.S_ISCHR(kind):
        return ""
    patience = silent if wait and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) else None
    try:
        data = read_all(number, patience)
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        return decoder.decode(data, final=len(data) < MOST)
    except UnicodeDecodeError as error:
        what = "Standard input is not UTF-8 text."
        raise ConfigError("bad_stdin", what, "Convert it to UTF-8 first.") from error


def read_all(number: int, patience: float | None = None) -> bytes:
    """Reads a file descriptor to its end, or at least MOST bytes of it.

    Raises TimeoutError if nothing comes for `patience` seconds.

    A thread reads, because Windows cannot `select` a pipe. It takes no lock of a stream, so that
    the program can end while it still waits.
    """
    data, begun = bytearray(), threading.Event()

    def read() -> None:
        with suppress(OSError):
            while len(data) < MOST and (piece := os.read(number, 1 << 16)):
                data.extend(piece)
                begun.set()
        begun.set()

    reader = threading.Thread(target=read, name="stdin", daemon=True)
    reader.start()
    if patience is not None and not begun.wait(patience):
        raise TimeoutError
    while reader.is_alive():
        reader.join(_LOOK)
    return bytes(data)
