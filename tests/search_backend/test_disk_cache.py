"""The file that keeps answers and pages: bounded, private, and never a reason to fail."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.search_backend.cache.disk import NAME, Disk
from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.types import (
    Attempt,
    Filtered,
    Owner,
    Problem,
    Query,
    SearchAnswer,
    SearchResult,
)
from tests.search_backend.chains import DOWN, Clock, Script, chain_of

MB = 2**20
TEA, URL = Query("tea"), "https://a.example/"


def test_what_was_put_is_there_until_its_time_is_over(tmp_path: Path) -> None:
    """In this object and in the next one, with its age."""
    clock = Clock()
    disk = Disk(tmp_path, MB, clock=clock)
    disk.put("a", "key", {"text": "Tee \ud83e\uded6 \u2603", "n": [1, None]}, 60)
    disk.put("a", "long", {"text": "tea " * 10_000}, 60)
    clock.now += 59
    entry = Disk(tmp_path, MB, clock=clock).get("a", "key")
    assert entry is not None
    assert (entry.age, entry.value["n"]) == (59.0, [1, None])
    assert entry.value["text"].endswith("\u2603")
    assert (found := disk.get("a", "long")) is not None
    assert len(found.value["text"]) == 40_000
    assert disk.get("b", "key") is None
    clock.now += 1
    assert disk.get("a", "key") is None


@pytest.mark.parametrize(
    ("jump", "fresh"),
    [(-86_400 * 365, False), (-10, False), (6, True), (3_600, False), (86_400 * 365, False)],
)
def test_neither_a_lock_nor_a_clock_that_jumps_stops_it(
    tmp_path: Path, jump: float, fresh: bool
) -> None:
    """While another program holds the file, nothing is found and nothing raised; some seconds later
    it is used, whatever the clock did. An entry of the future is not believed."""
    clock = Clock()
    disk = Disk(tmp_path, MB, clock=clock)
    disk.put("a", "old", {}, 60)
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        disk.put("a", "locked", {}, 60)
        assert disk.get("a", "old") is None
    clock.now += jump
    assert disk.put("a", "new", {"n": 1}, 60)
    assert (disk.get("a", "old") is not None) is fresh
    clock.now += 30
    assert (found := disk.get("a", "new")) is not None
    assert (found.age, found.value) == (30, {"n": 1})


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """What one searches for is nobody else's business, whatever the umask or an old mode says."""
    home = tmp_path / "new"
    Disk(home, MB).put("a", "key", {}, 60)
    for path in home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    (home / NAME).chmod(0o644)
    assert Disk(home, MB).get("a", "key") is not None
    assert stat.S_IMODE((home / NAME).stat().st_mode) == 0o600


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_the_file_stays_within_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Bytes and rows are bounded, the newest is there, and the oldest went first; one entry cannot
    take all the room."""
    home, chance, clock = tmp_path_factory.mktemp("cache"), random.Random(seed), Clock()
    disk = Disk(home, 512 * 1024, most_rows=100, clock=clock)
    small = []
    for n in range(300):
        clock.now += 1
        size = chance.choice((10, 2_000, 20_000, 90_000))  # the last is over a sixteenth of it
        small += [n] if size < 90_000 else []
        disk.put("a", str(n), {"text": chance.randbytes(size).hex()}, 10_000)
        assert (disk.get("a", str(n)) is not None) is (size < 90_000)
    held = [n for n in range(300) if disk.get("a", str(n))]
    assert 0 < len(held) <= 100
    assert held == small[-len(held) :], "only the oldest are gone"
    assert sum(p.stat().st_size for p in home.iterdir() if p.name == NAME) <= 512 * 1024
    disk.close()


def test_what_no_file_may_hold_is_in_memory(tmp_path: Path) -> None:
    """What is asked for a temporary chat, what may not be stored, and all where no file can be."""
    clock, passing = Clock(), Owner("passing", temporary=True)
    cache = Cache(Disk(tmp_path, MB, clock=clock), clock)
    first, second, third = (Problem(str(n), "", "") for n in range(3))
    cache.put("mine", first, 60, passing)
    cache.put("secret", second, 60, write=False)
    assert not (tmp_path / NAME).exists()
    assert cache.get(Problem, "mine") == (first, 0)
    assert cache.get(Problem, "secret") == (second, 0)
    clock.now += 1
    cache.put("mine", third, 60)
    assert cache.get(Problem, "mine") == (third, 0), "the newest of the two"
    assert cache.forget("passing") == 1


@pytest.mark.parametrize("size", [0, 1])
def test_switched_off_it_makes_no_file(tmp_path: Path, size: int) -> None:
    """Nothing is written and nothing found."""
    disk = Disk(tmp_path, size)
    disk.put("a", "key", {}, 60)
    assert disk.get("a", "key") is None
    assert list(tmp_path.iterdir()) == []
    assert disk.clear() == 0


def of_another_version(_: bytes) -> bytes:
    """A file as an earlier version wrote it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE entries (kind TEXT, key BLOB, made REAL)")
        return connection.serialize()


