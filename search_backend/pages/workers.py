"""Reads documents in processes that can be killed, whatever their size.

A few kilobytes are enough to cost minutes, and a parser or a pattern that is stuck in this process
would stop all its threads, also the one that answers signals. The first page starts a worker, which
is used again, and killed with a page that takes too long or too much memory. A worker that has
grown or was idle for a minute ends by itself; all end with this process, as their stdin does.
A page dies with its question, too: `ASKER` tells when whoever asked has gone. `CLIENT` tells who
that is: the documents of one take turns with those of the others, and leave a process free.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from searchloop.search_backend.pages.worker import ANSWERED, ASKED, READY, TOO_LARGE
from searchloop.search_backend.plugin.markup import Markup
from searchloop.search_backend.readers import Reader, reader_plugins
from searchloop.search_backend.types import (
    EngineError,
    Page,
    Problem,
    SearchBackendError,
    failed_page,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SECONDS = 5.0
START_SECONDS = 30.0
IDLE_SECONDS = 60.0
_MOST_ANSWER = 80 << 20  # bytes, which this process parses; a chat of 32 MiB may take as many
# Ends when nobody waits for the page any more that this thread is opening.
ASKER: ContextVar[Future[None] | None] = ContextVar("asker", default=None)
CLIENT: ContextVar[str] = ContextVar("client", default="")
_READER = "searchloop.search_backend.pages.worker"
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from importlib import import_module; own = import_module(sys.argv.pop()); "
    "from searchloop.search_backend.pages.worker import main; main(own.answer_to, own.LARGER)"
)


@cache
def _page_reader() -> TypeAdapter[Page]:
    from pydantic import TypeAdapter  # takes 75 ms to load

    return TypeAdapter(Page)


class Turns:
    """Lets up to `most` documents at a time have their turn, fewer of one owner if there are two.

    Among those that wait it is the turn of the owner with the fewest at work who has waited longest
    since the last one.
    """

    def __init__(self, most: int) -> None:
        self._most, self._of_one = most, max(1, most - 1)
        self._changed = threading.Condition()
        self._at_work = Counter[str]()
        self._waiting: list[str] = []  # owners, in the order of their turns
        self._served: list[str] = []  # owners, the last one last

    def take(self, owner: str, seconds: float) -> bool:
        """Waits up to so many seconds for a turn; False if it did not come."""
        with self._changed:
            self._waiting.append(owner)
            came = self._changed.wait_for(lambda: self._next() == owner, timeout=seconds)
            self._waiting.remove(owner)
            if came:
                self._at_work[owner] += 1
                self._served = [*(one for one in self._served if one in self._waiting), owner]
            self._changed.notify_all()
            return came

    def give_back(self, owner: str) -> None:
        """Ends a turn."""
        with self._changed:
            self._at_work[owner] -= 1
            self._at_work += Counter()  # forgets those at 0
            self._changed.notify_all()

    def _next(self) -> str | None:
        """The owner whose turn it is now; None if all are taken."""
        may = [one for one in dict.fromkeys(self._waiting) if self._at_work[one] < self._of_one]
        if self._at_work.total() >= self._most or not may:
            return None
        return min(may, key=lambda one: (self._at_work[one], self._last(one)))

    def _last(self, owner: str) -> int:
        return self._served.index(owner) if owner in self._served else -1


class Workers:
    """A pool of up to `most` processes, which end after `idle` seconds without work.

    A document may take `seconds` in a process that is up (a busy machine may need longer to start
    one), and wait twice as long for its turn.
    """

    def __init__(
        self,
        most: int | None = None,
        seconds: float = SECONDS,
        idle: float = IDLE_SECONDS,
        module: str = _READER,
    ) -> None:
        """`module`: the one whose `answer_to` the processes call."""
        self._turns = Turns(most or max(2, min(4, os.cpu_count() or 1)))
        self._seconds = seconds
        self._idle_seconds = idle
        self._module = module
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []

    def read(self, body: bytes, *, url: str, content_type: str, charset: str | None = None) -> Page:
        """Returns the page as `readers.read` does; status error if reading was given up.

        Raises SearchBackendError if nobody waits for it any more.
        """
        head = {"url": url, "content_type": content_type, "charset": charset}
        told = self.answer(head, body)
        if isinstance(told, Problem):
            return failed_page(url, told)
        return _page_reader().validate_python(told)

    def refresh_in(self, body: bytes, charset: str | None, header: str) -> str | None:
        """Returns what `refresh.refresh_in` does; None if reading was given up.

        Raises SearchBackendError if nobody waits for it any more.
        """
        told = self.answer({"charset": charset, "refresh": header}, body)
        return None if isinstance(told, Problem) else told["refresh"]

    def rows(self, body: bytes, markup: Markup) -> list[dict[str, str]] | None:
        """Returns what `markup.rows_in` does. Raises EngineError if reading was given up."""
        told = self.answer({"markup": markup.as_json()}, body)
        if isinstance(told, Problem):
            what = "Reading its answer took too long, or too much memory."
            raise EngineError("parse", what, "Use another engine.")
        rows = told["rows"]
        return rows and [{name: str(text) for name, text in row.items()} for row in rows]

    def answer(self, head: Mapping[str, Any], body: bytes) -> dict[str, Any] | Problem:
        """Returns what a process answers, or why it did not. Raises SearchBackendError as `read`
        does.
        """
        owner = CLIENT.get()
        if not self._turns.take(owner, 2 * self._seconds):
            return _BUSY
        try:
            told = None if _nobody_waits() else self._ask(json.dumps(head).encode(), body)
            if told is None or (isinstance(told, Problem) and _nobody_waits()):
                raise SearchBackendError("interrupted", "Nobody waits for this page.", "Ask again.")
            return told
        finally:
            self._turns.give_back(owner)

    def _ask(self, head: bytes, body: bytes) -> dict[str, Any] | Problem:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        # A worker that died while idle is replaced.
        if worker is not None and not worker.alive():
            worker.kill()
            worker = None
        worker = worker or self._new()
        told = worker.ask(head, body)
        if told is None and worker.has_retired():
            worker.kill()
            worker = self._new()
            told = worker.ask(head, body)
        if told is None:
            worker.kill()
            return _too_slow() if worker.late else TOO_LARGE
        with self._lock:
            self._idle.append(worker)
        return told

    def _new(self) -> _Worker:
        return _Worker(self._seconds, self._idle_seconds, self._module)

    def close(self) -> None:
        """Kills the idle processes."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.kill()


