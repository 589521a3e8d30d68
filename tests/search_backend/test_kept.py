"""What is kept in memory: bounded, for its time, and never what this machine knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Problem, Query
from tests.search_backend.chains import DOWN, Clock, Script, chain_of

TEA, URL = Query("tea"), "https://a.example/"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 400), st.integers(-9, 60))))
def test_the_newest_values_are_there_within_the_bounds(steps: list[tuple[int, int, int]]) -> None:
    """Whatever is put in whatever order and however the clock jumps: the oldest went first, one
    that is too large alone is not kept, and none outlives its time."""
    clock = Clock()
    cache, held = Cache(clock, most=1_000), dict[int, tuple[float, Problem]]()
    for key, size, seconds in steps:
        clock.now += seconds
        value = Problem("x" * size * 3, "", "")
        cache.put(str(key), value, 60)
        held.pop(key, None)
        if len(repr(value)) <= 1_000:
            held[key] = clock.now, value
        while sum(len(repr(each)) for _, each in held.values()) > 1_000:
            del held[next(iter(held))]
        for one in range(10):
            made, known = held.get(one, (0.0, None))
            age = clock.now - made
            wanted = (known, age) if known and 0 <= age < 60 else None
            assert cache.get(Problem, str(one)) == wanted


def test_the_same_search_gets_the_same_answer(tmp_path: Path) -> None:
    """Nobody is asked, and the answer says that it is kept and how old it is. Another question,
    another wish and an engine by name are asked; a failure and what this machine knows is not
    kept, nor anything for longer than its time."""
    down, web, clock = Script(DOWN), Script([URL]), Clock()
    cache = Cache(clock)
    chain = chain_of(tmp_path, {"down": down, "web": web}, clock, cache, cache_seconds=60.0)
    first, again = chain.search(TEA), chain.search(TEA)
    assert (down.asked, web.asked) == (["tea"], ["tea"])
    assert again.as_json() == first.as_json() | {"cached": True, "age": 0}
    asked = [(Query("pots"), None), (Query("tea", max_results=3), None), (TEA, "web")]
    for n, (query, engine) in enumerate(asked, 2):
        assert not chain.search(query, engine).cached
        assert len(web.asked) == n
    clock.now += 60
    assert not chain.search(TEA).cached
    for engine, found, seconds in (("local", [URL], 60.0), ("web", [URL], 0.0), ("web", [], 60.0)):
        made = chain_of(tmp_path, {engine: Script(found)}, cache_seconds=seconds)
        assert [made.search(TEA).cached for _ in range(2)] == [False, False]


def test_a_file_of_before_goes(tmp_path: Path) -> None:
    """Earlier versions kept answers on disk: a chat that is deleted now may stand in there."""
    for name in ("cache.sqlite3", "cache.sqlite3-wal", "library.txt"):
        (tmp_path / name).write_text("tea")
    create_app(SearchSettings(tmp_path, ()))
    left: Any = [path.name for path in tmp_path.glob("*.*")]
    assert {"cache.sqlite3", "cache.sqlite3-wal"}.isdisjoint(left)
    assert "library.txt" in left
