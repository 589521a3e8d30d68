"""The order of results: each work once, new before old, and why."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.search.merge import keep
from searchloop.search_backend.search.ranking import Ranked, rank, work_key
from searchloop.search_backend.search.router import wants_news
from searchloop.search_backend.search.schedule import Outcome
from searchloop.search_backend.types import Attempt, Query, SearchResult
from tests.search_backend.chains import DOWN, Script, chain_of
from tests.tables import cut, each_row

TODAY = date(2026, 11, 22)


def outcome(engine: str, *urls: str, dates: tuple[str | None, ...] = ()) -> Outcome:
    """What one engine has found."""
    dated = (*dates, *[None] * len(urls))
    results = [SearchResult(u, u, "", engine, d) for u, d in zip(urls, dated, strict=False)]
    return Outcome(Attempt(engine, "ok", 1), tuple(results))


def order(*outcomes: Outcome, text: str = "tea", most: int = 20) -> list[Ranked]:
    """The ranked results."""
    return rank(outcomes, Query(text, max_results=most), TODAY)


def urls(ranked: list[Ranked]) -> list[str]:
    """Their addresses."""
    return [page.result.url for page in ranked]


@given(st.lists(st.integers(0, 99), unique=True, max_size=20), st.integers(1, 20))
def test_one_engine_keeps_its_order(numbers: list[int], most: int) -> None:
    """Whatever it has found, as many as were asked for."""
    found = [f"https://a.example/{n}" for n in numbers]
    assert urls(order(outcome("web", *found), most=most)) == found[:most]


SAME = [
    "https://arxiv.org/abs/1706.03762v5 https://arxiv.org/pdf/1706.03762 "
    "https://www.arxiv.org/pdf/1706.03762v7.pdf https://arxiv.org/html/1706.03762v7 "
    "https://export.arxiv.org/abs/1706.03762 https://doi.org/10.48550/arXiv.1706.03762",
    "https://arxiv.org/abs/hep-th/9901001 https://arxiv.org/pdf/hep-th/9901001v3",
    "https://doi.org/10.1038/nature14539 http://dx.doi.org/10.1038/NATURE14539",
    "https://pubmed.ncbi.nlm.nih.gov/27933103/ https://www.ncbi.nlm.nih.gov/pubmed/27933103",
    "https://stackoverflow.com/questions/11227809/why-is-it https://stackoverflow.com/q/11227809 "
    "https://stackoverflow.com/questions/11227809/why-is-it/11227902#11227902",
    "https://en.wikipedia.org/wiki/Tea https://en.m.wikipedia.org/wiki/Tea#History",
    "https://www.openstreetmap.org/way/437595031 https://openstreetmap.org/way/437595031",
]
DIFFERENT = [
    "https://arxiv.org/abs/1706.03762 https://arxiv.org/abs/1706.03763",
    "https://doi.org/10.1038/nature14539 https://doi.org/10.1038/nature14540",
    "https://stackoverflow.com/questions/11 https://superuser.com/questions/11",
    "https://exam.example.com/questions/1/a https://exam.example.com/questions/1/b",
    "https://arxiv.org/list/cs.CL/recent https://arxiv.org/list/cs.LG/recent",
]


@each_row("same", SAME)
def test_a_work_is_shown_once(same: str) -> None:
    """Under the first of its addresses, and found by two engines it moves up."""
    first, *others = cut(same)
    assert {work_key(url) for url in others} == {work_key(first)}
    ranked = order(
        outcome("web", "https://a.example/", first, *others), outcome("more", *others[::-1])
    )
    assert urls(ranked) == [first, "https://a.example/"]
    assert ranked[0].reasons == ("place 2 of web", "place 1 of more")


@each_row("different", DIFFERENT)
def test_two_works_stay_two(different: str) -> None:
    """What only looks alike is not one."""
    assert len({work_key(url) for url in cut(different)}) == 2


def test_a_date_that_one_engine_knows_is_kept() -> None:
    """The first result is shown, with the other's date."""
    web = outcome("web", "https://doi.org/10.5555/tea")
    other = outcome("crossref", "https://doi.org/10.5555/tea", dates=("2020-01-02",))
    (page,) = order(web, other)
    assert (page.result.source, page.result.published) == ("web", "2020-01-02")


@each_row(
    "text",
    [
        *("latest news on tea", "tea prices today", "neueste Nachrichten Tee", "noticias del té"),
        *("actualités du thé", "茶叶最新消息", "お茶のニュース", "новости о чае", "أخبار الشاي"),
    ],
)
def test_a_question_for_news_prefers_what_is_new(text: str) -> None:
    """By dates, as far as they are known; the trail says so."""
    assert wants_news(text)
    found = outcome(
        *("web", "https://old.example/", "https://undated.example/", "https://new.example/"),
        dates=("2019-05-01", None, "2026-11-21"),
    )
    ranked = order(found, text=text)
    assert urls(ranked)[0] == "https://new.example/"
    assert urls(ranked)[-1] == "https://old.example/"
    assert "of 2026-11-21, and the question asks for news" in ranked[0].reasons
    assert urls(order(found, text="history of tea"))[0] == "https://old.example/"


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


def test_reasons_are_given_on_request(tmp_path: Path) -> None:
    """`ranking` is in the answer to `explain`, one entry for each result, in its order."""
    found = Script(["https://arxiv.org/abs/1"]), Script(["https://a.example/"])
    sites = {"web": Script(DOWN), "arxiv": found[0], "crossref": found[1]}
    answer = chain_of(tmp_path, sites).search(Query("papers about tea"))
    assert "ranking" not in answer.as_json()
    assert answer.as_json(explain=True)["ranking"] == [
        {"url": "https://arxiv.org/abs/1", "reasons": ["place 1 of arxiv"]},
        {"url": "https://a.example/", "reasons": ["place 1 of crossref"]},
    ]
