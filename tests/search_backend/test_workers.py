"""Large documents are read by processes that can be killed, and never outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from search_backend.readers import read
from search_backend.worker import failed
from search_backend.workers import Workers

URL = "https://example.org/"
TEXT = "<p>Some words about the harbour and how it was built in three stages.</p>"
LARGE = f"<title>Harbour</title><main>{TEXT * 3000}</main>".encode()
# Tables in cells are as slow as markup gets.
SLOW = b"<table><tr><td>" * 400_000


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """One process at most."""
    pool = Workers(most=1, seconds=20)
    yield pool
    pool.close()


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


def test_small_pages_start_nothing() -> None:
    """A library or a command that reads small pages has no other process."""
    pool = Workers()
    before = pids()
    assert opened(pool, TEXT.encode()) == "ok"
    assert pids() == before


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_a_worker_is_used_again_and_replaced_when_it_is_gone() -> None:
    """Killed by whatever hand between two pages, it is missed by nobody."""
    pool, before = Workers(most=1, seconds=20), pids()
    assert opened(pool, LARGE) == "ok"
    (worker,) = pids() - before
    assert opened(pool, LARGE) == "ok"
    assert pids() - before == {worker}
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    assert opened(pool, LARGE) == "ok"
    pool.close()


def test_a_worker_knows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process's environment it has what a program needs to run, and nothing else."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    pool = Workers(most=1, seconds=20)
    before = pids()
    assert opened(pool, LARGE) == "ok"
    (child,) = pids() - before
    assert b"canary" not in Path(f"/proc/{child}/environ").read_bytes()
    pool.close()


def test_a_page_that_takes_too_long_is_given_up() -> None:
    """With its process, and the next page is read by another."""
    pool = Workers(most=1, seconds=1)
    try:
        page = pool.read(SLOW, url=URL, content_type="text/html")
        assert page.status == "error"
        assert page.error is not None
        assert page.error.code == "too_complex"
        assert "another" in page.error.remedy
    finally:
        pool.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_workers_end_with_a_parent_that_is_killed() -> None:
    """Nothing is left behind, not even after kill -9."""
    program = (
        "import os, sys; from search_backend.workers import WORKERS\n"
        "WORKERS.read(sys.stdin.buffer.read(), url='https://e.org/', content_type='text/html')\n"
        "print(WORKERS._idle[0]._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-c", program], input=LARGE, capture_output=True, cwd=root, check=False
    )
    pid = int(run.stdout)
    for _ in range(200_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        os.sched_yield()
    pytest.fail("a worker outlived its parent")


def test_a_failed_page_tells_its_problem() -> None:
    """The page of a problem has no text and the address it was asked for."""
    from search_backend.worker import TOO_LARGE

    page = failed(URL, TOO_LARGE)
    assert (page.status, page.text, page.final_url) == ("error", "", URL)
