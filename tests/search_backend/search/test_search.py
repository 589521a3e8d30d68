"""The chain: failed is not empty, every attempt is on record, rules are applied and told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Access, Engine, default_chain
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.limits import RESTS, CircuitBreakers
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchBackendError, SearchResult
from tests.search_backend.search.test_engine_chain import Clock

Search = Callable[[Query, Access], list[SearchResult]]


def hits(*urls: str) -> list[SearchResult]:
    """Results at these addresses."""
    return [SearchResult(f"Title of {url}", url, "Words.", "fake") for url in urls]


class Script:
    """An engine's search that plays answers one after the other and then repeats the last."""

    def __init__(self, *answers: list[SearchResult] | Exception) -> None:
        self.answers = list(answers)
        self.queries: list[Query] = []

    def __call__(self, query: Query, access: Access) -> list[SearchResult]:
        self.queries.append(query)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def engine(
    name: str,
    search: Search,
    *,
    remote: bool = True,
    needs: tuple[str, ...] = (),
    applies: Sequence[str] = (),
) -> Engine:
    """An engine for these tests."""
    return Engine(name, name.title(), search, needs, remote, frozenset(applies))


def chain(
    tmp_path: Path,
    *engines: Engine,
    clock: Callable[[], float] | None = None,
    offline: bool = False,
    keys: dict[str, str] | None = None,
) -> Chain:
    """A chain over these engines in their order."""
    known = {one.name: one for one in engines}
    settings = SearchSettings(tmp_path, tuple(known), offline, keys or {})
    return Chain(settings, Library(tmp_path, dict), known, clock or Clock())


NETWORK = EngineError("network", "The network is down.", "Plug it in.")
BLOCKED = EngineError("blocked", "Refused.", "Wait.")


def statuses(answer: object) -> list[tuple[str, str]]:
    """(engine, status) of each attempt."""
    return [(a.engine, a.status) for a in answer.attempts]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("first", "library", "expected"),
    [([], [], "empty"), (NETWORK, [], "error"), (BLOCKED, [], "blocked")],
)
def test_failed_is_not_empty(
    tmp_path: Path,
    first: list[SearchResult] | Exception,
    library: list[SearchResult],
    expected: str,
) -> None:
    """A local library that knows nothing does not turn a failed web search into an empty one."""
    answer = chain(
        tmp_path, engine("web", Script(first)), engine("local", Script(library), remote=False)
    ).search(Query("tea"))
    assert (answer.status, answer.engine, answer.results) == (expected, None, ())


def test_a_web_engine_that_found_nothing_is_believed(tmp_path: Path) -> None:
    """One engine that searched and found nothing outweighs another that failed."""
    answer = chain(tmp_path, engine("one", Script(NETWORK)), engine("two", Script([]))).search(
        Query("tea")
    )
    assert answer.status == "empty"


def test_resting_engines_do_not_make_a_search_empty(tmp_path: Path) -> None:
    """While the only web engine rests, a search without results is a failed one."""
    asked = chain(tmp_path, engine("one", Script(NETWORK)))
    asked.search(Query("tea"))
    assert asked.search(Query("tea")).status == "error"


@pytest.mark.parametrize("kind", ["blocked", "parse", "config"])
def test_a_doubtful_refusal_counts_only_when_it_repeats(kind: str) -> None:
    """Two such answers in a row open the circuit, one good answer closes it."""
    circuits = CircuitBreakers(Clock())
    circuits.failed("x", kind)
    assert circuits.resting("x") is None
    assert circuits.admit("x")
    circuits.failed("x", kind)
    assert circuits.resting("x") == (RESTS[kind][0], kind)
    assert not circuits.admit("x")
    circuits.succeeded("x")
    assert circuits.admit("x")


@pytest.mark.parametrize("kind", ["network", "rate"])
def test_rests_double_up_to_a_bound(kind: str) -> None:
    """An engine that stays away is asked ever more seldom, yet at least every five minutes."""
    clock = Clock()
    circuits = CircuitBreakers(clock)
    rests = []
    for _ in range(8):
        circuits.failed("x", kind)
        resting = circuits.resting("x")
        assert resting is not None
        rests.append(resting[0])
        clock.now += resting[0]
        assert circuits.resting("x") is None
    assert rests == [5, 10, 20, 40, 80, 160, 300, 300]


def test_unknown_engines_and_missing_keys_are_named(tmp_path: Path) -> None:
    """The error names the engines there are, or the setting that is missing."""
    asked = chain(
        tmp_path, engine("one", Script([])), engine("two", Script([]), needs=("TWO_KEY",))
    )
    with pytest.raises(SearchBackendError, match="no engine named 'three'") as unknown:
        asked.search(Query("tea"), "three")
    assert "one, two" in unknown.value.remedy
    with pytest.raises(SearchBackendError, match="lacks TWO_KEY"):
        asked.search(Query("tea"), "two")
    assert statuses(asked.search(Query("tea"))) == [("one", "empty"), ("two", "skipped")]


