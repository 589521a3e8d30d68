"""The order of results, each page once, and what is never among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.search.merge import keep, ranked
from searchloop.search_backend.types import Query, SearchResult
from tests.search_backend.chains import DOWN, Script, chain_of
from tests.tables import cut


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
    first, others = (
        "https://en.wikipedia.org/wiki/Tea",
        cut(
            "https://en.m.wikipedia.org/wiki/Tea#History https://en.wikipedia.org/wiki/Tea?utm_source=x"
        ),
    )
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
