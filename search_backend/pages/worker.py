"""The process that reads one document after another for `workers`, and may be killed at any time.

To stdout: READY when it is up. From stdin: two lengths of four bytes, a JSON object {url,
content_type, charset}, {charset, refresh} or {markup}, the body. To stdout: a length of four bytes
and JSON, a page, {refresh} or {rows}; with pickle, a parser that a page has taken over could run
code in the parent.
It ends with stdin, and with status 0 between two documents if it was idle for a while or has grown.
`searchloop.imports.worker` is such a process for imported chats.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, BinaryIO

from searchloop.search_backend.fetch.refresh import refresh_in
from searchloop.search_backend.plugin.challenge_pages import is_challenge
from searchloop.search_backend.plugin.markup import Markup, rows_in
from searchloop.search_backend.readers import find_readers, html, read
from searchloop.search_backend.types import Page, Problem, failed_page

ASKED = struct.Struct(">II")
_PIECE = 64 * 1024
ANSWERED = struct.Struct(">I")
READY = b"+"
# Fields of a page that no reader fills.
NOT_READ = frozenset({"attempts", "freshness", "reader", "redirects"})
# What a document may take beyond the process itself, and what of it may stay.
MOST_MEMORY = 60 * 2**20
MOST_KEPT = 28 * 2**20
# The part of a document that is read of those that make sense without their end.
MOST_READ = 8 * 2**20
LARGER = 1  # no kind of document but this


Answer = Callable[[dict[str, Any], bytes, bool], dict[str, Any]]


def main(answer_to: Answer, larger: int = 1) -> None:
    """Serves until stdin ends; another kind of document may be `larger` by so many times."""
    # Ctrl-C is for the parent, which closes stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Nothing that a library prints may get between the answers.
    os.dup2(2, 1)
    seconds, idle = int(sys.argv[1]), float(sys.argv[2])
    warm_up()
    most = bound_memory(larger) + larger * MOST_KEPT
    gc.freeze()  # what is loaded stays
    gc.disable()  # looking for garbage takes a sixth of the time of a page, which makes little
    target.write(READY)
    target.flush()
    while has_work(source, idle) and (request := take(source, larger)) is not None:
        bound_time(seconds)
        head, body, cut = request
        answer = json.dumps(answer_to(head, body, cut)).encode()
        del request, body
        target.write(ANSWERED.pack(len(answer)) + answer)
        target.flush()
        del answer
        gc.collect()
        if memory() > most:
            break


def answer_to(head: dict[str, Any], body: bytes, cut: bool) -> dict[str, Any]:
    """Returns the page in `body`; where it sends its readers on if `head` has `refresh`; the rows
    that an engine looks for if it has `markup`."""
    if "refresh" in head:
        return {"refresh": refresh_in(body, head["charset"], head["refresh"])}
    if "markup" in head:
        return {"rows": rows_in(body, Markup(**head["markup"]))}
    page = page_in(head, body, cut)
    return {name: value for name, value in asdict(page).items() if name not in NOT_READ}


def page_in(head: dict[str, Any], body: bytes, cut: bool, read: Callable[..., Page] = read) -> Page:
    """Returns the page in `body`, a failed one if its reader raises; `cut` marks a partial body."""
    try:
        page = read(body, **head)
        page = replace(page, challenged=is_challenge(body, page.title, page.text))
    except MemoryError:
        return failed_page(head["url"], TOO_LARGE)
    except Exception:
        return failed_page(head["url"], UNREADABLE)
    return replace(page, cut=page.cut or cut)


def has_work(source: BinaryIO, seconds: float) -> bool:
    """Waits up to `seconds` for input or its end; False if neither comes."""
    try:
        return bool(select.select([source], [], [], seconds)[0])
    except OSError:  # this system cannot wait for a pipe
        return True


def warm_up() -> None:
    """Loads what reading needs, so that the memory limit counts only what documents take."""
    find_readers()  # asks none of them: one that another package brought may never answer
    words = "<p>" + "Some words of an article to read. " * 40 + "</p>"
    html.read(words.encode(), "https://localhost/", None)


def bound_memory(larger: int = 1) -> int:
    """Limits further memory and returns the bytes in use now."""
    now = memory()
    _limit("RLIMIT_DATA", now + larger * MOST_MEMORY)
    return now


def _limit(name: str, most: int) -> None:
    """Sets one of the limits of this process, where the system has it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        kind = getattr(resource, name)
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def memory() -> int:
    """Returns the bytes of this process's own data; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * mmap.PAGESIZE
    except OSError:
        return 0


def bound_time(seconds: int) -> None:
    """Limits CPU seconds from now on, so that no document outlives a killed parent."""
    _limit("RLIMIT_CPU", int(time.process_time()) + seconds + 2)


def is_parsed_whole(body: bytes) -> bool:
    """True for PDF and archives, which are read from their ends and may unpack to much."""
    return b"%PDF-" in body[:1024] or body.startswith(b"PK\x03\x04")


def take(source: BinaryIO, larger: int = 1) -> tuple[dict[str, Any], bytes, bool] | None:
    """Returns (arguments, body, body was cut) of the next request; None at the end."""
    lengths = source.read(ASKED.size)
    if len(lengths) < ASKED.size:
        return None
    head, size = ASKED.unpack(lengths)
    arguments = json.loads(source.read(head))
    most = larger * MOST_READ
    body = source.read(min(size, most))
    if size > most and is_parsed_whole(body):
        return arguments, body + source.read(size - most), False
    for at in range(most, size, _PIECE):
        source.read(min(_PIECE, size - at))
    return arguments, body, size > most


TOO_LARGE = Problem(
    "too_complex",
    "Reading this page takes more memory than one page may have.",
    "Use another source, or a simpler version of the page (print view, feed).",
)
UNREADABLE = Problem(
    "unreadable", "The text of this page could not be made out.", "Use another source."
)