def test_offline_asks_local_engines_only(tmp_path: Path) -> None:
    """With SEARCHLOOP_OFFLINE no remote engine is asked, not even by name."""
    web = Script(hits("https://a.example/"))
    asked = chain(
        tmp_path,
        engine("web", web),
        engine("local", Script(hits("library://docs/a.md")), remote=False),
        offline=True,
    )
    answer = asked.search(Query("tea"))
    assert statuses(answer) == [("web", "skipped"), ("local", "ok")]
    by_name = asked.search(Query("tea"), "web")
    assert (by_name.status, statuses(by_name)) == ("error", [("web", "skipped")])
    assert web.queries == []


def test_a_query_that_stays_here_asks_local_engines_only(tmp_path: Path) -> None:
    """One query may be offline: no remote engine is asked, by name it is refused."""
    web = Script(hits("https://a.example/"))
    local = engine("library", Script(hits("library://docs/a.md")), remote=False)
    asked, here = chain(tmp_path, engine("web", web), local), Query("tea", offline=True)
    assert statuses(asked.search(here)) == [("library", "ok")]
    with pytest.raises(SearchBackendError, match="not on this machine"):
        asked.search(here, "web")
    assert web.queries == []
    assert asked.search(Query("tea")).engine == "web"


def test_domain_rules_are_applied_to_what_engines_return(tmp_path: Path) -> None:
    """Results outside the rules are dropped and counted; the next engine is asked if none stay."""
    web = engine("web", Script(hits("https://evil-example.org/", "https://x.com/")))
    more = engine("more", Script(hits("https://www.EXAMPLE.org./a", "https://bad.example.org/")))
    query = Query("tea", allowed_domains=("example.org",), blocked_domains=("bad.example.org",))
    answer = chain(tmp_path, web, more).search(query)
    assert [r.url for r in answer.results] == ["https://www.EXAMPLE.org./a"]
    assert statuses(answer) == [("web", "empty"), ("more", "ok")]
    assert answer.filtered is not None
    assert answer.filtered.dropped == 3
    assert "allowed_domains=example.org" in answer.filtered.rule


def test_an_empty_time_range_is_lifted_and_told(tmp_path: Path) -> None:
    """Nothing in the time range: the search is repeated without it, visibly."""
    script = Script([], hits("https://a.example/"))
    answer = chain(tmp_path, engine("one", script, applies=["time_range"])).search(
        Query("tea", time_range="d")
    )
    assert answer.status == "ok"
    assert [query.time_range for query in script.queries] == ["d", None]
    assert answer.filtered is not None
    assert (answer.filtered.rule, answer.filtered.lifted) == ("time_range=d", True)
    assert len(answer.attempts) == 2


def test_what_narrows_is_lifted_together_and_rules_stay(tmp_path: Path) -> None:
    """Country and language like the time range; domains and safe search hold all the same."""
    script = Script([], hits("https://a.example/"))
    query = Query(
        "tea", country="de", language="fr", safe_search="strict", blocked_domains=("b.example",)
    )
    answer = chain(tmp_path, engine("one", script)).search(query)
    again = script.queries[1]
    assert (again.country, again.language, again.safe_search) == (None, None, "strict")
    assert again.blocked_domains == ("b.example",)
    assert answer.filtered is not None
    assert (answer.filtered.rule, answer.filtered.lifted) == ("country=de; language=fr", True)
    nothing = Script([], [])
    chain(tmp_path, engine("one", nothing)).search(Query("tea", safe_search="strict"))
    assert len(nothing.queries) == 1


def test_what_an_engine_cannot_do_is_told(tmp_path: Path) -> None:
    """A time range that the engine ignores is reported as not applied."""
    answer = chain(tmp_path, engine("one", Script(hits("https://a.example/")))).search(
        Query("tea", time_range="d")
    )
    assert answer.not_applied == ("time_range",)


def test_each_page_is_shown_once_and_no_more_than_asked_for(tmp_path: Path) -> None:
    """Spellings of one address count as one page; the number of results is a limit."""
    urls = (
        "https://example.org/tea",
        "http://www.example.org/tea/?utm_source=x#leaves",
        "https://example.org/tea/index.html",
        "https://example.org/tea?b=2&a=1",
        "https://example.org/tea?a=1&b=2",
        "https://example.org/coffee",
        "https://example.org/cocoa",
    )
    answer = chain(tmp_path, engine("one", Script(hits(*urls)))).search(Query("tea", max_results=3))
    assert [r.url for r in answer.results] == [urls[0], urls[3], urls[5]]


def test_results_are_cleaned(tmp_path: Path) -> None:
    """Invisible characters and line ends in titles and snippets do not reach the caller; he is told
    how many of the former there were."""
    dirty = SearchResult("A\u202eB\nC", "https://a.example/", "x\U000e0041y\x1b[0m", "fake")
    result = chain(tmp_path, engine("one", Script([dirty]))).search(Query("tea")).results[0]
    assert (result.title, result.snippet, result.invisible) == ("AB C", "xy[0m", 3)
    assert result.as_json()["invisible"] == 3


def test_the_default_order_puts_the_users_own_engines_first() -> None:
    """Engines with a key, then those that need none, then the local ones; others are left out."""
    known = {
        one.name: one
        for one in (
            engine("alone", Script([]), remote=False),
            engine("free", Script([])),
            engine("keyed", Script([]), needs=("KEY",)),
            engine("unset", Script([]), needs=("OTHER",)),
        )
    }
    assert default_chain(known, {"KEY": "k"}) == ("keyed", "free", "alone")
