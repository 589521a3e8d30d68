"""The process that reads one document after another for `workers`, and can be killed at any time.

From stdin: two lengths of four bytes, a JSON object {url, content_type, charset}, the body. To
stdout: a length of four bytes and a page as JSON. JSON and not pickle, because a parser that a page
has taken over must not be able to make the parent run anything. It ends when stdin does.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from dataclasses import asdict
from typing import Any, BinaryIO

from search_backend.readers import read
from search_backend.types import Page, Problem

ASKED = struct.Struct(">II")
ANSWERED = struct.Struct(">I")
# Fields of a page that no reader fills.
NOT_READ = frozenset({"attempts", "freshness", "reader"})
# What a document may take beyond the process itself.
MOST_MEMORY = 192 * 2**20


def main() -> None:
    """Serve until stdin ends."""
    # Ctrl-C is for the parent, which closes stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Nothing that a library prints may get between the answers.
    os.dup2(2, 1)
    seconds = int(sys.argv[1])
    warm_up()
    bound_memory()
    while (request := take(source)) is not None:
        bound_time(seconds)
        head, body = request
        try:
            page = read(body, **head)
        except MemoryError:
            page = failed(head["url"], TOO_LARGE)
        told = {name: value for name, value in asdict(page).items() if name not in NOT_READ}
        answer = json.dumps(told).encode()
        target.write(ANSWERED.pack(len(answer)) + answer)
        target.flush()


def warm_up() -> None:
    """Load what reading needs, so that memory is bounded by what documents take."""
    words = "<p>" + "Some words of an article to read. " * 40 + "</p>"
    read(words.encode(), url="https://localhost/", content_type="text/html")


def bound_memory() -> None:
    """Where the system can do that."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (now + MOST_MEMORY, most))
    except (ImportError, OSError, ValueError):
        pass


def bound_time(seconds: int) -> None:
    """CPU seconds from now on, so that a document does not outlive a parent that was killed."""
    try:
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + seconds + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    except (ImportError, OSError, ValueError):
        pass


def take(source: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """(arguments, body) of the next request; None at the end."""
    lengths = source.read(ASKED.size)
    if len(lengths) < ASKED.size:
        return None
    head, body = ASKED.unpack(lengths)
    return json.loads(source.read(head)), source.read(body)


def failed(url: str, problem: Problem) -> Page:
    """A page of status error."""
    return Page(url=url, final_url=url, title="", text="", status="error", error=problem)


TOO_LARGE = Problem(
    "too_complex",
    "Reading this page takes more memory than one page may have.",
    "Use another source, or a simpler version of the page (print view, feed).",
)

if __name__ == "__main__":
    main()