_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


class _Worker:
    """One process, for one document at a time."""

    def __init__(self, seconds: float, idle: float, module: str) -> None:
        self.late = False
        self._seconds = seconds
        self._is_up = False
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-c", _START, str(max(1, round(seconds))), str(idle)),
                *(module, json.dumps(sys.path)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # A parser that a page has taken over finds no key in its environment.
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )

    def alive(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    def has_retired(self) -> bool:
        """True if it ended by itself, between two documents."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(5) == 0
        return False

    def ask(self, head: bytes, body: bytes) -> dict[str, Any] | None:
        """Returns the answer; None if the process died or was killed over it."""
        try:
            source, target = self._pipes()
            if not self._is_up:
                with self._killed_after(START_SECONDS):
                    self._is_up = source.read(len(READY)) == READY
            with self._killed_after(self._seconds):
                target.write(ASKED.pack(len(head), len(body)) + head)
                target.write(body)
                target.flush()
                (size,) = ANSWERED.unpack(source.read(ANSWERED.size))
                return json.loads(source.read(size)) if size <= _MOST_ANSWER else None
        except (OSError, ValueError, struct.error):  # the last two of an answer that is cut
            return None

    @contextlib.contextmanager
    def _killed_after(self, seconds: float) -> Iterator[None]:
        def kill(_: object = None) -> None:
            if not timer.finished.is_set():
                self.late = True
                self._process.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        if asker := ASKER.get():
            asker.add_done_callback(kill)
        try:
            yield
        finally:
            timer.cancel()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process.stdout is None or self._process.stdin is None:
            raise OSError("the worker has no pipes")
        return self._process.stdout, self._process.stdin

    def kill(self) -> None:
        """Kills the process and closes its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()


def _nobody_waits() -> bool:
    asker = ASKER.get()
    return asker is not None and asker.done()


_BUSY = Problem(
    "busy",
    "The page was not read: too many pages are being read at the moment.",
    "Try again in a few seconds.",
)


def _too_slow() -> Problem:
    """Names the plugins that read documents: one of them may be what never ends."""
    what = f"Reading this page took longer than {SECONDS:g} s and was given up."
    remedy = "Use another source, or a simpler version of the page (print view, feed)."
    names = [f"{p.name} of {p.package}" for p in reader_plugins() if isinstance(p.value, Reader)]
    if names:
        remedy += f" If it happens often, update or uninstall the plugin {' or '.join(names)}."
    return Problem("too_complex", what, remedy)


# Of the whole process: workers are not for one application alone.
WORKERS = Workers()
atexit.register(WORKERS.close)
