"""The chain: failed is not empty, every attempt is on record, rules are applied and told; the order
of results, each page once, and what is never among them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.engines import Engine, default_chain
from searchloop.search_backend.search.limits import RESTS, CircuitBreakers
from searchloop.search_backend.search.merge import keep, ranked
from searchloop.search_backend.types import Query, SearchBackendError, SearchResult
from tests.search_backend.chains import BLOCKED, DOWN, Clock, Script, chain_of, trail
from tests.tables import each_row

TEA = Query("tea")


@each_row(
    ("answers", "expected"),
    [
        ({"web": [], "local": []}, "empty"),
        ({"web": DOWN, "local": []}, "error"),
        ({"web": BLOCKED, "local": []}, "blocked"),
        ({"web": DOWN, "other": []}, "empty"),
    ],
)
def test_failed_is_not_empty(tmp_path: Path, answers: dict[str, Any], expected: str) -> None:
    """A local library that knows nothing does not turn a failed web search into an empty one, nor
    does a rest of the engine that failed. One of the web that found nothing is believed."""
    chain = chain_of(tmp_path, {name: Script(answer) for name, answer in answers.items()})
    answer = chain.search(TEA)
    assert (answer.status, answer.engine, answer.results) == (expected, None, ())
    assert chain.search(Query("pots")).status == expected


@each_row("kind", RESTS)
def test_rests_double_up_to_a_bound(kind: str) -> None:
    """An engine that stays away is asked ever more seldom. A refusal that may be none counts from
    the second in a row; one good answer closes the circuit."""
    clock = Clock()
    circuits = CircuitBreakers(clock)
    first, longest = RESTS[kind]
    if kind in ("blocked", "parse", "config"):
        circuits.failed("x", kind)
        assert circuits.resting("x") is None
    for n in range(9):
        circuits.failed("x", kind)
        assert circuits.resting("x") == (pytest.approx(min(first * 2**n, longest)), kind)
        circuits.failed("x", kind)  # of a search that began before
        clock.now += min(first * 2**n, longest)
        assert circuits.resting("x") is None
    circuits.succeeded("x")
    circuits.failed("x", "network")
    assert circuits.resting("x") == (RESTS["network"][0], "network")


def test_offline_asks_local_engines_only(tmp_path: Path) -> None:
    """With SEARCHLOOP_OFFLINE no remote engine is asked, not even by name; one query may be offline
    too, and by name a remote engine is refused."""
    web = Script(["https://a.example/"])
    engines = {"web": web, "library": Script(["library://docs/a.md"])}
    asked = chain_of(tmp_path, engines, offline=True)
    assert trail(asked.search(TEA)) == [("web", "skipped"), ("library", "ok")]
    by_name = asked.search(TEA, "web")
    assert (by_name.status, trail(by_name)) == ("error", [("web", "skipped")])
    asked, here = chain_of(tmp_path, engines), replace(TEA, offline=True)
    assert trail(asked.search(here)) == [("library", "ok")]
    with pytest.raises(SearchBackendError, match="not on this machine"):
        asked.search(here, "web")
    assert web.queries == []
    assert asked.search(TEA).engine == "web"


def test_domain_rules_are_applied_to_what_engines_return(tmp_path: Path) -> None:
    """Results outside the rules are dropped and counted; the next engine is asked if none stay."""
    web = Script(["https://evil-example.org/", "https://x.com/"])
    more = Script(["https://www.EXAMPLE.org./a", "https://bad.example.org/"])
    query = replace(TEA, allowed_domains=("example.org",), blocked_domains=("bad.example.org",))
    answer = chain_of(tmp_path, {"web": web, "more": more}).search(query)
    assert [r.url for r in answer.results] == ["https://www.EXAMPLE.org./a"]
    assert trail(answer) == [("web", "empty"), ("more", "ok")]
    assert answer.filtered is not None
    assert answer.filtered.dropped == 3
    assert "allowed_domains=example.org" in answer.filtered.rule


def test_what_narrows_is_lifted_together_and_rules_stay(tmp_path: Path) -> None:
    """Where nothing is found with a time range, a country and a language, the search is repeated
    without them, visibly; domains and safe search hold all the same."""
    script = Script([], ["https://a.example/"])
    narrow = {"time_range": "d", "country": "de", "language": "fr"}
    query = Query("tea", **narrow, safe_search="strict", blocked_domains=("b.example",))
    answer = chain_of(tmp_path, {"one": script}).search(query)
    again = script.queries[1]
    assert (again.time_range, again.country, again.language) == (None, None, None)
    assert (again.safe_search, again.blocked_domains) == ("strict", ("b.example",))
    assert (answer.status, len(answer.attempts)) == ("ok", 2)
    assert answer.filtered is not None
    assert answer.filtered.rule == "time_range=d; country=de; language=fr"
    assert answer.filtered.lifted
    nothing = Script([])
    chain_of(tmp_path, {"one": nothing}).search(replace(TEA, safe_search="strict"))
    assert len(nothing.queries) == 1


def test_results_are_cleaned(tmp_path: Path) -> None:
    """Invisible characters and line ends in titles and snippets do not reach the caller; he is told
    how many of the former there were."""
    dirty = SearchResult("A\u202eB\nC", "https://a.example/", "x\U000e0041y\x1b[0m", "fake")
    (result,) = chain_of(tmp_path, {"one": Script([dirty])}).search(TEA).results
    assert (result.title, result.snippet, result.invisible) == ("AB C", "xy[0m", 3)
    assert result.as_json()["invisible"] == 3


def test_the_default_order_puts_the_users_own_engines_first() -> None:
    """Engines with a key, then those that need none, then the local ones; others are left out."""
    known = {
        "alone": Engine("alone", "Alone", Script([]), remote=False),
        "free": Engine("free", "Free", Script([])),
        "keyed": Engine("keyed", "Keyed", Script([]), needs=("KEY",)),
        "unset": Engine("unset", "Unset", Script([]), needs=("OTHER",)),
    }
    assert default_chain(known, {"KEY": "k"}) == ("keyed", "free", "alone")


def outcome(*urls: str, published: str | None = None) -> list[SearchResult]:
    """What one engine has found."""
    return [SearchResult(url, url, "", "web", published) for url in urls]


def order(*found: list[SearchResult], most: int = 20) -> list[SearchResult]:
    """The results as they are shown."""
    return [*ranked(found, most)]


def urls(found: list[SearchResult]) -> list[str]:
    """Their addresses."""
    return [one.url for one in found]


@given(st.lists(st.integers(0, 99), unique=True, max_size=20), st.integers(1, 20))
def test_one_engine_keeps_its_order(numbers: list[int], most: int) -> None:
    """Whatever it has found, as many as were asked for."""
    found = [f"https://a.example/{n}" for n in numbers]
    assert urls(order(outcome(*found), most=most)) == found[:most]


def test_a_page_is_shown_once() -> None:
    """Under the first of its addresses; found by two engines it moves up."""
    first = "https://en.wikipedia.org/wiki/Tea"
    others = ["https://en.m.wikipedia.org/wiki/Tea#History", f"{first}?utm_source=x"]
    found = order(outcome("https://a.example/", first, *others), outcome(*others[::-1]))
    assert urls(found) == [first, "https://a.example/"]


def test_a_date_that_one_engine_knows_is_kept() -> None:
    """The first result is shown, with the other's date."""
    same = "https://doi.org/10.5555/tea"
    (page,) = order(outcome(same), outcome(same, published="2020-01-02"))
    assert page.published == "2020-01-02"


