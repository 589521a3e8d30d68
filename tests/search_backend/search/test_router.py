"""Official sites in place of a chain that failed: which are asked, with what, why, and when not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.engines import Access, default_chain, find_engines
from searchloop.search_backend.search.router import choose, keywords, language_of
from searchloop.search_backend.search.schedule import PATIENCE_WITH_SITES
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchResult
from tests.search_backend.chains import BLOCKED, Clock, Script, attempt_of, chain_of, codes, trail
from tests.tables import each_row
from tests.waiting import LATE

SITES = [engine for engine in find_engines().values() if engine.kinds]
PAPER = "papers about sparse attention"


def chosen(text: str, **options: object) -> list[str]:
    """The names of the sites that are asked."""
    query = Query(text, **options)  # type: ignore[arg-type]
    return [choice.engine.name for choice in choose(query, SITES)]


@each_row(
    ("question", "first", "asked"),
    [
        ("What is photosynthesis?", "wikipedia", "photosynthesis"),
        ("Was ist Photosynthese?", "wikipedia", "Photosynthese"),
        ("¿Qué es la fotosíntesis?", "wikipedia", "fotosíntesis"),
        ("Qu’est-ce que la photosynthèse ?", "wikipedia", "photosynthèse"),
        ("什么是光合作用？", "wikipedia", "光合作用"),
        ("光合成とは何ですか？", "wikipedia", "光合成"),
        ("Что такое фотосинтез?", "wikipedia", "фотосинтез"),
        ("Who invented the telephone?", "wikipedia", "telephone"),
        ("attention is all you need paper", "arxiv", "attention is all you need"),
        ("稀疏注意力的论文 arxiv", "arxiv", "稀疏注意力"),
        ("arxiv 1706.03762", "arxiv", "1706.03762"),
        ("10.1038/nature14539", "crossref", "10.1038/nature14539"),
        ("side effects of ibuprofen", "pubmed", "side effects of ibuprofen"),
        ("布洛芬的副作用", "pubmed", "布洛芬的副作用"),
        ("how to undo the last git commit", "stackexchange", "undo the last git commit"),
        ("TypeError: 'NoneType' object is not iterable", "stackexchange", "TypeError"),
        ("css grid align items", "stackexchange", "css grid align items"),
        ("github repo of ripgrep", "github", "ripgrep"),
        ("ripgrep 的源码仓库", "github", "ripgrep"),
        ("Where is Machu Picchu?", "openstreetmap", "Machu Picchu"),
        ("Wo liegt der Bodensee?", "openstreetmap", "Bodensee"),
        ("金阁寺在哪里？", "openstreetmap", "金阁寺"),
    ],
)
def test_a_question_reaches_the_site_of_its_kind(question: str, first: str, asked: str) -> None:
    """By words of several languages; the site gets what the question is about."""
    names = chosen(question)
    assert names[0] == first, names
    assert keywords(Query(question), find_engines()[first].kinds).text.startswith(asked)


@each_row(
    "question",
    [
        *("best pizza recipe", "cheap flights to Lisbon"),
        *("weather tomorrow", "Rezept für Apfelkuchen", "tienda de zapatos", "猫 可爱"),
        *("translate good morning into French", "is it going to rain", "x", "?", "123"),
    ],
)
def test_other_questions_are_the_encyclopedias(question: str) -> None:
    """A site that cannot know is not asked; an encyclopedia may know anything."""
    assert chosen(question) == ["wikipedia"]


def test_a_choice_says_why_and_leaves_out_sites_in_vain() -> None:
    """In words that complete "asked NAME: ..."; a site whose results the rules for domains would
    all drop is not asked."""
    why = {c.engine.name: c.why for c in choose(Query(PAPER), SITES)}
    assert why["arxiv"] == why["crossref"] == "looks like a paper"
    for allowed, blocked, asked in (
        ((), ("arxiv.org",), False),
        (("example.org",), (), False),
        (("arxiv.org",), (), True),
    ):
        names = chosen(PAPER, allowed_domains=allowed, blocked_domains=blocked)
        assert ("arxiv" in names) is asked
    assert chosen("What is tea?", allowed_domains=("de.wikipedia.org",)) == ["wikipedia"]


@each_row(
    ("text", "language"),
    [
        *(("What is the capital of France", "en"), ("Was ist die Hauptstadt", "de")),
        *(("quelle est la capitale", "fr"), ("¿cuál es la capital?", "es"), ("首都は", "ja")),
        *(("首都在哪里", "zh"), ("столица Франции", "ru"), ("수도는 어디", "ko"), ("x", None)),
        *(("столиця Франції", "uk"), ("η πρωτεύουσα", "el"), ("عاصمة فرنسا", "ar")),
    ],
)
def test_the_language_of_a_question(text: str, language: str | None) -> None:
    """By its letters, or by the small words that it is made of."""
    assert language_of(text) == language


@given(st.text(max_size=400))
def test_any_question_can_be_routed(text: str) -> None:
    """To somebody, never without words to ask, never a fault."""
    query = Query(text.strip() or "?")
    assert choose(query, SITES)
    for engine in SITES:
        assert keywords(query, engine.kinds).text


def test_signs_are_looked_for_at_the_beginning() -> None:
    """A question of any length costs the same, and a text put behind it chooses no site."""
    assert chosen("tea " * 200 + "papers about sparse attention") == ["wikipedia"]
    for text in ("a" * 2000, "when was " + "x " * 900, "1 " * 1000, "10 " + "street " * 280):
        choose(Query(text), SITES)


WEB, WIKI = "https://web.example/", "https://en.wikipedia.org/wiki/Attention"
ARXIV, ALEX = "https://arxiv.org/abs/1706.03762", "https://doi.org/10.5555/2"


def test_sites_answer_when_the_chain_is_blocked(tmp_path: Path) -> None:
    """All that fit are asked, by keywords, and what they found is the answer, place by place; the
    block stays on record."""
    wiki, local = Script([WIKI]), Script([])
    sites = {"web": Script(BLOCKED), "arxiv": Script([ARXIV, f"{ALEX}1"]), "wikipedia": wiki}
    chain = chain_of(tmp_path, {**sites, "github": Script([]), "local": local})
    answer = chain.search(Query(PAPER))
    assert (answer.status, answer.engine) == ("ok", "arxiv")
    assert [r.url for r in answer.results] == [ARXIV, WIKI, f"{ALEX}1"]
    assert trail(answer)[:2] == [("web", "blocked"), ("arxiv", "ok")]
    assert attempt_of(answer, "arxiv").why == "looks like a paper"
    assert sites["arxiv"].asked == ["sparse attention"]
    assert answer.attempts[1].as_json()["query"] == "sparse attention"
    assert local.asked == []


@pytest.mark.parametrize("answer", [[], EngineError("network", "Down.", "Wait.")])
def test_a_site_without_results_changes_nothing(tmp_path: Path, answer: Any) -> None:
    """A blocked web search that sites cannot make up for is blocked, not empty. One that worked,
    though it found nothing, is believed: no site is asked."""
    for web, status in ((BLOCKED, "blocked"), ([], "empty"), ([WEB], "ok")):
        arxiv = Script(answer)
        sites = {"web": Script(web), "arxiv": arxiv, "wikipedia": Script(answer)}
        assert chain_of(tmp_path, sites).search(Query(PAPER)).status == status
        assert bool(arxiv.asked) is (web is BLOCKED)


def test_a_chain_that_the_user_wrote_is_kept_to(tmp_path: Path) -> None:
    """With SEARCH_ENGINES nobody else is asked, and sites named there are asked like any other; an
    engine that a request names is asked alone."""
    arxiv = Script([ARXIV])
    sites = {"web": Script(BLOCKED), "arxiv": arxiv}
    assert chain_of(tmp_path, sites, routed=False).search(Query(PAPER)).status == "blocked"
    assert chain_of(tmp_path, sites).search(Query(PAPER), "web").status == "blocked"
    assert arxiv.asked == []
    named = chain_of(tmp_path, sites, routed=False, engines=("arxiv",)).search(Query(PAPER))
    assert (named.engine, trail(named)) == ("arxiv", [("arxiv", "ok")])
    assert arxiv.asked == ["sparse attention"]
    assert SearchSettings.from_mapping({}, tmp_path).routed
    assert not SearchSettings.from_mapping({"SEARCH_ENGINES": "ddg"}, tmp_path).routed
    mixed = SearchSettings.from_mapping({"SEARCH_ENGINES": "ddg, sites,library"}, tmp_path)
    assert (mixed.engines, mixed.routed) == (("ddg", "library"), True)
    assert not {engine.name for engine in SITES} & {*default_chain(find_engines(), {})}


def test_a_site_that_hangs_holds_nobody(tmp_path: Path) -> None:
    """The other's results come without it, and it is told as late."""
    clock, gate = Clock(), threading.Event()

    def hang(_query: Query, _access: Access) -> list[SearchResult]:
        clock.now += PATIENCE_WITH_SITES * 10 + 0.1
        gate.wait(LATE)
        return []

    sites = {"web": Script(BLOCKED), "arxiv": hang, "wikipedia": Script([WIKI])}
    answer = chain_of(tmp_path, sites, clock).search(Query(PAPER))
    gate.set()
    assert [r.url for r in answer.results] == [WIKI]
    assert codes(answer)["arxiv"] == "timeout"


