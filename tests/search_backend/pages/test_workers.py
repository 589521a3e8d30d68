"""Documents are read by processes that can be killed, and never outlive their parent."""

from __future__ import annotations

import gc
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import cache, partial
from mimetypes import guess_type
from pathlib import Path

import pytest

from searchloop.search_backend.pages.worker import page_in
from searchloop.search_backend.pages.workers import ASKER, Turns, Workers
from searchloop.search_backend.plugin.entry_points import find_parts
from searchloop.search_backend.readers import read
from searchloop.search_backend.types import Page, SearchBackendError
from tests.conftest import linux_only
from tests.search_backend.documents import xlsx
from tests.tables import each_row
from tests.waiting import until

URL = "https://example.org/"
TEXT = "<p>Some words about the harbour and how it was built in three stages.</p>"
LARGE = f"<title>Harbour</title><main>{TEXT * 3000}</main>".encode()


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """One process at most."""
    pool = Workers(most=1, seconds=20)
    yield pool
    pool.close()


def memory(pid: int, name: str) -> int:
    """Bytes of a process, by the name in its status; 0 when it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def pids() -> set[int]:
    """The children of this process, by /proc."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = file.read_text("ascii", "replace").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(file.parent.name))
    return found


def opened(pool: Workers, body: bytes) -> str:
    """The status of a page, or the code of its problem."""
    page = pool.read(body, url=URL, content_type="text/html")
    return page.error.code if page.error else page.status


def test_a_worker_reads_what_this_process_would(workers: Workers) -> None:
    """Title, text, links and problems come through whole."""
    for body, kind in (
        (LARGE, "text/html"),
        (b"<div id=root></div><script>1</script>" * 9000, ""),
        (b"\0" * 200_000, "image/png"),
    ):
        asked = workers.read(body, url=URL, content_type=kind, charset="utf-8")
        assert asked == read(body, url=URL, content_type=kind, charset="utf-8")


@linux_only
def test_a_worker_is_used_again_and_missed_by_nobody_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed by whatever hand, or ended without work, it is replaced by the next page. Of this
    process's environment it has what a program needs to run, and nothing else."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    pool, before = Workers(most=1, seconds=20), pids()
    assert [opened(pool, body) for body in (TEXT.encode(), LARGE)] == ["ok", "ok"]
    (worker,) = pids() - before
    assert b"canary" not in Path(f"/proc/{worker}/environ").read_bytes()
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    pool._idle_seconds = 0.3
    assert opened(pool, LARGE) == "ok"
    (worker,) = pids() - before
    until(lambda: ") Z " in Path(f"/proc/{worker}/stat").read_text("ascii"))
    assert opened(pool, LARGE) == "ok"
    pool.close()
    assert not pids() - before


# Made when they are read: every worker of pytest would keep them.
HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "a million cells": lambda: b"<table>" + (b"<tr>" + b"<td>1" * 10) * 100_000,
    "two million tags": lambda: b"<br>" * 2_200_000,
    "an attribute": lambda: b"<p title='" + b"x" * 9_000_000 + b"'>hello world",
    "references": lambda: b"<p>" + b"&amp;<b>&lt;</b>" * 600_000,
}


@linux_only
def test_a_hostile_page_costs_little_memory() -> None:
    """At most 64 MiB at any moment over what the process has without work."""
    before, idle, ours = pids(), dict[int, int](), memory(os.getpid(), "VmRSS")
    with closing(Workers(most=1, seconds=20)) as pool:
        for name, made in HOSTILE.items():
            assert opened(pool, TEXT.encode()) == "ok"  # by another process if one has grown
            (worker,) = pids() - before
            idle.setdefault(worker, memory(worker, "VmRSS"))
            Path(f"/proc/{worker}/clear_refs").write_text("5", "ascii")  # the peak begins anew
            page = pool.read(made(), url=URL, content_type="text/html")
            assert (name, page.status in ("ok", "needs_js"), page.cut) == (name, True, True)
            peak = memory(worker, "VmHWM")
            assert peak > idle[worker], name
            assert peak < idle[worker] + 64 * 2**20, name
    gc.collect()
    assert memory(os.getpid(), "VmRSS") < ours + 64 * 2**20  # this process keeps none of it


def _cell(place: str, words: str = "1") -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'


def _sheet(*rows: str) -> bytes:
    return xlsx("".join(f'<row r="{n}">{row}</row>' for n, row in enumerate(rows, 1)))


@cache
def _large() -> bytes:
    return _sheet(_cell("A1", "b" * 51_000_000))


def _lying(body: bytes) -> bytes:
    """An archive that says of each of its parts that it unpacks to 99 bytes."""
    at = re.compile(rb"(PK\x01\x02.{20}|PK\x03\x04.{18}).{4}", re.DOTALL)
    return at.sub(lambda found: found[1] + struct.pack("<I", 99), body)


# A suffix, a small file, and the problems that it may have; none of them costs another its turn.
FILES: Mapping[str, tuple[str, Callable[[], bytes], str]] = {
    "far": ("xlsx", lambda: xlsx(f'<row r="1">{_cell("XFD1048576")}</row>'), "ok"),
    "wide": ("xlsx", lambda: _sheet(_cell("A1") + _cell("XFD1"), *[""] * 9999, _cell("A9999")), ""),
    "lies": ("xlsx", lambda: _lying(_large()), "bad_document"),
    "large": ("xlsx", _large, "too_large"),
    "groups": ("rtf", lambda: b"{\\rtf1" + b"{" * 2_000_000, ""),
    "words": ("rtf", lambda: b"{\\rtf1 \\" + b"a" * 300_000, "ok"),
    "number": ("rtf", lambda: b"{\\rtf1 \\u" + b"9" * 3_000_000, "bad_document"),
}