BLOCKED = Query("tea", blocked_domains=("bad.example",))


@pytest.mark.parametrize(
    "url",
    [
        "https://bad.example/tea",
        "https://www.bad.example:443/tea",
        "https://web.archive.org/web/2020/https://bad.example/tea",
        "https://archive.ph/2020/http://sub.bad.example/tea",
        "https://www.google.com/amp/s/bad.example/tea",
        "https://bad-example.cdn.ampproject.org/c/s/bad.example/tea",
        "https://www.google.com/url?sa=t&url=https%3A%2F%2Fbad.example%2Ftea&usg=x",
        "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fbad.example%2Ftea",
        "https://bad-example.translate.goog/tea?_x_tr_sl=de",
        "https://12ft.io/https://bad.example/tea",
    ],
)
def test_a_blocked_site_is_never_shown(tmp_path: Path, url: str) -> None:
    """Neither itself nor through archives, redirects, viewers and translations; nor from a site
    that the router has chosen."""
    kept = keep([SearchResult("x", url, "", "web")], BLOCKED)
    assert (kept.results, kept.outside) == ((), 1)
    sites = {"web": Script(DOWN), "crossref": Script([url, "https://good.example/"])}
    query = Query("papers about tea", blocked_domains=("bad.example",))
    answer = chain_of(tmp_path, sites).search(query)
    assert [r.url for r in answer.results] == ["https://good.example/"]


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example/about?ref=bad.example",
        "https://web.archive.org/web/2020/https://good.example/tea",
        "https://good.example/search?q=https",
        "https://en.wikipedia.org/wiki/Bad.example",
    ],
)
def test_a_page_that_only_names_a_blocked_site_stays(url: str) -> None:
    """What counts is whose page is shown."""
    assert keep([SearchResult("x", url, "", "web")], BLOCKED).results