def test_the_rates_of_sites_are_kept(tmp_path: Path) -> None:
    """Three seconds between two requests to arXiv: a question in between goes without it."""
    arxiv = Script([ARXIV])
    sites = {"web": Script(BLOCKED), "arxiv": arxiv, "wikipedia": Script([WIKI])}
    chain = chain_of(tmp_path, sites)
    assert len(chain.search(Query(PAPER)).results) == 2
    again = chain.search(Query("papers about dense attention"))
    assert [r.url for r in again.results] == [WIKI]
    assert (codes(again)["arxiv"], len(arxiv.asked)) == ("busy", 1)


def test_a_site_that_failed_rests_and_is_not_chosen(tmp_path: Path) -> None:
    """The other that fits is asked, and nothing of the first stands in the trail."""
    sites = {
        "web": Script(BLOCKED),
        "arxiv": Script(EngineError("quota", "Used up.", "Wait.", 3_600)),
        "crossref": Script(["https://doi.org/10.5555/1"]),
    }
    chain = chain_of(tmp_path, sites)
    assert [e for e, _ in trail(chain.search(Query(PAPER)))] == ["web", "arxiv", "crossref"]
    second = chain.search(Query("papers about dense attention"))
    assert [e for e, _ in trail(second)] == ["web", "crossref"]


def test_the_list_of_engines_says_which_may_be_asked(tmp_path: Path) -> None:
    """`routed` is false where the user has written the chain."""
    sites = {"web": Script([]), "arxiv": Script([])}
    rows = {r["name"]: r for r in chain_of(tmp_path, sites).describe()["engines"]}
    assert (rows["arxiv"]["routed"], rows["arxiv"]["position"]) == (True, None)
    assert not rows["web"]["routed"]
    rows = {r["name"]: r for r in chain_of(tmp_path, sites, routed=False).describe()["engines"]}
    assert not rows["arxiv"]["routed"]
