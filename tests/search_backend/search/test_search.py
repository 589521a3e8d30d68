"""The chain: failed is not empty, every attempt is on record, rules are applied and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Access, Engine, default_chain, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.limits import RESTS, TRIAL_SECONDS, CircuitBreakers
from searchloop.search_backend.settings import Settings
from searchloop.search_backend.types import EngineError, Query, SearchBackendError, SearchResult

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


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


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
    settings = Settings(tmp_path, tuple(known), offline, keys or {})
    return Chain(settings, Library(tmp_path, dict), known, clock or Clock())


NETWORK = EngineError("network", "The network is down.", "Plug it in.")
BLOCKED = EngineError("blocked", "Refused.", "Wait.")


def statuses(answer: object) -> list[tuple[str, str]]:
    """(engine, status) of each attempt."""
    return [(a.engine, a.status) for a in answer.attempts]  # type: ignore[attr-defined]


def test_the_first_engine_with_results_answers(tmp_path: Path) -> None:
    """Later engines are not asked when an earlier one has results."""
    second = Script(hits("https://b.example/"))
    answer = chain(
        tmp_path, engine("one", Script(hits("https://a.example/"))), engine("two", second)
    ).search(Query("tea"))
    assert (answer.status, answer.engine) == ("ok", "one")
    assert [r.url for r in answer.results] == ["https://a.example/"]
    assert second.queries == []


@pytest.mark.parametrize(
    ("failure", "status"), [(NETWORK, "error"), (BLOCKED, "blocked"), (KeyError("x"), "error")]
)
def test_a_failure_leads_on_and_stays_on_record(
    tmp_path: Path, failure: Exception, status: str
) -> None:
    """An engine that failed, even by a fault of its own, does not keep the next from answering."""
    answer = chain(
        tmp_path,
        engine("one", Script(failure)),
        engine("two", Script(hits("https://b.example/"))),
    ).search(Query("tea"))
    assert answer.engine == "two"
    assert statuses(answer) == [("one", status), ("two", "ok")]
    assert answer.attempts[0].error is not None
    assert answer.attempts[0].error.message.endswith(".")


@pytest.mark.parametrize(
    ("first", "library", "expected"),
    [
        ([], [], "empty"),
        (NETWORK, [], "error"),
        (BLOCKED, [], "blocked"),
    ],
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


def test_a_failing_engine_rests_and_is_tried_again(tmp_path: Path) -> None:
    """After a network failure the next search passes the engine over, later ones try it again."""
    clock, script = Clock(), Script(NETWORK, hits("https://a.example/"))
    asked = chain(
        tmp_path,
        engine("one", script),
        engine("two", Script(hits("https://b.example/"))),
        clock=clock,
    )
    asked.search(Query("tea"))
    resting = asked.search(Query("tea"))
    assert statuses(resting) == [("one", "skipped"), ("two", "ok")]
    assert resting.attempts[0].error is not None
    # Five seconds, a little more or less, and never told as less.
    assert re.search(r"asked again in [56] s", resting.attempts[0].error.message)
    clock.now += 1.2 * RESTS["network"][0]
    assert asked.search(Query("tea")).engine == "one"
    assert len(script.queries) == 2


def test_resting_engines_do_not_make_a_search_empty(tmp_path: Path) -> None:
    """While the only web engine rests, a search without results is a failed one."""
    asked = chain(tmp_path, engine("one", Script(NETWORK)))
    asked.search(Query("tea"))
    assert asked.search(Query("tea")).status == "error"


def test_an_engine_asked_by_name_is_asked_even_while_it_rests(tmp_path: Path) -> None:
    """Naming an engine is the way to try it now, and no other engine is asked."""
    script = Script(NETWORK, hits("https://a.example/"))
    other = Script(hits("https://b.example/"))
    asked = chain(tmp_path, engine("one", script), engine("two", other))
    asked.search(Query("tea"))
    other.queries.clear()
    assert asked.search(Query("tea"), "one").engine == "one"
    assert other.queries == []


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


def test_an_empty_account_rests_for_an_hour() -> None:
    """Only the user can help, so asking again soon is of no use."""
    circuits = CircuitBreakers(Clock())
    circuits.failed("x", "quota")
    circuits.failed("y", "auth")
    assert circuits.resting("x") == (3_600, "quota")
    assert circuits.resting("y") == (3_600, "auth")


def test_what_the_engine_says_is_kept_to_exactly() -> None:
    """Retry-After: 7 means seven seconds, without any spread; our own rests are spread."""
    circuits = CircuitBreakers(Clock(), spread=lambda: 1.1)
    circuits.failed("x", "rate", retry_after=7)
    circuits.failed("y", "rate")
    assert circuits.resting("x") == (7, "rate")
    assert circuits.resting("y") == (pytest.approx(5.5), "rate")


def test_one_search_tries_the_engine_after_its_rest() -> None:
    """One caller is admitted and the others are not, until it is known or nobody waits for it."""
    clock = Clock()
    circuits = CircuitBreakers(clock)
    circuits.failed("x", "network")
    assert not circuits.admit("x")
    clock.now += 5
    assert [circuits.admit("x") for _ in range(3)] == [True, False, False]
    clock.now += TRIAL_SECONDS
    assert [circuits.admit("x") for _ in range(2)] == [True, False]
    circuits.released("x")
    assert [circuits.admit("x") for _ in range(2)] == [True, False]
    circuits.succeeded("x")
    assert [circuits.admit("x") for _ in range(2)] == [True, True]


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


def test_engines_are_found_and_described(tmp_path: Path) -> None:
    """Files in engines/ are engines; the description tells what each one lacks."""
    known = find_engines()
    assert {"ddg", "library"} <= set(known)
    rows = chain(
        tmp_path, engine("one", Script([])), engine("two", Script([]), needs=("TWO_KEY",))
    ).describe()["engines"]
    assert [(row["name"], row["available"], row["missing"]) for row in rows] == [
        ("one", True, []),
        ("two", False, ["TWO_KEY"]),
    ]


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
