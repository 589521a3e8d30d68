"""What a search may wish for, over every engine: respected, done afterwards, or told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Engine, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.merge import filtered, keep
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Filtered, Query, SearchResult
from tests.fakes import FakeServer, Received, Reply
from tests.search_backend.search.engine_cases import BY_NAME, CASES, ddg_reply
from tests.search_backend.search.zim_archives import write

WISHES: Mapping[str, Query] = {
    "time_range": Query("tea", time_range="y"),
    "country": Query("tea", country="de"),
    "language": Query("tea", language="de"),
    "safe_search": Query("tea", safe_search="strict"),
}


@pytest.mark.parametrize("name", sorted(find_engines()))
def test_no_wish_is_lost(tmp_path: Path, name: str) -> None:
    """Each engine, each wish: respected by the engine, or named in `not_applied`; the number of
    results and the domains hold whatever the engine returned."""
    keys: dict[str, str] = {}
    engines: dict[str, Engine] = {name: find_engines()[name]}
    library = Library(tmp_path, lambda: {f"{n}.md": f"# Tea {n}\n\nAbout tea." for n in range(9)})

    def always(received: Received) -> Reply:
        return BY_NAME[name].reply(received) if name in BY_NAME else ddg_reply(received)

    with FakeServer(always) as server:
        if name in BY_NAME:
            keys = BY_NAME[name].keys(server.url)
        elif name == "zim":
            keys = {"ZIM_FILES": str(write(tmp_path / "tea.zim"))}
        elif name == "ddg":
            keys = {"DDG_BASE_URL": server.url}
        own = SearchSettings(tmp_path, (name,), keys=keys)
        engines = {name: replace(engine, rate=0.0) for name, engine in engines.items()}
        chain = Chain(own, library, engines)
        some = chain.search(Query("tea", max_results=1), name)
        assert len(some.results) == 1
        for wish, query in WISHES.items():
            answer = chain.search(query, name)
            assert answer.results, answer.attempts
            respected = wish in engines[name].respects(query)
            lifted = answer.filtered is not None and answer.filtered.lifted
            assert (wish not in answer.not_applied) == (respected or lifted), wish
        nowhere = chain.search(Query("tea", allowed_domains=("nowhere.example",)), name)
        assert nowhere.results == ()
    assert {case.name for case in CASES} | {"ddg", "library", "zim"} == set(find_engines())


@pytest.mark.parametrize(
    ("when", "kept"), [("d", "ab-"), ("w", "abc-"), ("m", "abcd-"), ("y", "abcd-")]
)
def test_a_time_range_is_done_here_when_the_engine_cannot(when: str, kept: str) -> None:
    """Older results are dropped and counted; those without a date stay."""
    dates = {"a": "2026-11-21", "b": "2026-11-19", "c": "2026-11-13", "d": "2026-10-20"}
    found = [SearchResult(n, f"https://{n}.example/", "", "x", d) for n, d in dates.items()]
    found += [SearchResult("-", "https://undated.example/", "", "x")]
    found += [SearchResult("old", "https://old.example/", "", "x", "2020-01-01")]
    query = Query("tea", time_range=when)  # type: ignore[arg-type]
    today = date(2026, 11, 21)
    done = keep(found, query, frozenset(), today)
    assert "".join(result.title for result in done.results) == kept
    assert filtered(query, 0, done.stale) == Filtered(
        f"time_range={when}", 6 - len(kept), lifted=False
    )
    assert keep(found, query, frozenset({"time_range"}), today).stale == 0