def test_a_hostile_file_costs_itself_alone() -> None:
    """Bombs of each kind of file end as one sentence, and this process keeps nothing of them."""
    ours = memory(os.getpid(), "VmRSS")
    with closing(Workers(most=1, seconds=20)) as pool:
        for name, (suffix, made, code) in FILES.items():
            url = f"file:///a.{suffix}"
            kind = guess_type(url)[0] or ""
            page = pool.read(made(), url=url, content_type=kind)
            told = page.error.code if page.error else page.status
            assert told == (code or "too_complex"), name
            assert opened(pool, TEXT.encode()) == "ok", name
    gc.collect()
    assert memory(os.getpid(), "VmRSS") < ours + 64 * 2**20


def test_whoever_asked_may_stop_the_reading() -> None:
    """The page ends at once, whether it waits or is read; a late wish to stop harms no other."""
    pool, gone = Workers(most=1, seconds=60), Future[None]()
    reading = partial(pool.read, url=URL, content_type="text/html")
    token = ASKER.set(gone)

    def read_on() -> None:  # each takes a moment: one of them is read when the wish comes
        while True:
            reading(LARGE)

    try:
        stopping = threading.Timer(0.05, gone.cancel)
        stopping.start()
        with pytest.raises(SearchBackendError) as stopped:
            read_on()
        assert stopped.value.code == "interrupted"
        with pytest.raises(SearchBackendError):
            reading(b"<p>never begun")
    finally:
        ASKER.reset(token)
        stopping.join()
    late = Future[None]()
    token = ASKER.set(late)
    assert reading(LARGE).status == "ok"
    ASKER.reset(token)
    worker = pool._idle[0]
    late.cancel()
    assert worker.alive()
    pool.close()


@linux_only
def test_workers_end_with_a_parent_that_is_killed() -> None:
    """Nothing is left behind, not even after kill -9."""
    program = (
        "import os, sys; from searchloop.search_backend.pages.workers import Workers\n"
        "pool, url = Workers(seconds=90), 'https://e.org/'\n"
        "pool.read(sys.stdin.buffer.read(), url=url, content_type='text/html')\n"
        "print(pool._idle[0]._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run(
        [sys.executable, "-c", program], input=LARGE, capture_output=True, cwd=root, check=False
    )
    pid = int(run.stdout)

    def ended() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
        except OSError:
            return True
        return state == "Z"

    until(ended)


ENDLESS = """
from searchloop import Reader

def endless(*_):
    while True:
        pass

READER = Reader(frozenset({{"text/x-swamp"}}), frozenset(), endless, {knows})
"""


@pytest.mark.parametrize("knows", ["endless", "bool"])
def test_a_plugin_that_never_ends_is_named(
    knows: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Whether it looks at a page or reads it, the page says which plugin it may be."""
    (tmp_path / "swamp.py").write_text(ENDLESS.format(knows=knows))
    info = tmp_path / "swamp_parts-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: swamp-parts\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[searchloop.readers]\nmud = swamp\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    find_parts.cache_clear()
    request.addfinalizer(find_parts.cache_clear)
    with closing(Workers(most=1, seconds=0.2)) as pool:
        error = pool.read(b"x", url=URL, content_type="text/x-swamp").error
    assert error is not None
    assert error.code == "too_complex"
    assert error.remedy.endswith("update or uninstall the plugin mud of swamp-parts 1.2.")


@pytest.mark.parametrize(
    ("fault", "code"), [(MemoryError, "too_complex"), (RecursionError, "unreadable")]
)
def test_a_fault_of_a_reader_is_a_page_that_says_so(fault: type[Exception], code: str) -> None:
    """What a reader stumbles over ends no worker and is not taken for something else."""

    def stumbling(body: bytes, **head: str) -> Page:
        raise fault

    page = page_in({"url": "https://a.example/"}, b"", cut=False, read=stumbling)
    assert page.status == "error"
    assert page.error is not None
    assert page.error.code == code


@each_row(("processes", "at_once"), [(1, 1), (2, 1), (4, 3)])
def test_documents_of_one_owner_leave_room_for_another(processes: int, at_once: int) -> None:
    """Beside many of one, another waits for nothing where there are two, else for one turn."""
    turns, order = Turns(processes), list[str]()

    def come(owner: str) -> threading.Thread:
        def work() -> None:
            if turns.take(owner, 20):
                order.append(owner)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    many = [come("one") for _ in range(8)]
    until(lambda: len(order) == at_once and len(turns._waiting) == 8 - at_once)
    other = come("another")
    if processes == 1:
        until(lambda: len(turns._waiting) == 8)
        turns.give_back("one")
    until(lambda: not other.is_alive())
    assert order == ["one"] * at_once + ["another"]
    turns.give_back("another")
    while any(thread.is_alive() for thread in many):
        if turns._at_work["one"]:
            turns.give_back("one")
    assert order.count("one") == 8


def test_a_turn_that_does_not_come_is_given_up() -> None:
    """Whoever waited in vain is forgotten, and takes no turn of those who wait on."""
    turns = Turns(1)
    assert turns.take("one", 0)
    assert not turns.take("another", 0)
    turns.give_back("one")
    assert turns.take("one", 0)