@pytest.mark.parametrize(
    "damage",
    [
        of_another_version,
        lambda data: b"not a database at all" * 200,
        lambda data: data[:100] + os.urandom(len(data) - 100),
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:16] + b"\xff" * 84 + data[100:],
    ],
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """No request fails, and after a while things are kept again."""
    clock = Clock()
    disk = Disk(tmp_path, MB, clock=clock)
    for n in range(50):
        disk.put("a", str(n), {"text": "x" * 1_000}, 600)
    disk.close()
    path = tmp_path / NAME
    path.write_bytes(damage(path.read_bytes()))
    again = Disk(tmp_path, MB, clock=clock)
    for n in range(60):
        again.get("a", str(n))
        again.put("a", "new", {"n": n}, 600)
        clock.now += 6
    found = again.get("a", "new")
    assert found is not None
    assert found.value == {"n": 59}


def test_a_value_that_is_not_ours_is_not_there(tmp_path: Path) -> None:
    """What another program wrote into the file does not come out as an answer."""
    disk = Disk(tmp_path, MB)
    for n, value in enumerate((b"[1]", b"{", b"\xff", b"")):
        disk.put("a", str(n), {}, 60)
        with sqlite3.connect(tmp_path / NAME) as connection:
            connection.execute("UPDATE entries SET value = ?, packed = ?", (value, n % 2))
        connection.close()
        assert disk.get("a", str(n)) is None


def test_a_place_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    """A file where the folder should be, or a folder where the file should be."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder" / NAME).mkdir(parents=True)
    for home in (tmp_path / "file", tmp_path / "folder"):
        disk = Disk(home, MB)
        disk.put("a", "key", {}, 60)
        assert disk.get("a", "key") is None
        (in_memory := Cache(disk)).put("key", Problem("1", "", ""), 60)
        assert in_memory.get(Problem, "key") is not None
    assert (tmp_path / "file").read_text() == "in the way"


def test_it_can_be_emptied(tmp_path: Path) -> None:
    """Everything goes, from the disk as well, and how much that was is told."""
    disk = Disk(tmp_path, MB)
    for n in range(20):
        disk.put("a", str(n), {"text": "secret-word"}, 60)
    assert disk.clear() == 20
    disk.close()
    assert all(b"secret-word" not in path.read_bytes() for path in tmp_path.iterdir())
    (tmp_path / NAME).write_bytes(b"damaged" * 1_000)
    assert Disk(tmp_path, MB).clear() == 0
    assert not (tmp_path / NAME).exists() or Disk(tmp_path, MB).clear() == 0


ANSWER = SearchAnswer(
    "tea",
    "one",
    "ok",
    (
        SearchResult("T", "https://a.example/", "s", "one", "2026-01-02"),
        SearchResult("U", "https://b.example/", "s", "two"),
    ),
    (Attempt("one", "ok", 12), Attempt("two", "error", 5, Problem("network", "Down.", "Wait."))),
    Filtered("time_range=d", 0, lifted=True),
    ("country",),
)


@pytest.mark.parametrize("answer", [ANSWER, replace(ANSWER, filtered=None, not_applied=())])
def test_answers_come_back_as_they_were(tmp_path: Path, answer: SearchAnswer) -> None:
    """Every field survives the way to the disk and back, and the age goes on."""
    clock, front = Clock(), Clock()
    disk = Disk(tmp_path, MB, clock=clock)
    Cache(disk, front).put("key", answer, 60)
    clock.now += 20
    later = Cache(disk, front)
    assert later.get(SearchAnswer, "key") == (answer, 20)
    clock.now += 40
    assert later.get(SearchAnswer, "key") is None


def test_a_search_is_answered_after_a_restart(tmp_path: Path) -> None:
    """Nobody is asked, and the answer says that it is kept and how old it is."""
    engines = {"down": (down := Script(DOWN)), "web": (web := Script([URL]))}

    def restarted(**changes: Any) -> Chain:
        cache = Cache(Disk(tmp_path, MB))
        return chain_of(tmp_path, engines, cache=cache, **({"cache_seconds": 60.0} | changes))

    first = restarted().search(TEA)
    assert not first.cached
    again = restarted().search(TEA)
    assert (again.cached, again.results, down.asked, web.asked) == (
        True,
        first.results,
        ["tea"],
        ["tea"],
    )
    assert again.as_json()["cached"] is True
    assert again.as_json()["age"] == 0
    # Another question, another wish, another chain: each is asked.
    others: list[tuple[Query, dict[str, Any]]] = [
        (Query("pots"), {}),
        (Query("tea", max_results=3), {}),
        (TEA, {"engines": ("web",)}),
    ]
    for n, (query, changes) in enumerate(others, 2):
        assert not restarted(**changes).search(query).cached
        assert len(web.asked) == n


@pytest.mark.parametrize(
    ("engine", "seconds", "kept"),
    [("local", 60.0, False), ("web", 60.0, True), ("web", 0.0, False)],
)
def test_freshness_is_the_engines(tmp_path: Path, engine: str, seconds: float, kept: bool) -> None:
    """What this machine knows is never kept."""
    made = chain_of(tmp_path, {engine: Script([URL])}, cache_seconds=seconds)
    made.search(TEA)
    assert made.search(TEA).cached is kept
